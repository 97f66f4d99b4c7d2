"""One function per query of `queries.sql`."""

from datetime import datetime
from uuid import UUID

from recollect.accounts.quotas.model import Quotas, TenantTotals
from recollect.errors import ErrorCode, NotFound
from recollect.platform.sql import Queries
from recollect.platform.transactions import Transaction

queries = Queries(__package__)


async def find_quotas(tx: Transaction) -> Quotas:
    """Those of the tenant's plan. Raises NotFound where the tenant was erased, or has moved away, meanwhile."""
    row = await tx.fetchrow(queries.find_quotas)
    if row is None:
        raise NotFound("There is no such tenant any more.", code=ErrorCode.TENANT_NOT_FOUND)
    return Quotas(**row)


async def take_turn(tx: Transaction, what: str) -> None:
    """Be the only one of the tenant that adds to something bounded, until this transaction ends."""
    await tx.execute(queries.take_turn, what=what)


async def count_totals(tx: Transaction) -> TenantTotals:
    """What the tenant stores, with what this transaction wrote and all that was committed."""
    row = await tx.fetchrow(queries.count_totals)
    assert row is not None
    return TenantTotals(**row)


async def count_embedded(tx: Transaction, since: datetime) -> int:
    """Passages of the tenant that were given vectors within a day from then on."""
    embedded: int = await tx.fetchval(queries.count_embedded, since=since)
    return embedded


async def most_nodes(tx: Transaction) -> int:
    """Entities, facts and placeholders of that graph which has the most, of those that the caller reaches."""
    reached: list[UUID] | None = None if tx.caller.graphs is None else list(tx.caller.graphs)
    nodes: int = await tx.fetchval(queries.most_nodes, allowed=reached)
    return nodes
