"""Reciprocal-rank fusion: several rankings as one."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

FUSION_K = 60
"""The constant of reciprocal-rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""


@dataclass(frozen=True, slots=True)
class Fused(Generic[K]):
    """An item, its summed score, and the rankings (from 0) that contain it."""

    key: K
    score: float
    rankings: tuple[int, ...]


def fuse(rankings: Sequence[Sequence[K]]) -> list[Fused[K]]:
    """Reciprocal-rank fusion: the sum of 1 / (60 + rank) over the rankings, ranks from 1; ties by first appearance."""
    scores: dict[K, float] = {}
    indexes: dict[K, list[int]] = {}
    for index, ranking in enumerate(rankings):
        for rank, key in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (FUSION_K + rank)
            indexes.setdefault(key, []).append(index)
    return [Fused(key, score, tuple(indexes[key])) for key, score in sorted(scores.items(), key=lambda item: -item[1])]
