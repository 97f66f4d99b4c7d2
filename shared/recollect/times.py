"""Times as PostgreSQL and its driver can store them, and as callers give them."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from recollect.errors import InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK, _MILLISECOND = timedelta(microseconds=1), timedelta(milliseconds=1)
_DAY = timedelta(days=1) - _TICK
FIRST, LAST = datetime.min.replace(tzinfo=UTC) + _TICK, datetime.max.replace(tzinfo=UTC) - _TICK
"""The driver uses the times beyond these for infinity: they come back without a zone."""

NEEDED = "Must be a time, such as 2026-11-20T00:00:00Z"


MAX_ZONE = 64
"""Characters of the name of a time zone, at most."""

_ZONE = re.compile(r"[A-Z][A-Za-z0-9_+/-]{0,63}")
"""Names of the IANA database, without the zones that differ from these in leap seconds alone (`right/…`)."""


_WITHOUT_OFFSET = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?")


def zone_of(name: str | None) -> tzinfo:
    """The time zone of that name; UTC for None, and for a name that no zone has."""
    if name is None:
        return UTC
    return _find_zone(name) or UTC


def require_zone(name: str, path: str) -> str:
    """The name, if a time zone has it; raises InvalidInput."""
    if _find_zone(name) is None:
        raise InvalidInput("Must be a time zone of the IANA database, such as Europe/Berlin or UTC", path=path)
    return name


def _find_zone(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name) if _ZONE.fullmatch(name) else None
    except (KeyError, ValueError, OSError):  # Unknown, badly formed, or a folder of zones.
        return None


def offset_minutes(time: datetime) -> int | None:
    """The minutes by which a time's clock is ahead of UTC; None for UTC itself, which names no zone."""
    offset = time.utcoffset()
    return round(offset / timedelta(minutes=1)) or None if offset else None


def with_offset(time: datetime, minutes: int | None) -> datetime:
    """The same moment by a clock that is so many minutes ahead of UTC (None: not known, so in UTC)."""
    return time if minutes is None else in_zone(time, timezone(timedelta(minutes=minutes)))


def in_zone(time: datetime, zone: tzinfo) -> datetime:
    """The same moment by the clocks of a zone; as it is where those are beyond the calendar."""
    try:
        return time.astimezone(zone)
    except OverflowError:
        return time


def explain_time_error(message: str) -> str:
    """A message of msgspec; one about a text that is no time is replaced by one with an example."""
    return NEEDED if message.startswith(("Invalid RFC3339", "Expected `datetime` with a timezone")) else message


def storable(time: datetime) -> datetime:
    """The time in UTC; the first and the last time of the calendar are moved to their neighbours.

    Raises OverflowError for a time that its offset moves out of the calendar: it could be stored, but not read again.
    """
    return min(max(time.astimezone(UTC), FIRST), LAST)


def inclusive_upper_bound(time: datetime) -> datetime:
    """The time to compare with where a time is an upper bound: the end of its millisecond.

    Times are stored in microseconds, and some dialects show them cut to milliseconds, as JavaScript does: a search by
    the shown time must find the row. A time with microseconds stays as it is. Lower bounds need no change.
    """
    return time if time.microsecond % 1_000 else min(time + (_MILLISECOND - _TICK), LAST)


def lacks_offset(text: str) -> bool:
    """Whether a text is a day, or a time without an offset."""
    return _WITHOUT_OFFSET.fullmatch(text) is not None


def parse_moment(text: str, *, last: bool = False, zone: tzinfo = UTC) -> datetime:
    """Parse a day or a time, of `zone` where it names no offset; in UTC. Raises ValueError or OverflowError.

    `last`: the last moment of the day or millisecond, not the first.
    """
    return storable(parse_local(text, last=last, zone=zone))


def parse_local(text: str, *, last: bool = False, zone: tzinfo = UTC) -> datetime:
    """As `parse_moment`, with the offset that the time names, or that of the zone."""
    at = datetime.fromisoformat(text)
    at = at if at.tzinfo else _in_whole_minutes(at.replace(tzinfo=zone))
    if not last:
        return at
    is_day = "T" not in text and ":" not in text
    return inclusive_upper_bound(_end_of_day(at) if is_day else at)


def _in_whole_minutes(at: datetime) -> datetime:
    """The time; in UTC where its offset has seconds, as before there were time zones: not all may read such."""
    offset = at.utcoffset()
    return at.astimezone(UTC) if offset and offset % timedelta(minutes=1) else at


def _end_of_day(at: datetime) -> datetime:
    """The last moment of the day that begins with this one; days of a zone may have 23 or 25 hours."""
    if at.date() == datetime.max.date():
        return at + _DAY
    return (at + timedelta(days=1)).astimezone(UTC) - _TICK


def from_milliseconds(milliseconds: int) -> datetime:
    """The time this many milliseconds after the beginning of 1970; raises OverflowError beyond the calendar."""
    return storable(EPOCH + timedelta(milliseconds=milliseconds))


def milliseconds(at: datetime) -> int:
    """Whole milliseconds since 1970."""
    return (at - EPOCH) // _MILLISECOND
