"""Moments that PostgreSQL's driver takes for others, or cannot read again."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.times import FIRST, LAST, NEEDED, from_milliseconds, in_plain_words, milliseconds, storable, through

EAST = timezone(timedelta(hours=14))


def test_a_moment_stays_what_it_is_in_utc() -> None:
    at = datetime(2026, 1, 31, 12, tzinfo=EAST)
    assert storable(at) == at
    assert storable(at).tzinfo is UTC


def test_the_ends_of_the_calendar_are_not_infinity() -> None:
    assert storable(datetime.min.replace(tzinfo=UTC)) == FIRST
    assert storable(datetime.max.replace(tzinfo=UTC)) == LAST


@pytest.mark.parametrize(
    "at", [datetime.min.replace(tzinfo=EAST), datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))]
)
def test_what_an_offset_takes_out_of_the_calendar_is_refused(at: datetime) -> None:
    with pytest.raises(OverflowError):
        storable(at)


def test_what_is_asked_for_has_an_example() -> None:
    example = NEEDED.rpartition(" ")[2]
    assert msgspec.convert(example, datetime).tzinfo is UTC
    for text in ("2026-11-20", "2026-11-20T00:00:00", "yesterday"):
        with pytest.raises(msgspec.ValidationError) as error:
            msgspec.convert(text, Annotated[datetime, msgspec.Meta(tz=True)])
        assert in_plain_words(str(error.value)) == NEEDED
    assert in_plain_words("Expected `int`, got `str`") == "Expected `int`, got `str`"


MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))


@given(MOMENTS)
def test_what_was_told_in_milliseconds_means_the_moment_that_was_told(at: datetime) -> None:
    told = datetime.fromisoformat(at.isoformat(timespec="milliseconds"))
    assert told <= at <= through(told)
    assert through(told) - told < timedelta(milliseconds=1)
    assert from_milliseconds(milliseconds(at)) == told


@given(MOMENTS.filter(lambda at: at.microsecond % 1_000))
def test_what_was_told_in_microseconds_means_just_that(at: datetime) -> None:
    assert through(at) == at


def test_the_end_of_the_calendar_has_no_moment_after_it() -> None:
    assert through(datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)) == LAST
