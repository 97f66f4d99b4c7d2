"""What has no amount or time answers a question for one only if it means much of it."""

from uuid import UUID

import pytest

from recollect.embedding import SimilarityThresholds
from recollect.retrieval.recall.question_analysis import ExpectedAnswer
from recollect.retrieval.recall.ranking import Candidate, Term, rank


def fact(
    text: str,
    meaning: float,
    *,
    is_alone: bool = True,
    covered: float = 0.0,
    first_match: float | None = None,
    number: int = 1,
) -> Candidate:
    key = UUID(int=number)
    return Candidate(
        id=key,
        memory_id=key,
        node_id=key,
        version_id=None,
        conflicts=(),
        name=None,
        text=text,
        at=None,
        outdated=False,
        own=0.0,
        near=0.0,
        far=0.0,
        covered=covered,
        about=False,
        words=5,
        dated=False,
        is_alone=is_alone,
        meaning=meaning,
        own_similarity=meaning,
        win=None if first_match is None else 0.0,
        first_match=first_match,
    )


THRESHOLDS = SimilarityThresholds(meaning=0.25, best=0.3, words=0.6, near=0.8, other_kind=0.15, no_amount=0.3)
WORDS = [Term("bike", idf=1.0, passages=1), Term("brand", idf=1.0, passages=1)]


def answers(question: str, *candidates: Candidate) -> bool:
    return bool(
        rank(
            candidates,
            WORDS,
            expected=ExpectedAnswer.of(question),
            thresholds=THRESHOLDS,
        )
    )


def test_what_is_of_another_kind_needs_more(subtests: pytest.Subtests) -> None:
    for question, of_this_kind, of_another in [
        ("How many servers are there?", "The cluster has nine servers", "The cluster is painted blue"),
        ("How old is the dog?", "The dog turned 4", "The dog fears every storm"),
        ("How often do we deploy?", "Deploys run every night", "Deploys run in Dublin"),
        ("When is Kenji's birthday?", "Kenji was born in May", "Kenji likes mail"),
        ("When do we deploy?", "We deploy after the review", "We deploy to Oslo"),
        ("How long is the course?", "The course takes a week", "The course is in Spanish"),
    ]:
        with subtests.test(question):
            assert answers(question, fact(of_this_kind, 0.31))
            assert not answers(question, fact(of_another, 0.44))
            assert answers(question, fact(of_another, 0.46))


def test_turns_of_talk_and_other_questions_need_no_more() -> None:
    """What answers in talk may stand in the turn before or after."""
    assert answers("How old is the dog?", fact("The dog fears storms", 0.31, is_alone=False))
    assert answers("What does the dog fear?", fact("The dog fears storms", 0.31))
    assert answers("Wie alt ist der Hund?", fact("Der Hund mag Kinder", 0.31))


def test_memories_in_other_languages_need_no_more() -> None:
    """Their words for amounts and times are not known here."""
    assert answers("How long is the course?", fact("Der Kurs dauert bis zu den Ferien", 0.31))
    assert answers("How many servers are there?", fact("服务器有九台", 0.31))


def test_what_has_no_counterpart_of_a_word_of_an_amount_needs_much_more(subtests: pytest.Subtests) -> None:
    """The number in it is of something else."""
    text = "Clinics get their invoices on the 1st"
    for question in ("How many days do clinics have to pay?", "For how long is it?", "And how often is it?"):
        with subtests.test(question):
            assert answers(question, fact(text, 0.31, first_match=0.3))
            assert not answers(question, fact(text, 0.59, first_match=0.2))
            assert answers(question, fact(text, 0.61, first_match=0.2))
            assert answers(question, fact(text, 0.42, first_match=0.2, is_alone=False))
            assert answers(question, fact("Die Praxis hat 3 Tage und nicht mehr", 0.31, first_match=0.2))
    for question in ("Which clinics pay?", "How exactly do they pay?", "Paying clinics: how many are there?"):
        with subtests.test(question):
            assert answers(question, fact(text, 0.31, first_match=0.1)), "its first word is not of an amount"


def test_what_is_far_from_the_nearest_is_no_answer_in_its_place() -> None:
    question = "How many days do clinics have to pay?"
    nearest = fact("Clinics get their invoices on the 1st", 0.55, first_match=0.2)
    assert answers(question, nearest, fact("Payments take 3 days", 0.45, first_match=0.5, number=2))
    assert not answers(question, nearest, fact("Holidays are 30 days", 0.43, first_match=0.5, number=2))
