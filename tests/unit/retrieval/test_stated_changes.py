"""Facts that tell of a change take the place of what they change, however differently they are put."""

import tomllib
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from uuid import UUID

import pytest
from msgspec import structs

from recollect.retrieval.recall.ranking import Hit
from recollect.retrieval.recall.updates import change_words_in, in_order_of_time

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)


def ordered(question: str, old: tuple[str, float, float, float], new: tuple[str, float, float, float]) -> list[int]:
    """The order of an old fact and a new one, each with its score, its cosine and its share of the question's words."""
    hits = [_told(number, *fact) for number, fact in ((1, old), (2, new))]
    hits.sort(key=lambda hit: -hit.score)
    return [hit.memory_id.int for hit in in_order_of_time(hits, {hit.passage_id for hit in hits}, question)]


def _told(number: int, text: str, score: float, meaning: float, covered: float) -> Hit:
    key, at = UUID(int=number), MONDAY + timedelta(days=number)
    return Hit(key, key, key, None, text, at, outdated=False, score=score, meaning=meaning, terms={"coverage": covered})


WHICH = "Which version of Django do we use?"
OLD = ("We use Django 4.2.", 0.67, 0.79, 0.67)


def test_the_newer_comes_first_where_it_tells_of_a_change(subtests: pytest.Subtests) -> None:
    """Scores and cosines are those of `minilm`, of two facts alone."""
    for question, old, new in [
        (WHICH, OLD, ("We upgraded to Django 5.1 in October.", 0.33, 0.74, 0.33)),
        (
            "What does the team use for chat?",
            ("The team uses Slack for chat.", 0.51, 0.74, 1.0),
            ("The team switched from Slack to Zulip for chat.", 0.18, 0.56, 0.67),
        ),
        (
            "Where do we track bugs?",
            ("We track bugs in Jira.", 0.6, 0.7, 1.0),
            ("Bug tracking moved to Linear.", 0.3, 0.55, 1.0),
        ),
        (  # Of two facts, a word of one weighs four times one of both.
            "Who handles customer support?",
            ("Jorge handles customer support.", 0.6, 0.8, 1.0),
            ("Customer support was handed over from Jorge to Mina.", 0.3, 0.6, 0.34),
        ),
        (
            "Which Django version is it?",
            ("Wir nutzen Django 4.2.", 0.67, 0.79, 0.67),
            ("Wir haben auf Django 5.1 gewechselt.", 0.33, 0.7, 0.33),
        ),
    ]:
        with subtests.test(question):
            assert ordered(question, old, new) == [2, 1]
            assert ordered(question.replace("?", " at first?"), old, new) == [1, 2]


def test_of_two_alone_the_newer_comes_first_whatever_its_scaled_score() -> None:
    old, new = (
        ("The user weighs 82 kilos.", 0.53, 0.70, 0.67),
        ("The user weighs 78 kilos after the diet.", 0.22, 0.57, 0.67),
    )
    assert ordered("How much does the user weigh?", old, new) == [2, 1]


def test_what_changes_something_else_stays_behind(subtests: pytest.Subtests) -> None:
    for question, old, new in [
        (WHICH, OLD, ("We replaced the Django logo on the website.", 0.33, 0.6, 0.33)),
        (WHICH, OLD, ("We use Django templates only for mails.", 0.6, 0.7, 0.67)),
        (WHICH, OLD, ("We upgraded to Node 22.", 0.33, 0.4, 0.0)),
        (
            "On which floor is the office?",
            ("The office is on the third floor.", 0.6, 0.8, 1.0),
            ("The office got a new carpet.", 0.4, 0.5, 0.5),
        ),
        (
            "Who supplies our staging cluster?",
            ("Borealis supplies our staging cluster.", 0.6, 0.8, 1.0),
            ("The supplier of our production cluster is new.", 0.5, 0.7, 0.7),
        ),
    ]:
        with subtests.test(new[0]):
            assert ordered(question, old, new) == [1, 2]


def test_a_word_of_change_in_both_tells_of_none() -> None:
    """ "OPS-12 moves …" is no update of "OPS-11 moves …": nothing has changed since."""
    old = ("OPS-11 moves the parser out of core", 0.6, 0.8, 1.0)
    assert ordered("What does OPS-11 do?", old, ("OPS-12 moves the cache to the edge", 0.3, 0.6, 0.5)) == [1, 2]


def test_what_has_the_identifier_that_is_asked_for_stays_first() -> None:
    hits = [
        _told(1, "OPS-11 is open since May", 0.6, 0.8, 1.0),
        _told(2, "OPS-12 was closed and is open again", 0.5, 0.7, 1),
    ]
    named = [structs.replace(hits[0], terms={"coverage": 1.0, "identified": 1.0}), hits[1]]
    facts = {hit.passage_id for hit in hits}
    assert [hit.memory_id.int for hit in in_order_of_time(named, facts, "Is it open?")] == [1, 2]
    assert [hit.memory_id.int for hit in in_order_of_time(hits, facts, "Is it open?")] == [2, 1]


def test_each_language_has_words_of_change(subtests: pytest.Subtests) -> None:
    for text in [
        "We moved to Oslo",
        "It is NO LONGER supported",
        "Wir sind nach Graz umgezogen",
        "Nous utilisons désormais Postgres",
        "Ya no vive en Lima",
        "Mudou para o Porto",
        "Ci siamo passati a Django 5, adesso",
        "We zijn verhuisd naar Gent",
        "Teraz używamy Rusta",
        "Artık Go kullanıyoruz",
        "Мы переехали в Тверь",
        "我们改成了每周四",
        "会議は木曜日に変更",
        "회의가 목요일로 변경되었습니다",
    ]:
        with subtests.test(text):
            assert change_words_in(text)
    for text in ["We use Django 4.2", "The movie is long", "Wir nutzen Rust", "Vive en Lima", "每周四开会"]:
        with subtests.test(text):
            assert not change_words_in(text)


def test_each_language_is_listed_in_small_letters() -> None:
    listed = tomllib.loads((files("recollect.retrieval.recall") / "change_words.toml").read_text("utf-8"))
    words = [word.strip() for text in listed.values() for word in text.split(",")]
    assert words == [word.lower() for word in words]
    assert all(words)
    assert {"en", "de", "fr", "es", "pt", "it", "nl", "pl", "tr", "ru", "unspaced"} == listed.keys()
