"""One function per query of `queries.sql`."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from recollect.accounts.usage.model import (
    Counter,
    Counts,
    StoredCounts,
    UsagePoint,
    UsageRow,
    UsageSpan,
    percentile_ms,
)
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


async def add_usage(tx: Transaction, counted: Mapping[Counter, Counts]) -> None:
    """Add to the counts of the tenant."""
    counters, counts = list(counted), list(counted.values())
    await tx.execute(
        queries.add_usage,
        since=[counter.since for counter in counters],
        kinds=[counter.kind for counter in counters],
        names=[counter.name for counter in counters],
        calls=[count.calls for count in counts],
        errors=[count.errors for count in counts],
        passages=[count.passages for count in counts],
        bytes_received=[count.bytes_received for count in counts],
        durations=[_array_text(count.durations) for count in counts],
    )


async def count_calls(tx: Transaction, name: str, *, since: datetime) -> int:
    """The number of times that the worker did something for the tenant since a time."""
    return await tx.fetchval(queries.count_calls, name=name, since=since)


async def read_usage(tx: Transaction, span: UsageSpan, *, limit: int) -> list[UsageRow]:
    """The counts of the tenant, oldest first."""
    since, kind, name = span.after or (None, None, None)
    rows = await tx.fetch(
        queries.read_usage,
        since=span.since,
        until=span.until,
        per=span.per,
        after_since=since,
        after_kind=kind,
        after_name=name,
        limit=limit,
    )
    return [_usage_row(row) for row in rows]


async def read_series(tx: Transaction, span: UsageSpan, *, kind: str | None, name: str | None) -> list[UsagePoint]:
    """The counts of the tenant in each hour, day or week, oldest first; of one kind or name, or of any (None)."""
    rows = await tx.fetch(queries.read_series, since=span.since, until=span.until, per=span.per, kind=kind, name=name)
    return [_usage_point(row) for row in rows]


async def list_stored(
    tx: Transaction, *, graph_id: UUID | None, after: str, limit: int, sample: int
) -> list[StoredCounts]:
    """The contents of the graphs that the caller may use, by name, after the name `after`."""
    allowed = None if tx.caller.graphs is None else list(tx.caller.graphs)
    return await tx.fetch_objects(
        queries.list_stored, StoredCounts, after=after, limit=limit, allowed=allowed, graph_id=graph_id, sample=sample
    )


async def tenants_with_old_usage(session: Session, *, retention: timedelta) -> list[UUID]:
    """Active tenants with usage that is older than `retention`."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_old_usage, retention=retention)]


async def forget_usage(tx: Transaction, *, retention: timedelta, limit: int) -> int:
    """Delete the oldest usage that is older than `retention`; return the number of rows."""
    return await tx.fetchval(queries.forget_usage, retention=retention, limit=limit)


def _usage_row(row: asyncpg.Record) -> UsageRow:
    return UsageRow(row["since"], row["kind"], row["name"], *_counts(row))


def _usage_point(row: asyncpg.Record) -> UsagePoint:
    return UsagePoint(row["since"], *_counts(row))


def _counts(row: asyncpg.Record) -> tuple[int, int, int, int, float | None, float | None]:
    """What rows and points have in common, in their order."""
    half, most = (percentile_ms(row["durations"], share) for share in (0.5, 0.95))
    return row["calls"], row["errors"], row["passages"], row["bytes_received"], half, most


def _array_text(durations: Sequence[int]) -> str:
    return f"{{{','.join(map(str, durations))}}}"
