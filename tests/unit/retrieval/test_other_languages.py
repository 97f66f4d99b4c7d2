"""How passages in another language than the question are ranked: they have no tokens, and only their meaning counts."""

from dataclasses import replace

import pytest

from recollect.embedding import SimilarityThresholds
from recollect.retrieval.recall.question_analysis import ExpectedAnswer
from recollect.retrieval.recall.ranking import Candidate, Hit, Term, in_other_languages, rank, scaled_across
from tests.unit.retrieval.test_recall_model import candidate


def ranked(*candidates: Candidate, other_language: float = 1.0, min_meaning: float = 0.0) -> list[Hit]:
    return rank(
        candidates,
        [],
        expected=ExpectedAnswer(),
        thresholds=SimilarityThresholds(min_meaning, min_meaning, other_language=other_language),
    )


def near(number: int, cosine: float, win: float | None) -> Candidate:
    return candidate(number, meaning=cosine, own_similarity=cosine, win=win, is_alone=True)


def test_a_passage_without_tokens_is_scored_by_its_meaning() -> None:
    hits = ranked(near(1, 0.5, None), near(2, 0.1, 2.0), near(3, 0.2, 1.0))
    assert [hit.memory_id.int for hit in hits] == [1, 2, 3]
    assert hits[0].terms["win"] == hits[0].terms["meaning"] == 1


def test_a_passage_without_tokens_needs_a_share_of_the_least_cosine() -> None:
    found = near(1, 0.1, None), near(2, 0.1, 1.0), near(3, 0.26, 2.0)
    assert [hit.memory_id.int for hit in ranked(*found, min_meaning=0.25)] == [3]
    assert {hit.memory_id.int for hit in ranked(*found, min_meaning=0.25, other_language=0.3)} == {1, 3}


def test_a_question_without_tokens_grants_no_share() -> None:
    """Its thresholds are those of its own language."""
    found = near(1, 0.1, None), near(2, 0.26, None)
    assert [hit.memory_id.int for hit in ranked(*found, min_meaning=0.25, other_language=0.3)] == [2]


def test_cosines_across_languages_are_scaled_to_those_within_one() -> None:
    found = near(1, 0.2, None), near(2, 0.2, 1.0), candidate(3, meaning=None, own_similarity=None, win=None)
    assert in_other_languages(found) == {found[0].id, found[2].id}
    assert [(each.meaning, each.own_similarity) for each in scaled_across(found, 1.5)] == [
        (pytest.approx(0.3), pytest.approx(0.3)),
        (0.2, 0.2),
        (None, None),
    ]


def test_without_tokens_of_the_question_no_language_is_another() -> None:
    found = near(1, 0.2, None), near(2, 0.1, None)
    assert in_other_languages(found) == set()
    assert scaled_across(found, 1.5) == list(found)


def test_where_nothing_is_read_fewer_words_are_evidence() -> None:
    found = candidate(1, meaning=None, own_similarity=None, covered=0.2)
    terms = [Term("violin", 1.0, 1)]
    unread = SimilarityThresholds(meaning=0.1, best=0.1)
    assert not rank([found], terms, expected=ExpectedAnswer(), thresholds=unread)
    assert rank([found], terms, expected=ExpectedAnswer(), thresholds=replace(unread, coverage=0.1))
