"""How passages in another language than the question are ranked: they have no tokens, and only their meaning counts."""

from dataclasses import replace

from recollect.embedding import SimilarityThresholds
from recollect.retrieval.recall.question_analysis import ExpectedAnswer
from recollect.retrieval.recall.ranking import Candidate, Hit, Term, in_other_languages, rank
from tests.unit.retrieval.test_recall_model import candidate


def ranked(*candidates: Candidate, other_language: float = 1.0, min_meaning: float = 0.0) -> list[Hit]:
    return rank(
        candidates,
        [],
        expected=ExpectedAnswer(),
        thresholds=SimilarityThresholds(min_meaning, min_meaning, other_language=other_language),
    )


def near(number: int, cosine: float, win: float | None) -> Candidate:
    return candidate(
        number, meaning=cosine, own_similarity=cosine, win=win, is_alone=True, is_other_language=win is None
    )


def test_a_passage_without_tokens_is_scored_by_its_meaning() -> None:
    hits = ranked(near(1, 0.5, None), near(2, 0.1, 2.0), near(3, 0.2, 1.0))
    assert [hit.memory_id.int for hit in hits] == [1, 2, 3]
    assert hits[0].terms["win"] == hits[0].terms["meaning"] == 1


def test_a_passage_without_tokens_needs_a_share_of_the_least_cosine() -> None:
    found = near(1, 0.1, None), near(2, 0.1, 1.0), near(3, 0.26, 2.0)
    assert [hit.memory_id.int for hit in ranked(*found, min_meaning=0.25)] == [3]
    assert {hit.memory_id.int for hit in ranked(*found, min_meaning=0.25, other_language=0.3)} == {1, 3}


def test_a_share_is_enough_where_all_passages_are_in_another_language() -> None:
    found = near(1, 0.1, None), near(2, 0.05, None)
    assert [hit.memory_id.int for hit in ranked(*found, min_meaning=0.25, other_language=0.3)] == [1]


def test_passages_that_wait_for_their_tokens_are_in_no_other_language() -> None:
    found = near(1, 0.2, None), candidate(2, meaning=0.2, own_similarity=0.2, win=None), near(3, 0.2, 1.0)
    assert in_other_languages(found) == {found[0].id}


def test_where_nothing_is_read_fewer_words_are_evidence() -> None:
    found = candidate(1, meaning=None, own_similarity=None, covered=0.2)
    terms = [Term("violin", 1.0, 1)]
    unread = SimilarityThresholds(meaning=0.1, best=0.1)
    assert not rank([found], terms, expected=ExpectedAnswer(), thresholds=unread)
    assert rank([found], terms, expected=ExpectedAnswer(), thresholds=replace(unread, coverage=0.1))
