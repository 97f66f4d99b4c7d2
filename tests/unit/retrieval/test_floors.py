"""Which hits come along with the best one, and when nothing is an answer at all."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from recollect.embedding import MultilingualEmbedder, SimilarityThresholds
from recollect.retrieval.recall.floors import NEAR_BEST, marked_near_best
from recollect.retrieval.recall.question_analysis import ExpectedAnswer
from recollect.retrieval.recall.ranking import Candidate, Hit, Term, rank

THRESHOLDS = SimilarityThresholds(meaning=0.25, best=0.3, words=0.6, near=0.8)
TERMS = [Term("boat", 3.0, 2), Term("cello", 1.0, 20)]


def _hit(number: int, score: float, meaning: float, *, coverage: float = 0.0, **terms: float) -> Hit:
    id_ = UUID(int=number)
    return Hit(id_, id_, id_, None, f"text {number}", None, False, score, meaning, {"coverage": coverage} | terms)


def _near(hits: list[Hit], *, facts: bool) -> list[int]:
    ids = {hit.passage_id for hit in hits} if facts else set()
    return [hit.passage_id.int for hit in marked_near_best(hits, ids, THRESHOLDS) if hit.is_near_best]


def test_in_a_thread_the_score_decides_and_a_near_meaning() -> None:
    hits = [_hit(1, 0.9, 0.3), _hit(2, 0.55, 0.1), _hit(3, 0.53, 0.23, coverage=1.0), _hit(4, 0.1, 0.25)]
    assert _near(hits, facts=False) == [1, 2, 4], "six tenths of .9 are .54, and eight tenths of .3 are .24"


def test_after_a_memory_without_a_thread_a_turn_needs_more_of_its_score() -> None:
    hits = [_hit(1, 0.9, 0.3), _hit(2, 0.61, 0.1), _hit(3, 0.59, 0.1)]
    marked = marked_near_best(hits, {UUID(int=1)}, THRESHOLDS)
    assert [hit.passage_id.int for hit in marked if hit.is_near_best] == [1, 2], "two thirds of .9 are .6"


def test_of_memories_alone_the_meaning_decides() -> None:
    hits = [_hit(1, 0.9, 0.5), _hit(2, 0.5, 0.41), _hit(3, 0.5, 0.39)]
    assert _near(hits, facts=True) == [1, 2], "eight tenths of .5 are .4"


def test_of_memories_alone_other_evidence_is_enough(subtests: pytest.Subtests) -> None:
    best = _hit(1, 0.9, 0.6, coverage=0.4)
    others = {
        "nearly the best score": (_hit(2, 0.82, 0.1), True),
        "as much of the words as any": (_hit(2, 0.1, 0.26, coverage=0.4), True),
        "the words, but another meaning": (_hit(2, 0.1, 0.24, coverage=0.4), False),
        "less of the words": (_hit(2, 0.1, 0.3, coverage=0.3), False),
        "a day that is named": (_hit(2, 0.1, 0.1, date=0.5), True),
        "an identifier": (_hit(2, 0.1, 0.1, identified=1.0), True),
        "nothing of that": (_hit(2, 0.1, 0.3, date=0.0, identified=0.0), False),
    }
    for why, (other, expected) in others.items():
        with subtests.test(why=why):
            assert _near([best, other], facts=True) == ([1, 2] if expected else [1])


def test_of_another_language_less_is_near() -> None:
    hits = [_hit(1, 0.9, 0.5), _hit(2, 0.1, 0.3), _hit(3, 0.1, 0.19), _hit(4, 0.1, 0.3)]
    thresholds = replace(THRESHOLDS, other_language=0.5)
    others = {UUID(int=2), UUID(int=3)}
    marked = marked_near_best(hits, {hit.passage_id for hit in hits}, thresholds, others)
    assert [hit.passage_id.int for hit in marked if hit.is_near_best] == [1, 2], "half of eight tenths of .5 are .2"


def test_few_words_that_all_share_say_nothing() -> None:
    assert _near([_hit(1, 0.9, 0.6, coverage=0.2), _hit(2, 0.1, 0.3, coverage=0.2)], facts=True) == [1]


def test_what_has_no_vector_yet_is_judged_by_its_score_and_its_words() -> None:
    hits = [_hit(1, 0.9, 0.0, coverage=0.6), _hit(2, 0.7, 0.0), _hit(3, 0.5, 0.0), _hit(4, 0.1, 0.0, coverage=0.5)]
    assert _near(hits, facts=True) == [1, 2, 4]
    assert marked_near_best([], set(), THRESHOLDS) == []


HITS = st.lists(
    st.builds(_hit, st.integers(1, 50), st.floats(0, 1), st.floats(0, 1), coverage=st.floats(0, 1)),
    min_size=1,
    unique_by=lambda hit: hit.passage_id,
)


@given(HITS, st.sets(st.integers(1, 50)))
def test_the_best_always_comes_and_the_order_stays(hits: list[Hit], facts: set[int]) -> None:
    marked = marked_near_best(hits, {UUID(int=number) for number in facts}, THRESHOLDS)
    assert [structs.replace(hit, is_near_best=True) for hit in marked] == hits
    best = max(hit.score for hit in hits)
    assert all(hit.is_near_best for hit in marked if hit.score == best)
    assert all(hit.is_near_best for hit in marked if hit.score >= NEAR_BEST * best and hit.passage_id.int not in facts)


def _candidate(*, covered: float, nearness: float | None) -> Candidate:
    one = UUID(int=1)
    return Candidate(
        *(one, one, one, None, (), None, "text", None, False),
        own=0.0,
        near=0.0,
        far=0.0,
        covered=covered,
        about=False,
        words=5,
        dated=False,
        is_alone=True,
        meaning=nearness,
        own_similarity=nearness,
    )


def test_words_are_an_answer_with_some_meaning_or_if_they_are_all_there(subtests: pytest.Subtests) -> None:
    cases = {(3.0, 0.29): True, (3.0, 0.24): False, (4.0, 0.1): True, (2.0, 0.29): False, (0.0, 0.3): True}
    for (covered, nearness), expected in cases.items():
        with subtests.test(covered=covered, nearness=nearness):
            hits = rank(
                [_candidate(covered=covered, nearness=nearness)],
                TERMS,
                expected=ExpectedAnswer(),
                thresholds=SimilarityThresholds(meaning=0.25, best=0.3, words=0.6, worded=0.25),
            )
            assert bool(hits) == expected


def test_a_turn_of_talk_has_a_higher_floor(subtests: pytest.Subtests) -> None:
    for nearness, is_alone, expected in ((0.39, True, True), (0.39, False, False), (0.41, False, True)):
        with subtests.test(nearness=nearness, is_alone=is_alone):
            found = structs.replace(_candidate(covered=0.0, nearness=nearness), is_alone=is_alone)
            hits = rank(
                [found],
                TERMS,
                expected=ExpectedAnswer(),
                thresholds=SimilarityThresholds(meaning=0.25, best=0.3, best_turn=0.4, words=0.6),
            )
            assert bool(hits) == expected


def test_what_cosines_of_the_default_embedder_are_worth(subtests: pytest.Subtests) -> None:
    """As measured (docs/lab/floors.md): facts that have no word of the question, best first."""
    cases: dict[tuple[float, ...], tuple[int, int]] = {
        (0.244,): (0, 1),
        (0.246,): (1, 1),
        (0.219,): (0, 0),
        (0.221,): (0, 1),
        (0.249, 0.199): (1, 1),
        (0.249, 0.215): (2, 1),
        (0.249, 0.221): (2, 2),
        (0.5, 0.415): (1, 1),
        (0.5, 0.425): (2, 2),
    }
    usual = MultilingualEmbedder.similarity_thresholds
    for cosines, expected in cases.items():
        with subtests.test(cosines=cosines):
            found = [_fact(number, cosine) for number, cosine in enumerate(cosines)]
            assert (_coming(found, usual), _coming(found, usual.under_filter())) == expected


def _fact(number: int, nearness: float) -> Candidate:
    return structs.replace(
        _candidate(covered=0.0, nearness=nearness), id=UUID(int=number), memory_id=UUID(int=number), win=1.0 - number
    )


def _coming(found: list[Candidate], thresholds: SimilarityThresholds) -> int:
    """How many of these come as an answer, or near it."""
    hits = rank(found, TERMS, expected=ExpectedAnswer(), thresholds=thresholds)
    marked = marked_near_best(hits, {candidate.id for candidate in found}, thresholds)
    return sum(hit.is_near_best for hit in marked)
