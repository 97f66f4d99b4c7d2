"""Moments that PostgreSQL's driver would store as others, or could not read again."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidInput
from recollect.times import (
    FIRST,
    LAST,
    MAX_ZONE,
    NEEDED,
    explain_time_error,
    from_milliseconds,
    in_zone,
    inclusive_upper_bound,
    lacks_offset,
    milliseconds,
    offset_minutes,
    parse_local,
    parse_moment,
    require_zone,
    storable,
    with_offset,
    zone_of,
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
        assert explain_time_error(str(error.value)) == NEEDED
    assert explain_time_error("Expected `int`, got `str`") == "Expected `int`, got `str`"


MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))


@given(MOMENTS)
def test_a_time_in_milliseconds_includes_its_whole_millisecond(at: datetime) -> None:
    truncated = datetime.fromisoformat(at.isoformat(timespec="milliseconds"))
    assert truncated <= at <= inclusive_upper_bound(truncated)
    assert inclusive_upper_bound(truncated) - truncated < timedelta(milliseconds=1)
    assert from_milliseconds(milliseconds(at)) == truncated


@given(MOMENTS.filter(lambda at: at.microsecond % 1_000))
def test_a_time_in_microseconds_is_exact(at: datetime) -> None:
    assert inclusive_upper_bound(at) == at


def test_the_last_millisecond_of_the_calendar_ends_at_its_last_moment() -> None:
    assert inclusive_upper_bound(datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)) == LAST


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


def test_a_zone_is_known_by_its_name(subtests: pytest.Subtests) -> None:
    for name in ("UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "Pacific/Chatham"):
        with subtests.test(name):
            assert require_zone(name, "time_zone") == name
            assert zone_of(name) is not None
    assert zone_of(None) is UTC


@pytest.mark.proves("security: time-zones-by-name")
def test_what_is_no_name_of_a_zone_is_refused_and_no_path_is_read(subtests: pytest.Subtests) -> None:
    for name in (
        "",
        "Mars/Olympus",
        "europe/berlin",
        "Europe",
        "../../../etc/passwd",
        "/etc/passwd",
        "Europe/../Europe/Berlin",
        "right/UTC",
        "posixrules",
        "Europe/Berlin\n",
        "Europe/Berlin\x00",
        "E" * (MAX_ZONE + 1),
        "+01:00",
        "\ud800",
    ):
        with subtests.test(ascii(name)):
            with pytest.raises(InvalidInput) as refused:
                require_zone(name, "settings.time_zone")
            assert refused.value.path == "settings.time_zone"
            assert zone_of(name) is UTC


def test_a_day_is_that_of_the_zone(subtests: pytest.Subtests) -> None:
    berlin = zone_of("Europe/Berlin")
    for text, first, last in [
        ("2026-11-25", "2026-11-24T23:00:00+00:00", "2026-11-25T22:59:59.999999+00:00"),
        ("2026-03-29", "2026-03-28T23:00:00+00:00", "2026-03-29T21:59:59.999999+00:00"),
        ("2026-10-25", "2026-10-24T22:00:00+00:00", "2026-10-25T22:59:59.999999+00:00"),
        ("2026-11-25T10:00", "2026-11-25T09:00:00+00:00", "2026-11-25T09:00:00.000999+00:00"),
        ("2026-03-29T02:30", "2026-03-29T01:30:00+00:00", "2026-03-29T01:30:00.000999+00:00"),
        ("2026-11-25T10:00+05:00", "2026-11-25T05:00:00+00:00", "2026-11-25T05:00:00.000999+00:00"),
    ]:
        with subtests.test(text):
            assert parse_moment(text, zone=berlin).isoformat() == first
            assert parse_moment(text, zone=berlin, last=True).isoformat() == last


def test_a_time_keeps_the_offset_that_it_was_given_in() -> None:
    berlin = zone_of("Europe/Berlin")
    assert parse_local("2026-11-25T10:00", zone=berlin).isoformat() == "2026-11-25T10:00:00+01:00"
    assert parse_local("1850-01-01T10:00", zone=berlin).utcoffset() == timedelta(), "an offset with seconds"
    at = datetime(2026, 11, 25, 10, tzinfo=timezone(timedelta(hours=13, minutes=45)))
    assert offset_minutes(at) == 825
    assert with_offset(at.astimezone(UTC), 825).isoformat() == at.isoformat()
    assert offset_minutes(at.astimezone(UTC)) is None, "UTC does not say where it was"


def test_the_ends_of_the_calendar_are_read_in_any_zone() -> None:
    for moment in (FIRST, LAST):
        for zone in ("Pacific/Kiritimati", "Etc/GMT+12"):
            assert in_zone(moment, zone_of(zone)) == moment
    assert parse_moment("9999-12-31", last=True) == LAST


def test_what_names_no_offset_is_known() -> None:
    assert all(map(lacks_offset, ("2026-11-25", "2026-11-25T10:00", "2026-11-25 10:00:00.5")))
    assert not any(map(lacks_offset, ("42", "2026-11-25T10:00Z", "2026-11-25T10:00+01:00", "1700000000000", "x")))
