"""Which hits come near enough to the best one: the others are company of an answer, and cost whoever reads them.

Whatever means nearly as much comes along. Of what was said in a thread, the score says most: a turn of talk may mean
little by itself. A memory without a thread says what it says, so it comes by its score only if that is nearly the best,
or by its words, or by a day (measured: docs/adr/0016-a-second-stage-of-recall.md).
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Self
from uuid import UUID

from msgspec import structs

from recollect.embedding import SimilarityThresholds
from recollect.retrieval.recall.ranking import Hit

NEAR_BEST = 2 / 3
"""Share of the best score with which a turn of a thread comes after a memory without a thread; and, as with this share
of the most words, what has no vector yet."""

NEAR_BEST_OF_TALK = 0.6
"""The same after a turn of a thread: what answers a question to a conversation is often several turns (measured:
docs/lab/recall-quality.md)."""

NEAR_BEST_OF_FACTS = 0.9
"""The same for a memory without a thread."""

MIN_COVERAGE = 0.3
"""The least share of the question's words, weighted by rarity, with which a memory comes by its words."""

CERTAIN_TERMS = ("date", "identified")
"""Terms that say by themselves that a memory is asked for: a day that the question names, and an identifier."""


def marked_near_best(
    hits: Sequence[Hit], facts: Set[UUID], thresholds: SimilarityThresholds, others: Set[UUID] = frozenset()
) -> list[Hit]:
    """The hits of one ranking, best first, each with whether it comes near the best one (`Hit.is_near_best`).

    `facts`: the passages that belong to no thread; `others`: those in another language than the question.
    """
    if not hits:
        return []
    best = _Best.of(hits, facts)
    of_others = replace(thresholds, near=thresholds.near * thresholds.other_language) if others else thresholds

    def is_near(hit: Hit) -> bool:
        own = of_others if hit.passage_id in others else thresholds
        return _is_near(hit, best, own, is_fact=hit.passage_id in facts)

    return [structs.replace(hit, is_near_best=is_near(hit)) for hit in hits]


@dataclass(frozen=True, slots=True)
class _Best:
    """The greatest of each kind of evidence, each perhaps of another hit. `is_of_thread`: the first hit is."""

    score: float
    meaning: float
    coverage: float
    is_of_thread: bool

    @classmethod
    def of(cls, hits: Sequence[Hit], facts: Set[UUID]) -> Self:
        rows = [(hit.score, hit.meaning, hit.terms["coverage"]) for hit in hits]
        score, meaning, coverage = map(max, zip(*rows, strict=True))
        return cls(score, meaning, coverage, is_of_thread=hits[0].passage_id not in facts)


def _is_near(hit: Hit, best: _Best, thresholds: SimilarityThresholds, *, is_fact: bool) -> bool:
    if hit.score >= _share_of_best(hit, best, is_fact=is_fact) * best.score:
        return True
    coverage = hit.terms["coverage"]
    if not hit.meaning:  # Its words are all that is known of it.
        return coverage >= NEAR_BEST * best.coverage > 0
    if hit.meaning >= thresholds.near * best.meaning:
        return True
    has_the_words = hit.meaning >= thresholds.meaning and coverage >= max(best.coverage, MIN_COVERAGE)
    return is_fact and (has_the_words or any(hit.terms.get(term) for term in CERTAIN_TERMS))


def _share_of_best(hit: Hit, best: _Best, *, is_fact: bool) -> float:
    if not hit.meaning:
        return NEAR_BEST
    if is_fact:
        return NEAR_BEST_OF_FACTS
    return NEAR_BEST_OF_TALK if best.is_of_thread else NEAR_BEST
