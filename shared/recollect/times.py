"""Times as PostgreSQL and its driver can store them, and as callers give them."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK, _MILLISECOND = timedelta(microseconds=1), timedelta(milliseconds=1)
_DAY = timedelta(days=1) - _TICK
FIRST, LAST = datetime.min.replace(tzinfo=UTC) + _TICK, datetime.max.replace(tzinfo=UTC) - _TICK
"""The driver uses the times beyond these for infinity: they come back without a zone."""

NEEDED = "A time needs a UTC offset, such as 2026-11-20T00:00:00Z"


def in_plain_words(message: str) -> str:
    """A message of msgspec; one about a text that is no time is replaced by one with an example."""
    return NEEDED if message.startswith(("Invalid RFC3339", "Expected `datetime` with a timezone")) else message


def storable(time: datetime) -> datetime:
    """The time in UTC; the first and the last time of the calendar are moved to their neighbours.

    Raises OverflowError for a time that its offset moves out of the calendar: it could be stored, but not read again.
    """
    return min(max(time.astimezone(UTC), FIRST), LAST)


def through(time: datetime) -> datetime:
    """The time to compare with where a time is an upper bound: the end of its millisecond.

    Times are stored in microseconds, and some dialects show them cut to milliseconds, as JavaScript does: a search by
    the shown time must find the row. A time with microseconds stays as it is. Lower bounds need no change.
    """
    return time if time.microsecond % 1_000 else min(time + (_MILLISECOND - _TICK), LAST)


def parse_moment(text: str, *, last: bool = False) -> datetime:
    """Parse a day or a time, in UTC where it names no offset; raises ValueError or OverflowError.

    `last`: the last moment of the day or millisecond, not the first.
    """
    at = datetime.fromisoformat(text)
    at = storable(at if at.tzinfo else at.replace(tzinfo=UTC))
    if not last:
        return at
    is_day = "T" not in text and ":" not in text
    return through(storable(at + _DAY) if is_day else at)


def from_milliseconds(milliseconds: int) -> datetime:
    """The time this many milliseconds after the beginning of 1970; raises OverflowError beyond the calendar."""
    return storable(EPOCH + timedelta(milliseconds=milliseconds))


def milliseconds(at: datetime) -> int:
    """Whole milliseconds since 1970."""
    return (at - EPOCH) // _MILLISECOND
