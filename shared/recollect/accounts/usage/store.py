"""One function per query of `queries.sql`."""

from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

from recollect.accounts.usage.model import Counter, Counts, StoredCounts, UsageRow, UsageSpan
from recollect.platform.db import Session, Transaction
from recollect.platform.sql import Queries

queries = Queries(__package__)


async def add_usage(tx: Transaction, counted: Mapping[Counter, Counts]) -> None:
    """Add to what is counted of the tenant."""
    counters, counts = list(counted), list(counted.values())
    await tx.execute(
        queries.add_usage,
        tx.tenant_id,
        [counter.since for counter in counters],
        [counter.kind for counter in counters],
        [counter.name for counter in counters],
        [each.calls for each in counts],
        [each.errors for each in counts],
        [each.passages for each in counts],
        [each.bytes_received for each in counts],
    )


async def read_usage(tx: Transaction, span: UsageSpan, *, limit: int) -> list[UsageRow]:
    """What was counted of the tenant, oldest first."""
    place = span.after or (None, None, None)
    rows = await tx.fetch(queries.read_usage, tx.tenant_id, span.since, span.until, span.per, *place, limit)
    return [UsageRow(**row) for row in rows]


async def list_stored(
    tx: Transaction, *, graph_id: UUID | None, after: str, limit: int, sample: int
) -> list[StoredCounts]:
    """What the graphs hold that the caller may use, by name, after the name `after`."""
    allowed = None if tx.caller.graphs is None else list(tx.caller.graphs)
    rows = await tx.fetch(queries.list_stored, tx.tenant_id, after, limit, allowed, graph_id, sample)
    return [StoredCounts(**row) for row in rows]


async def tenants_with_old_usage(session: Session, *, kept: timedelta) -> list[UUID]:
    """Active tenants with usage that is older than it is kept."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_old_usage, kept)]


async def forget_usage(tx: Transaction, *, kept: timedelta, limit: int) -> int:
    """Delete the oldest usage that is older than it is kept; how many rows."""
    gone: int = await tx.fetchval(queries.forget_usage, tx.tenant_id, kept, limit)
    return gone
