"""One function per query of `queries.sql`: they run as the owner, as the operator API, or (steps) as the worker."""

from datetime import timedelta
from uuid import UUID

import msgspec

from recollect.accounts.deletions.model import ErasureReceipt
from recollect.accounts.tenants.model import Tenant
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session

queries = Queries(__package__)


async def is_moving(operator: Operator, tenant_id: UUID) -> bool:
    """Whether another cell has, or may have, rows of a tenant, too."""
    return await operator.fetchval(queries.is_moving, tenant_id=tenant_id)


async def insert_deletion(operator: Operator, tenant_id: UUID) -> None:
    """Note that a tenant is deleted, by whom, and its status before."""
    await operator.execute(queries.insert_deletion, tenant_id=tenant_id, deleted_by=operator.actor)


async def set_erase_at(operator: Operator, tenant_id: UUID, grace: timedelta) -> Tenant:
    """Suspend a tenant completely until it is erased: after the grace, or earlier if that was set before."""
    row = await operator.fetchrow(queries.set_erase_at, tenant_id=tenant_id, grace=grace)
    assert row is not None
    return Tenant(**row)


async def restore_tenant(operator: Operator, tenant_id: UUID) -> Tenant | None:
    """Give a tenant its status back; None if its grace is over."""
    return await operator.fetch_object(queries.restore_tenant, Tenant, tenant_id=tenant_id)


async def withdraw_request(operator: Operator, tenant_id: UUID) -> bool:
    """Take back that an owner asked for the deletion of a tenant; return whether one did."""
    return await operator.fetchval(queries.withdraw_request, tenant_id=tenant_id) is not None


async def tenants_to_erase(session: Session) -> list[UUID]:
    """Tenants whose grace is over."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_to_erase)]


async def erase_tenant_step(session: Session, tenant_id: UUID, *, rows: int) -> str | None:
    """Run one step of an erasure; return its outcome, None if the tenant is not to be erased."""
    return await session.fetchval(queries.erase_tenant_step, tenant_id=tenant_id, rows=rows)


async def count_of_tenant(operator: Operator, tenant_id: UUID) -> dict[str, int]:
    """The number of a tenant's rows in each table."""
    counts = await operator.fetchval(queries.count_of_tenant, tenant_id=tenant_id)
    return msgspec.json.decode(counts, type=dict[str, int])


async def list_receipts(
    operator: Operator, *, slug: str | None, before: int | None, limit: int
) -> list[ErasureReceipt]:
    """Receipts before the number `before`, newest first."""
    return await operator.fetch_objects(queries.list_receipts, ErasureReceipt, slug=slug, before=before, limit=limit)


async def find_receipt(operator: Operator, receipt_id: UUID) -> ErasureReceipt | None:
    """One receipt, or None."""
    return await operator.fetch_object(queries.find_receipt, ErasureReceipt, receipt_id=receipt_id)


async def find_receipt_of(operator: Operator, tenant_id: UUID) -> ErasureReceipt | None:
    """The receipt of a tenant that was erased, or None."""
    return await operator.fetch_object(queries.find_receipt_of, ErasureReceipt, tenant_id=tenant_id)
