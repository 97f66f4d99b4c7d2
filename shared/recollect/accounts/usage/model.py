"""The counts of a tenant's calls, and the spans for which they are read."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Literal
from uuid import UUID

from recollect.errors import InvalidInput
from recollect.times import FIRST, NEEDED, storable

Kind = Literal["tool", "resource", "route", "work"]
Per = Literal["hour", "day", "month", "all"]
Step = Literal["hour", "day", "week"]

HOUR_SECONDS = 3600
DEFAULT_SPAN = timedelta(days=1)
DEFAULT_DAYS = timedelta(days=30)
MAX_SPAN = timedelta(days=366)
MAX_HOURS = 31 * 24
"""Hours of a series that has a point for each hour, at most."""

DURATION_BOUNDS = (2, 5, 10, 20, 35, 50, 75, 100, 150, 250, 500, 1_000, 2_500, 5_000, 10_000)
"""Upper bounds, in milliseconds, of the ranges in which durations are counted. A last range holds what took longer."""


@dataclass(frozen=True, slots=True)
class Counter:
    """The key of a count: an hour (number of hours since 1970, UTC) and one tool, resource, route or kind of work."""

    hour: int
    kind: Kind
    name: str

    @property
    def since(self) -> datetime:
        """When the hour began."""
        return datetime.fromtimestamp(self.hour * HOUR_SECONDS, UTC)


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts. `passages`: passages that were embedded. `bytes_received`: bytes of request bodies.

    `durations`: the calls whose duration lies in each range of DURATION_BOUNDS; empty where none was timed.
    """

    calls: int = 0
    errors: int = 0
    passages: int = 0
    bytes_received: int = 0
    durations: tuple[int, ...] = ()

    def __add__(self, other: "Counts") -> "Counts":
        """The sum of both."""
        return Counts(
            self.calls + other.calls,
            self.errors + other.errors,
            self.passages + other.passages,
            self.bytes_received + other.bytes_received,
            tuple(map(sum, zip_longest(self.durations, other.durations, fillvalue=0))),
        )


@dataclass(frozen=True, slots=True)
class TenantUsage:
    """The counts of one tenant that a process has not stored yet; `keys`: when each API key was last used."""

    counted: dict[Counter, Counts]
    keys: dict[UUID, datetime]


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What was counted from `since` on, for an hour, a day, a month or all.

    `kind` is `tool`, `resource`, `route` or `work` (of the worker). `passages`: given their vectors.
    `p50_ms`, `p95_ms`: within how many milliseconds half of the calls, and 95 % of them, were answered; None where
    none was timed.
    """

    since: datetime
    kind: str
    name: str
    calls: int
    errors: int
    passages: int
    bytes_received: int
    p50_ms: float | None = None
    p95_ms: float | None = None


@dataclass(frozen=True, slots=True)
class UsagePoint:
    """What was counted in the hour or day that began at `since`, of all that was asked for together; also nothing.

    `p50_ms`, `p95_ms`: as in a UsageRow.
    """

    since: datetime
    calls: int
    errors: int
    passages: int
    bytes_received: int
    p50_ms: float | None = None
    p95_ms: float | None = None


@dataclass(frozen=True, slots=True)
class UsageSpan:
    """From the hour in which `since` lies up to `until`, listed hour by hour, or in sums.

    `after`: only rows behind the one with this `since`, kind and name.
    """

    since: datetime
    until: datetime
    per: Per | Step = "hour"
    after: tuple[datetime, str, str] | None = None


@dataclass(frozen=True, slots=True)
class StoredCounts:
    """What a graph holds now, what has expired and waits to be purged included.

    `passage_bytes`: what its live passages take with their vectors; about right, by a sample of them.
    """

    graph: str
    entities: int
    facts: int
    observations: int
    relations: int
    passages: int
    passage_bytes: int


_IN_RANGE = tuple(
    tuple(int(index == at) for index in range(len(DURATION_BOUNDS) + 1)) for at in range(len(DURATION_BOUNDS) + 1)
)


def count_duration(seconds: float) -> tuple[int, ...]:
    """One call that took so long, as `Counts.durations`."""
    return _IN_RANGE[bisect_left(DURATION_BOUNDS, seconds * 1_000)]


def percentile_ms(durations: Sequence[int | None], share: float) -> float | None:
    """Within how many milliseconds this share of the calls was answered; None where none was timed.

    Within a range durations are taken to be spread evenly, so that the result is as exact as its range is narrow. For
    what took longer than the last bound, it is that bound.
    """
    counts = [count or 0 for count in durations]
    wanted, below = sum(counts) * share, 0
    for lower, upper, count in zip((0, *DURATION_BOUNDS), DURATION_BOUNDS, counts, strict=False):
        if count and below + count >= wanted:
            return round(lower + (upper - lower) * (wanted - below) / count, 1)
        below += count
    return float(DURATION_BOUNDS[-1]) if any(counts) else None


def usage_span(
    since: datetime | None, until: datetime | None, per: Per | Step, *, now: datetime, cursor: str | None = None
) -> UsageSpan:
    """What is asked for: by default the last day; with a cursor the rest of what the page before was of.

    Raises InvalidInput, with the names `from` and `to` have outside.
    """
    if cursor is not None:
        return _parse_cursor(cursor, per, now=now)
    until = now if until is None else _utc(until, "to")
    since = max(until, datetime.min.replace(tzinfo=UTC) + DEFAULT_SPAN) - DEFAULT_SPAN if since is None else since
    since = max(_utc(since, "from").replace(minute=0, second=0, microsecond=0), FIRST)
    if until < since:
        raise InvalidInput("Must not be before from", path="to")
    if until - since > MAX_SPAN:
        raise InvalidInput(f"More than {MAX_SPAN.days} days lie between from and to", path="from")
    return UsageSpan(since, until, per)


def series_span(since: datetime | None, until: datetime | None, per: Step, *, now: datetime) -> UsageSpan:
    """What a series is of: by default the last day, or the last 30 where it is listed by days. Raises InvalidInput."""
    until = now if until is None else _utc(until, "to")
    if since is None and per == "day":
        since = max(until, datetime.min.replace(tzinfo=UTC) + DEFAULT_DAYS) - DEFAULT_DAYS
    span = usage_span(since, until, per, now=now)
    if per == "hour" and span.until - span.since > timedelta(hours=MAX_HOURS):
        raise InvalidInput(f"More than {MAX_HOURS} hours lie between from and to: ask by day", path="from")
    return span


def _utc(time: datetime, path: str) -> datetime:
    if time.tzinfo is None:
        raise InvalidInput(NEEDED, path=path)
    try:
        return storable(time)
    except OverflowError:
        raise InvalidInput("Outside the years 1 to 9999", path=path) from None


def cursor_of(span: UsageSpan, row: UsageRow) -> str:
    """What stands for a row of a span, to go on after it."""
    return f"{span.since.isoformat()} {span.until.isoformat()} {row.since.isoformat()} {row.kind} {row.name}"


def _parse_cursor(cursor: str, per: Per | Step, *, now: datetime) -> UsageSpan:
    """The rest of the span that a cursor is of, whatever the time is now; raises InvalidInput."""
    try:
        since, until, began, kind, name = cursor.split(" ", 4)
        span = usage_span(datetime.fromisoformat(since), datetime.fromisoformat(until), per, now=now)
        return replace(span, after=(_utc(datetime.fromisoformat(began), "cursor"), kind, name))
    except (ValueError, InvalidInput):
        raise InvalidInput("This is not a cursor that an earlier page returned", path="cursor") from None
