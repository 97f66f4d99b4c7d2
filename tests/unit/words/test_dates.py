"""Times that a text mentions, as ranges of days."""

from datetime import date
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.words.dates.phrase_tables import ENGLISH, LANGUAGES
from recollect.words.dates.phrases import DIGITS, MAX_RANGES, Language, date_ranges, times_in, words_of
from recollect.words.dates.ranges import DateRange

SAID = date(2023, 10, 18)
"""A Wednesday."""


def mentioned(text: str, said: date = SAID) -> list[str]:
    """The ranges of a text, as `first..last`, or the one day."""
    ranges = date_ranges(LANGUAGES, text, said)
    return [str(one.first) if one.first == one.last else f"{one.first}..{one.last}" for one in ranges]


def test_the_dates_that_a_text_mentions_are_found(subtests: pytest.Subtests) -> None:
    for text, ranges in [
        ("I went there yesterday.", ["2023-10-17"]),
        ("The day before yesterday it rained", ["2023-10-16"]),
        ("Tonight we eat", ["2023-10-18"]),
        ("the day after tomorrow", ["2023-10-20"]),
        ("last Saturday", ["2023-10-14"]),
        ("last Wednesday", ["2023-10-11"]),
        ("next Wednesday", ["2023-10-25"]),
        ("on Friday", ["2023-10-13", "2023-10-20"]),
        ("3 days ago", ["2023-10-15"]),
        ("a couple of weeks ago", ["2023-10-01..2023-10-07"]),
        ("two months ago", ["2023-08-01..2023-08-31"]),
        ("ten years ago", ["2013-01-01..2013-12-31"]),
        ("in two weeks", ["2023-10-29..2023-11-04"]),
        ("last week", ["2023-10-09..2023-10-15"]),
        ("in the last two weeks, the past 3 days", ["2023-10-04..2023-10-18", "2023-10-15..2023-10-18"]),
        ("the past few months, the last 2 years", ["2023-07-18..2023-10-18", "2021-10-18..2023-10-18"]),
        ("last weekend", ["2023-10-14..2023-10-15"]),
        ("this weekend", ["2023-10-21..2023-10-22"]),
        ("next month", ["2023-11-01..2023-11-30"]),
        ("last year", ["2022-01-01..2022-12-31"]),
        ("last summer", ["2023-06-01..2023-08-31"]),
        ("winter 2022", ["2022-12-01..2023-02-28"]),
        ("last June, and next June", ["2023-06-01..2023-06-30", "2024-06-01..2024-06-30"]),
        ("on 5 May 2023", ["2023-05-05"]),
        ("on the 5th of May", ["2023-05-05"]),
        ("by July 10, 2022", ["2022-07-10"]),
        ("December 1,2023", ["2023-12-01"]),
        ("on Oct. 13th and 2022-02-28", ["2022-02-28"]),
        ("In June 2021 and in December", ["2021-06-01..2021-06-30", "2023-12-01..2023-12-31"]),
        ("She left in 2020", ["2020-01-01..2020-12-31"]),
        ("29 February", ["2024-02-29"]),
        ("31 April 2023, 30-02-2023 and 2023-13-41", []),
        ("May I march? June is here, for 2020 euros. She sat on the last one for an hour a day.", []),
        ("Er kam gestern und geht morgen.", ["2023-10-17", "2023-10-19"]),
        ("999 years ago and in 999 years", ["1024-01-01..1024-12-31", "3022-01-01..3022-12-31"]),
        ("1,000 years ago, 2.5 years ago and half a year ago", []),
        ("2023-05-01,2023-05-02 and id 5,2023-05-03,x", ["2023-05-01", "2023-05-02", "2023-05-03"]),
        ("this may be wrong, so the baby may cry again may it not", []),
        ("this May, and in march", ["2023-05-01..2023-05-31", "2024-03-01..2024-03-31"]),
        ("at 2023-05-12T10:30:00.5+02:00, 2023-05-13T10:30Z, not 2023-05-14Two", ["2023-05-12", "2023-05-13"]),
        ("this Wednesday and this Thursday", ["2023-10-18", "2023-10-19"]),
        (
            "\u017funday, Fr\u0131day, F\u0130VE days ago, next wee\u212aend",
            ["2023-10-15", "2023-10-22", "2023-10-28..2023-10-29"],
        ),
    ]:
        with subtests.test(text):
            assert mentioned(text) == ranges


def test_days_beyond_the_calendar_are_left_out() -> None:
    assert mentioned("999 years ago, yesterday", date(500, 1, 1)) == ["0499-12-31"]
    assert mentioned("tomorrow, next week, next year, in 9 months", date.max) == []
    assert mentioned("today, on 30 December", date.max) == ["9999-12-30"], "the day after the last cannot be read"
    assert mentioned("in May", date(1, 3, 3)) == ["0001-05-01..0001-05-31"]


@pytest.mark.parametrize(
    ("text", "said", "ranges"),
    [
        ("last summer", date(2023, 7, 5), ["2022-06-01..2022-08-31"]),
        ("last summer", date(2023, 9, 1), ["2023-06-01..2023-08-31"]),
        ("last winter", date(2023, 1, 5), ["2021-12-01..2022-02-28"]),
        ("next month", date(2024, 1, 31), ["2024-02-01..2024-02-29"]),
        ("a month ago", date(2024, 3, 31), ["2024-02-01..2024-02-29"]),
        ("a year ago", date(2024, 2, 29), ["2023-01-01..2023-12-31"]),
        ("last Friday, this Friday", date(2023, 10, 20), ["2023-10-13", "2023-10-20"]),
    ],
)
def test_relative_dates_are_computed_at_the_edges_of_months_and_seasons(
    text: str, said: date, ranges: list[str]
) -> None:
    assert mentioned(text, said) == ranges


@given(st.text("0123456789 -,stndrhafewlmonyug\u0131\u0130\u017f\u212a", max_size=200), st.dates())
def test_any_text_is_parsed_and_the_number_of_ranges_is_bounded(text: str, said: date) -> None:
    ranges = date_ranges(LANGUAGES, text, said)
    assert len(ranges) <= MAX_RANGES
    assert all(one.first <= one.last for one in ranges)


@given(st.dates(date(1950, 1, 1), date(2050, 12, 31)))
def test_a_full_date_is_found_in_each_notation(day: date) -> None:
    written = [
        f"{day:%Y-%m-%d}",
        f"{day.day} {day:%B %Y}",
        f"{day:%B} {day.day}, {day.year}",
        f"{day:%b} {day.day} {day.year}",
    ]
    assert [date_ranges(LANGUAGES, f"It was on {text}.", SAID) for text in written] == [[DateRange.of_day(day)]] * 4


@pytest.mark.parametrize("language", LANGUAGES)
@given(
    st.lists(
        st.sampled_from(["2023", "5", "03", "-", "/", ".", ":", "T12:30", "w07", "in", "since", "version", "room", "x"])
        | st.text(max_size=3)
    ),
    st.sampled_from(["", " "]),
)
def test_texts_without_words_of_times_have_times_in_digits_alone(
    language: Language, parts: list[str], between: str
) -> None:
    """All phrases find what those of digits find, in a text without any other anchor."""
    text = normalize("NFC", between.join(parts))
    without = language.times_in(text, words={DIGITS})
    every = language.times_in(text, words={DIGITS, *language.anchors})
    if language.anchors - {DIGITS} and not language.may_have_times(text, words_of(text) - {DIGITS}):
        assert [(t.start, t.end, t.values) for t in without] == [(t.start, t.end, t.values) for t in every]


def test_only_calendar_dates_are_absolute() -> None:
    times = times_in([ENGLISH], "What did she do in May 2023, last week, on 3 June and yesterday?")
    assert [time.absolute for time in times] == [True, False, True, False]
