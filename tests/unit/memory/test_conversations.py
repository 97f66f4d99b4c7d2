"""Conversations as turns, and turns as memories."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from recollect.memory.conversations import memories_of
from recollect.text.turns import MAX_TURN, Turn, speaker_of, texts_of, turns_of_text

NOON = datetime(2027, 1, 31, 12, 0, tzinfo=UTC)


def told(text: str) -> list[str]:
    return [f"{turn.speaker or ''}|{turn.text}" for turn in turns_of_text(text, UTC)]


def test_plain_texts(subtests: pytest.Subtests) -> None:
    for text, turns in (
        ("", []),
        ("User: hi\nAssistant: hello", ["User|hi", "Assistant|hello"]),
        ("User: hi\n\nthere\nNote: bring tea\nAI: yes", ["User|hi\n\nthere\nNote: bring tea", "AI|yes"]),
        ("Ada: one\nBob: two\nAda: three", ["Ada|one\nBob: two", "Ada|three"]),
        ("Ada: one\nBob: two\nAda: three\nBob: four", ["Ada|one", "Bob|two", "Ada|three", "Bob|four"]),
        ("Before it\nuser: hi", ["|Before it", "user|hi"]),
        ("Only a note: one line", ["|Only a note: one line"]),
        ("https://a.example: x\nhttps://a.example: y", ["|https://a.example: x\nhttps://a.example: y"]),
        ("10:30 tea\n10:30 tea", ["|10:30 tea\n10:30 tea"]),
        ("Ада: привет\r\nБорис: да\r\nАда: и?\r\nБорис: нет", ["Ада|привет", "Борис|да", "Ада|и?", "Борис|нет"]),
        ("小明：你好\n小红：早\n小明：走吧\n小红：好", ["小明|你好", "小红|早", "小明|走吧", "小红|好"]),
        ("SYSTEM: be kind\nUser: hi", ["system|be kind", "User|hi"]),
    ):
        with subtests.test(text=text):
            assert told(text) == turns


def test_times_of_a_plain_text_are_those_of_the_zone_unless_they_say_otherwise() -> None:
    text = "[2027-01-31 12:00] User: a\n2027-01-31T12:00:00Z AI: b\n[2027-02-31] User: c\n2027-01-31 AI: d"
    berlin = ZoneInfo("Europe/Berlin")
    assert [turn.at for turn in turns_of_text(text, berlin)] == [
        datetime(2027, 1, 31, 12, tzinfo=berlin),
        NOON,
        None,
        datetime(2027, 1, 31, tzinfo=berlin),
    ]


def test_a_name_tells_who_speaks_before_the_role_does() -> None:
    assert [speaker_of("user", "Ada"), speaker_of("user", None), speaker_of(None, "Ada"), speaker_of(None, None)] == [
        "Ada",
        "User",
        "Ada",
        None,
    ]
    assert speaker_of("tool", "search") == "tool"


def test_nobody_says_instructions_results_and_blanks() -> None:
    turns = [Turn("be kind", "system"), Turn("42", "tool"), Turn(" \n", "User"), Turn("\u200b", "User"), Turn("hi")]
    assert [[memory.text for memory in memories] for memories in memories_of(turns, "t")] == [[], [], [], [], ["hi"]]


def test_a_turn_that_says_the_same_again_is_the_same_memory() -> None:
    later = NOON + timedelta(hours=1)
    [[first], [second]] = memories_of([Turn("yes", "Ada", NOON), Turn("yes", "Ada", later)], "t", tags=["x"])
    assert first == second
    assert (first.text, first.thread, first.at, first.tags) == ("Ada: yes", "t", NOON, ("x",))


def test_the_clock_of_a_turn_is_kept() -> None:
    at = NOON.astimezone(timezone(timedelta(hours=9)))
    [[memory]] = memories_of([Turn("yes", "Ada", at)], "t")
    assert (memory.at, memory.said_offset) == (NOON, 540)


def test_a_long_turn_is_cut_between_its_paragraphs_and_loses_nothing() -> None:
    paragraph = "word " * 700
    words = "\n\n".join([paragraph.strip()] * 8)
    texts = list(texts_of(Turn(words, "Ada")))
    assert all(len(text) <= MAX_TURN and text.startswith("Ada: ") for text in texts)
    assert " ".join(text.removeprefix("Ada: ") for text in texts).split() == words.split()
    assert [len(text) for text in texts_of(Turn("x" * 25_000, "Ada"))] == [MAX_TURN, MAX_TURN, 5_015]
