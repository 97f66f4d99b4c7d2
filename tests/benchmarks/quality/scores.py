"""How good a ranking is, by what should have been in it."""

import math
from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)

DEPTH = 10
"""Places of a ranking that recall and nDCG look at."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Of one question, or the means of several.

    `recall`: the share of the evidence among the first DEPTH. `complete`: 1 where all of it is there. `mrr`: one over
    the place of the first evidence. `ndcg`: normalised discounted cumulative gain of the first DEPTH, by log2 of the
    place (Järvelin and Kekäläinen, TOIS 2002), each evidence worth the same.
    """

    recall: float
    complete: float
    mrr: float
    ndcg: float


def score(ranked: Sequence[Item], wanted: Set[Item]) -> Scores:
    """Of a ranking, best first; `wanted` must not be empty."""
    hits = [item in wanted for item in dict.fromkeys(ranked)]
    found = sum(hits[:DEPTH])
    gain = sum(hit / math.log2(place + 2) for place, hit in enumerate(hits[:DEPTH]))
    ideal = sum(1 / math.log2(place + 2) for place in range(min(DEPTH, len(wanted))))
    return Scores(
        recall=found / len(wanted),
        complete=float(found == len(wanted)),
        mrr=next((1 / place for place, hit in enumerate(hits, start=1) if hit), 0.0),
        ndcg=gain / ideal,
    )


@dataclass(frozen=True, slots=True)
class Precision:
    """How much came back, and which share of it is evidence, by memories and by tokens; of a question, or the means."""

    memories: float
    tokens: float
    of_memories: float
    of_tokens: float


def precision(told: Sequence[tuple[Item, int]], wanted: Set[Item]) -> Precision:
    """Of what came back, which is not empty, each with its tokens."""
    tokens = sum(size for _, size in told)
    evidence = [size for item, size in told if item in wanted]
    return Precision(len(told), tokens, len(evidence) / len(told), sum(evidence) / tokens)


def mean_precision(precisions: Sequence[Precision]) -> Precision:
    """The mean of each; `precisions` must not be empty."""
    return Precision(
        fmean(one.memories for one in precisions),
        fmean(one.tokens for one in precisions),
        fmean(one.of_memories for one in precisions),
        fmean(one.of_tokens for one in precisions),
    )


def mean(scores: Sequence[Scores]) -> Scores:
    """The mean of each; `scores` must not be empty."""
    return Scores(
        fmean(one.recall for one in scores),
        fmean(one.complete for one in scores),
        fmean(one.mrr for one in scores),
        fmean(one.ndcg for one in scores),
    )
