"""Moments that PostgreSQL's driver would store as others, or could not read again."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.times import (
    FIRST,
    LAST,
    NEEDED,
    from_milliseconds,
    in_plain_words,
    milliseconds,
    parse_moment,
    storable,
    through,
)

EAST = timezone(timedelta(hours=14))


def test_a_moment_is_converted_to_utc() -> None:
    at = datetime(2026, 1, 31, 12, tzinfo=EAST)
    assert storable(at) == at
    assert storable(at).tzinfo is UTC


def test_the_ends_of_the_calendar_are_not_stored_as_infinity() -> None:
    assert storable(datetime.min.replace(tzinfo=UTC)) == FIRST
    assert storable(datetime.max.replace(tzinfo=UTC)) == LAST


@pytest.mark.parametrize(
    "at", [datetime.min.replace(tzinfo=EAST), datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))]
)
def test_a_moment_that_its_offset_moves_out_of_the_calendar_is_refused(at: datetime) -> None:
    with pytest.raises(OverflowError):
        storable(at)


def test_the_message_about_a_time_has_a_valid_example() -> None:
    example = NEEDED.rpartition(" ")[2]
    assert msgspec.convert(example, datetime).tzinfo is UTC
    for text in ("2026-11-20", "2026-11-20T00:00:00", "yesterday"):
        with pytest.raises(msgspec.ValidationError) as error:
            msgspec.convert(text, Annotated[datetime, msgspec.Meta(tz=True)])
        assert in_plain_words(str(error.value)) == NEEDED
    assert in_plain_words("Expected `int`, got `str`") == "Expected `int`, got `str`"


MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))


@given(MOMENTS)
def test_a_time_in_milliseconds_includes_its_whole_millisecond(at: datetime) -> None:
    truncated = datetime.fromisoformat(at.isoformat(timespec="milliseconds"))
    assert truncated <= at <= through(truncated)
    assert through(truncated) - truncated < timedelta(milliseconds=1)
    assert from_milliseconds(milliseconds(at)) == truncated


@given(MOMENTS.filter(lambda at: at.microsecond % 1_000))
def test_a_time_in_microseconds_is_exact(at: datetime) -> None:
    assert through(at) == at


def test_the_last_millisecond_of_the_calendar_ends_at_its_last_moment() -> None:
    assert through(datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)) == LAST


def test_a_day_or_a_time_without_an_offset_is_in_utc(subtests: pytest.Subtests) -> None:
    cases = [
        ("2026-06-01", "2026-06-01T00:00:00+00:00", "2026-06-01T23:59:59.999999+00:00"),
        ("2026-06-01T10:00", "2026-06-01T10:00:00+00:00", "2026-06-01T10:00:00.000999+00:00"),
        ("2026-06-01T10:00:00.000001", "2026-06-01T10:00:00.000001+00:00", "2026-06-01T10:00:00.000001+00:00"),
        ("2026-06-01T10:00:00+02:00", "2026-06-01T08:00:00+00:00", "2026-06-01T08:00:00.000999+00:00"),
    ]
    for text, first, last in cases:
        with subtests.test(text):
            assert parse_moment(text).isoformat() == first
            assert parse_moment(text, last=True).isoformat() == last
