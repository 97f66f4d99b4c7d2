"""Moments that PostgreSQL's driver takes for others, or cannot read again."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated

import msgspec
import pytest

from recollect.times import FIRST, LAST, NEEDED, in_plain_words, storable

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
