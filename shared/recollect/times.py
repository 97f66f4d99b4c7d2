"""Moments as PostgreSQL and its driver can hold them, and as callers are asked for them."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK, _MILLISECOND = timedelta(microseconds=1), timedelta(milliseconds=1)
FIRST, LAST = datetime.min.replace(tzinfo=UTC) + _TICK, datetime.max.replace(tzinfo=UTC) - _TICK
"""Beyond these lie the moments by which the driver says infinity: they come back without a zone."""

NEEDED = "A time with its offset is needed, such as 2026-11-20T00:00:00Z"


def in_plain_words(said: str) -> str:
    """What msgspec says of a text that it does not read as a time, with an example; all else that it says, as it is."""
    return NEEDED if said.startswith(("Invalid RFC3339", "Expected `datetime` with a timezone")) else said


def storable(time: datetime) -> datetime:
    """The moment in UTC, that which lies next to it where it is the calendar's first or last.

    Raises OverflowError for one that its offset takes out of the calendar: it could be stored, and never be read again.
    """
    return min(max(time.astimezone(UTC), FIRST), LAST)


def through(time: datetime) -> datetime:
    """The last moment that a time means where it is an upper bound: the end of its millisecond.

    Times are kept in microseconds, and some dialects tell them cut to milliseconds, as JavaScript does: what was told
    of a thing must find it. A time that says microseconds means just itself. Lower bounds need no such care.
    """
    return time if time.microsecond % 1_000 else min(time + (_MILLISECOND - _TICK), LAST)


def from_milliseconds(milliseconds: int) -> datetime:
    """The moment that many milliseconds after 1970 began; raises OverflowError beyond the calendar."""
    return storable(EPOCH + timedelta(milliseconds=milliseconds))


def milliseconds(at: datetime) -> int:
    """Whole milliseconds since 1970."""
    return (at - EPOCH) // _MILLISECOND
