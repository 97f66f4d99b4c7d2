"""The quality of a ranking, by the evidence that it should contain."""

import math
from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)

DEPTH = 10
"""The number of ranks that count for recall and nDCG."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one question, or the means of several.

    `recall`: the share of the evidence among the first DEPTH. `complete`: 1 if all of it is among them. `mrr`: the
    reciprocal rank of the first evidence. `ndcg`: normalised discounted cumulative gain of the first DEPTH, by log2 of
    the rank (Järvelin and Kekäläinen, TOIS 2002), with equal weights.
    """

    recall: float
    complete: float
    mrr: float
    ndcg: float


SESSION_DEPTH = 5
"""The number of sessions that count, as in what is published of long conversations."""


@dataclass(frozen=True, slots=True)
class SessionScores:
    """The scores of a question by session, or the means of several: the share of the sessions with evidence among the
    first SESSION_DEPTH, and 1 if the first one has some."""

    recall: float
    first: float


def score_sessions(ranked: Sequence[Item], wanted: Set[Item]) -> SessionScores:
    """The scores of sessions, best first, none twice; `wanted` must not be empty."""
    found = len(wanted & set(ranked[:SESSION_DEPTH]))
    return SessionScores(found / len(wanted), float(bool(ranked) and ranked[0] in wanted))


def mean_of_sessions(scores: Sequence[SessionScores]) -> SessionScores:
    """The means of both fields; `scores` must not be empty."""
    return SessionScores(fmean(one.recall for one in scores), fmean(one.first for one in scores))


def score(ranked: Sequence[Item], wanted: Set[Item]) -> Scores:
    """The scores of a ranking, best first; `wanted` must not be empty."""
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
    """The size of a result, and the share of evidence in it, by memories and tokens; of one question, or the means."""

    memories: float
    tokens: float
    of_memories: float
    of_tokens: float


def precision(found: Sequence[tuple[Item, int]], wanted: Set[Item]) -> Precision:
    """The precision of a result, which is not empty, with the tokens of each item."""
    tokens = sum(size for _, size in found)
    evidence = [size for item, size in found if item in wanted]
    return Precision(len(found), tokens, len(evidence) / len(found), sum(evidence) / tokens)


def mean_precision(precisions: Sequence[Precision]) -> Precision:
    """The means of all fields; `precisions` must not be empty."""
    return Precision(
        fmean(one.memories for one in precisions),
        fmean(one.tokens for one in precisions),
        fmean(one.of_memories for one in precisions),
        fmean(one.of_tokens for one in precisions),
    )


def mean(scores: Sequence[Scores]) -> Scores:
    """The means of all fields; `scores` must not be empty."""
    return Scores(
        fmean(one.recall for one in scores),
        fmean(one.complete for one in scores),
        fmean(one.mrr for one in scores),
        fmean(one.ndcg for one in scores),
    )
