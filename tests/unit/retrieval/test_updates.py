"""Which of two facts comes first that tell nearly the same."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from recollect.retrieval.recall.ranking import Hit
from recollect.retrieval.recall.updates import asks_for_first, in_order_of_time

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)


def told(number: int, text: str, score: float, **known: object) -> Hit:
    """A fact of its own that was told on the day of its number."""
    key = UUID(int=number)
    what: dict[str, object] = {"name": None, "node_id": key, "outdated": False, "covered": 0.8}
    what |= known
    covered = what.pop("covered")
    return Hit(
        key,
        key,
        text=text,
        at=MONDAY + timedelta(days=number),
        score=score,
        meaning=0.5,
        terms={"coverage": covered},  # type: ignore[dict-item]
        **what,  # type: ignore[arg-type]
    )


OLD, NEW = told(1, "Maria lives in Oslo", 0.9), told(2, "Maria lives in Bergen", 0.8)
OTHER = told(3, "Deploys run on Fridays", 0.85)


def order(*hits: Hit, newest: bool = True, talk: frozenset[UUID] = frozenset()) -> list[int]:
    facts = {hit.passage_id for hit in hits} - talk
    return [hit.memory_id.int for hit in in_order_of_time(hits, facts, newest=newest)]


def test_the_newer_of_two_comes_first_with_the_better_score() -> None:
    first, second, third = in_order_of_time([OLD, OTHER, NEW], {OLD.passage_id, OTHER.passage_id, NEW.passage_id})
    assert (first.memory_id, second.memory_id, third.memory_id) == (NEW.memory_id, OLD.memory_id, OTHER.memory_id)
    assert first.score == second.score == OLD.score


def test_the_newest_of_several_comes_first() -> None:
    newest = told(9, "Maria now lives in Rome", 0.75)
    assert order(OLD, NEW, newest) == [9, 2, 1]


def test_the_oldest_comes_first_where_a_question_asks_for_it() -> None:
    assert order(NEW, OTHER, OLD, newest=False) == [1, 2, 3]
    assert order(OLD, NEW, newest=False) == [1, 2]


@pytest.mark.parametrize(
    "newer",
    [
        told(2, "Maria lives in Bergen", 0.8, outdated=True),
        told(2, "Maria lives in Bergen", 0.6),
        told(2, "Maria lives in Bergen", 0.8, covered=0.5),
        told(2, "Deploys run on Fridays", 0.8),
    ],
    ids=["outdated", "scores less", "has less of the question", "tells something else"],
)
def test_another_memory_stays_where_it_is(newer: Hit) -> None:
    assert order(OLD, newer) == [1, 2]


def test_in_threads_the_order_stays() -> None:
    assert order(OLD, NEW, talk=frozenset({OLD.passage_id, NEW.passage_id})) == [1, 2]
    assert order(OLD, NEW, talk=frozenset({NEW.passage_id})) == [1, 2]
    assert order(OLD, NEW, talk=frozenset({OLD.passage_id})) == [1, 2]


def test_facts_about_two_entities_are_no_update_of_each_other() -> None:
    of_maria, of_mary = (
        told(number, "lives in a flat", score, name=name)
        for number, name, score in ((1, "Maria", 0.9), (2, "Mary", 0.8))
    )
    assert order(of_maria, of_mary) == [1, 2]
    same_entity = told(2, "lives in a house", 0.8, name="Maria", node_id=of_maria.node_id)
    assert order(of_maria, same_entity) == [2, 1]


def test_texts_without_words_tell_nothing_anew() -> None:
    assert order(told(1, "🎉🎉!!", 0.9), told(2, "Deploys run on Fridays", 0.8)) == [1, 2]


def test_words_of_scripts_with_marks_are_whole() -> None:
    """By letters alone, without the marks between them, these would share most of their parts."""
    assert order(told(1, "मेरी बिल्ली दूध पीती है", 0.9), told(2, "हमारा किराया महीने में बढ़ेगा", 0.8)) == [1, 2]
    assert order(told(1, "मेरी बिल्ली दूध पीती है", 0.9), told(2, "मेरी बिल्ली पानी पीती है।", 0.8)) == [2, 1]


def test_what_was_told_in_the_same_moment_is_told_again_by_the_later_id() -> None:
    twin = told(2, "Maria lives in Bergen", 0.8)
    at_once = Hit(**{name: getattr(twin, name) for name in Hit.__struct_fields__} | {"at": OLD.at})
    assert order(OLD, at_once) == [2, 1]


def test_only_the_first_hits_are_compared() -> None:
    much = [told(number, f"fact {number} says its own", 0.9) for number in range(100, 130)]
    assert order(OLD, *much, NEW)[:1] == [1]


def test_questions_for_what_was_first_are_known(subtests: pytest.Subtests) -> None:
    for question in ("What was it originally?", "Where did she live before?", "Who was the first owner?"):
        with subtests.test(question):
            assert asks_for_first(question)
    for question in ("Where does she live these days?", "What is the latest version?", "Who owns it?"):
        with subtests.test(question):
            assert not asks_for_first(question)
