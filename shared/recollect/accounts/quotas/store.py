"""One function per query of `queries.sql`."""

from datetime import datetime, timedelta
from uuid import UUID

from recollect.accounts.quotas.model import Quotas, TenantTotals
from recollect.errors import ErrorCode, NotFound
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


async def find_quotas(tx: Transaction) -> Quotas:
    """The quotas of the tenant's plan. Raises NotFound if the tenant was erased, or has moved away, meanwhile."""
    row = await tx.fetchrow(queries.find_quotas)
    if row is None:
        raise NotFound("This tenant no longer exists.", code=ErrorCode.TENANT_NOT_FOUND)
    return Quotas(**row)


async def take_turn(tx: Transaction, what: str) -> None:
    """Take the turn `what` of the tenant, which one transaction has at a time, until this transaction ends."""
    await tx.execute(queries.take_turn, what=what)


async def count_totals(tx: Transaction) -> TenantTotals:
    """The totals of the tenant, including the writes of this transaction."""
    row = await tx.fetchrow(queries.count_totals)
    assert row is not None
    return TenantTotals(**row)


async def count_embedded(tx: Transaction, since: datetime) -> int:
    """The number of passages of the tenant that were embedded in the day that begins at `since`."""
    embedded: int = await tx.fetchval(queries.count_embedded, since=since)
    return embedded


async def most_nodes(tx: Transaction) -> int:
    """The number of nodes in the largest graph among those that the caller may use."""
    allowed: list[UUID] | None = None if tx.caller.graphs is None else list(tx.caller.graphs)
    nodes: int = await tx.fetchval(queries.most_nodes, allowed=allowed)
    return nodes


async def tenants_with_uncounted_rows(session: Session) -> list[UUID]:
    """Active tenants with graphs whose older rows are not counted."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_uncounted_rows)]


async def find_uncounted_graph(tx: Transaction) -> UUID | None:
    """A graph of the tenant whose older rows are not counted."""
    graph_id: UUID | None = await tx.fetchval(queries.find_uncounted_graph)
    return graph_id


async def count_missing_bytes(tx: Transaction, graph_id: UUID) -> int:
    """The bytes of a graph's rows that its head does not include; 0 where the graph was deleted meanwhile."""
    missing: int | None = await tx.fetchval(queries.count_missing_bytes, graph_id=graph_id)
    return missing or 0


async def add_missing_bytes(tx: Transaction, graph_id: UUID, missing: int) -> None:
    """Add these bytes to a graph's head, unless somebody else did."""
    await tx.execute(queries.add_missing_bytes, graph_id=graph_id, missing=missing)


async def take_time(tx: Transaction, timeout: timedelta) -> None:
    """Let each statement of this transaction take this long."""
    await tx.execute(queries.take_time, milliseconds=round(timeout / timedelta(milliseconds=1)))
