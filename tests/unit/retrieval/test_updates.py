"""Which of two facts comes first that tell nearly the same."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from recollect.retrieval.recall.ranking import Hit
from recollect.retrieval.recall.updates import asks_for_first, asks_for_newest, in_order_of_time, probably_replaces

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)


def told(number: int, text: str, score: float, **known: object) -> Hit:
    """A fact of its own that was told on the day of its number."""
    key = UUID(int=number)
    what: dict[str, object] = {"name": None, "node_id": key, "outdated": False, "covered": 0.8}
    what |= {"meaning": 0.5 * score} | known
    covered = what.pop("covered")
    return Hit(
        key,
        key,
        text=text,
        at=MONDAY + timedelta(days=number),
        score=score,
        terms={"coverage": covered},  # type: ignore[dict-item]
        **what,  # type: ignore[arg-type]
    )


OLD, NEW = told(1, "Maria lives in Oslo", 0.9), told(2, "Maria lives in Bergen", 0.8)
OTHER = told(3, "Deploys run on Fridays", 0.85)


WHERE = "In which city does Maria live?"


def order(*hits: Hit, question: str = WHERE, talk: frozenset[UUID] = frozenset()) -> list[int]:
    facts = {hit.passage_id for hit in hits} - talk
    return [hit.memory_id.int for hit in in_order_of_time(hits, facts, question)]


def test_the_newer_of_two_comes_first_with_the_better_score() -> None:
    facts = {hit.passage_id for hit in (OLD, OTHER, NEW)}
    first, second, third = in_order_of_time([OLD, OTHER, NEW], facts, WHERE)
    assert (first.memory_id, second.memory_id, third.memory_id) == (NEW.memory_id, OLD.memory_id, OTHER.memory_id)
    assert first.score == second.score == OLD.score


def test_the_newest_of_several_comes_first() -> None:
    newest = told(9, "Maria now lives in Rome", 0.75)
    assert order(OLD, NEW, newest) == [9, 2, 1]


def test_the_oldest_comes_first_where_a_question_asks_for_it() -> None:
    before = "In which city did Maria live before?"
    assert order(NEW, OTHER, OLD, question=before) == [1, 2, 3]
    assert order(OLD, NEW, question=before) == [1, 2]


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


def test_of_two_that_mean_as_much_the_newer_comes_first_whatever_its_score() -> None:
    """Scores are scaled within an answer: of two facts alone, the second has the least of all terms."""
    as_near, farther = (told(2, "Maria lives in Bergen", 0.2, meaning=meaning) for meaning in (0.37, 0.35))
    assert order(OLD, as_near) == [2, 1]
    assert order(OLD, farther) == [1, 2]
    assert order(as_near, OLD, question="Where did Maria live before?") == [1, 2]


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


def test_a_question_for_what_is_so_now_prefers_the_newest_by_a_wider_margin() -> None:
    far_below, less_covered = told(2, "Maria lives in Bergen", 0.4), told(2, "Maria lives in Bergen", 0.8, covered=0.4)
    golf, kona = told(1, "Paul drives a red Golf", 0.9), told(2, "Paul drives an electric Kona", 0.8)
    for older, newer in ((OLD, far_below), (OLD, less_covered), (golf, kona)):
        assert order(older, newer) == [1, 2]
        assert order(older, newer, question="Where is he, or what does he drive, these days?") == [2, 1]
    assert order(OLD, told(2, "Deploys run on Fridays", 0.8), question="Where does Maria live now?") == [1, 2]
    assert order(OLD, far_below, question="Where does Maria live now?", talk=frozenset({OLD.passage_id})) == [1, 2]


def test_facts_of_one_form_about_two_things_stay_where_the_question_names_one(subtests: pytest.Subtests) -> None:
    staging, production = (
        told(1, "The staging API listens on port 8080.", 0.9),
        told(2, "The production API listens on port 9090.", 0.8),
    )
    cases = {
        "On which port does the staging API listen?": [1, 2],
        "Which port does the staging API listen on these days?": [1, 2],
        "On which port does the API listen?": [2, 1],
        "On which port does the production API listen?": [2, 1],
        "Is it still port 8080?": [2, 1],
    }
    for question, expected in cases.items():
        with subtests.test(question):
            assert order(staging, production, question=question) == expected
    at_the_end = told(1, "Port 8080 belongs to staging", 0.9), told(2, "Port 9090 belongs to production", 0.8)
    assert order(*at_the_end, question="Which port belongs to staging?") == [1, 2]
    assert order(*at_the_end, question="Which port is it?") == [2, 1]


def test_identifiers_say_which_of_two_is_meant() -> None:
    """Wherever they stand; a number may be a value that has changed."""
    for one, other, named in (
        ("The build broke in commit 3f2a91c", "The build broke in commit 9b07e4d", "3f2a91c"),
        ("The parcel has the number 7731902", "The parcel has the number 7731965", "7731902"),
    ):
        told_one, told_other = told(1, one, 0.9), told(2, other, 0.8)
        assert order(told_one, told_other, question=f"Is {named} still open?") == [1, 2]
        assert order(told_one, told_other, question="Is it still open?") == [2, 1]


def test_in_a_long_message_words_like_now_ask_for_nothing() -> None:
    assert asks_for_newest("Where does she live now?")
    assert not asks_for_newest("I am still at the office, so tell me please where she lives. " * 3)


def test_a_question_may_name_the_value_as_it_was() -> None:
    assert order(OLD, NEW, question="Does Maria still live in Oslo?") == [2, 1]


def test_questions_for_what_is_so_now_are_known(subtests: pytest.Subtests) -> None:
    asking = (
        "Where does she live these days?",
        "What is the latest version?",
        "Who currently owns it?",
        "Is it still open?",
        "Wo wohnt sie derzeit?",
        "Où habite-t-elle maintenant ?",
        "¿Dónde vive ahora?",
        "她现在住在哪里？",
    )
    for question in asking:
        with subtests.test(question):
            assert asks_for_newest(question)
    for question in ("Where does she live?", "What was the latest version before?", "Who knows?"):
        with subtests.test(question):
            assert not asks_for_newest(question)


def test_what_a_new_fact_probably_replaces_begins_alike_and_has_another_value(subtests: pytest.Subtests) -> None:
    replaced = {
        "The user lives in Rotterdam.": "The user lives in Hamburg.",
        "lives in Bergen": "lives in Oslo",
        "The timeout of the gateway is 10 seconds": "The timeout of the gateway is 30 seconds",
    }
    for new, old in replaced.items():
        with subtests.test(new):
            assert probably_replaces(new, old)
    others = {
        "The production API listens on port 9090": "The staging API listens on port 8080",
        "Maria lives in Oslo with her cat": "Maria lives in Oslo",
        "Maria lives in Oslo": "Maria lives in Oslo!",
        "Deploys run on Fridays": "Maria lives in Oslo",
        "🎉": "🎊",
    }
    for new, old in others.items():
        with subtests.test(new):
            assert not probably_replaces(new, old)
