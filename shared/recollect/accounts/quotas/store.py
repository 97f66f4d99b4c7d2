"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from recollect.accounts.quotas.model import Quotas, TenantTotals, TenantUse
from recollect.errors import ErrorCode, NotFound
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction

queries = Queries(__package__)


async def find_quotas(tx: Transaction) -> Quotas:
    """The quotas of the tenant's plan. Raises NotFound if the tenant was erased or moved in the meantime."""
    row = await tx.fetchrow(queries.find_quotas)
    if row is None:
        raise NotFound("This tenant no longer exists.", code=ErrorCode.TENANT_NOT_FOUND)
    return Quotas(**row)


async def lock_quota(tx: Transaction, what: str) -> None:
    """Take the turn `what` of the tenant, which one transaction has at a time, until this transaction ends."""
    await tx.execute(queries.lock_quota, what=what)


async def count_totals(tx: Transaction) -> TenantTotals:
    """The totals of the tenant, including the writes of this transaction."""
    row = await tx.fetchrow(queries.count_totals)
    assert row is not None
    return TenantTotals(**row)


async def count_embedded(tx: Transaction, since: datetime) -> int:
    """The number of passages of the tenant that were embedded in the day that begins at `since`."""
    return await tx.fetchval(queries.count_embedded, since=since)


async def most_nodes(tx: Transaction) -> int:
    """The number of nodes in the largest graph among those that the caller may use."""
    allowed: list[UUID] | None = None if tx.caller.graphs is None else list(tx.caller.graphs)
    return await tx.fetchval(queries.most_nodes, allowed=allowed)


async def use_of_tenants(operator: Operator, tenant_ids: Sequence[UUID], day: datetime) -> list[TenantUse]:
    """What each of these tenants uses, those left out that are not in the operator's cell."""
    return await operator.fetch_objects(queries.use_of_tenants, TenantUse, tenant_ids=list(tenant_ids), day=day)
