"""What has no amount or time answers a question for one only if it means much of it."""

from uuid import UUID

import pytest

from recollect.retrieval.recall.question_analysis import ExpectedAnswer
from recollect.retrieval.recall.ranking import Candidate, rank


def fact(text: str, meaning: float, *, is_alone: bool = True, covered: float = 0.0) -> Candidate:
    key = UUID(int=1)
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
    )


def answers(question: str, candidate: Candidate) -> bool:
    expected = ExpectedAnswer.of(question)
    return bool(
        rank([candidate], [], expected=expected, min_meaning=0.25, min_best=0.3, min_best_turn=0.3, other_kind=0.15)
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
