"""One function per query of `queries.sql`.

Operators manage tenants: these functions run as the owner, not as the gateway, except those for a tenant's own row.
"""

from uuid import UUID

import asyncpg

from recollect.accounts.tenants.model import Tenant, TenantFilter, TenantPatch, TenantStatus
from recollect.errors import ErrorCode, NotFound
from recollect.ids import new_id
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


async def insert_tenant(operator: Operator, tenant_id: UUID, slug: str, name: str, *, plan: str) -> Tenant | None:
    """Make a tenant with its graph `default`; None if the slug is taken."""
    return await operator.fetch_object(
        queries.insert_tenant, Tenant, id=tenant_id, slug=slug, name=name, plan=plan, graph_id=new_id()
    )


async def find_tenant(operator: Operator, slug: str) -> Tenant | None:
    """The tenant of that slug, or None."""
    return await operator.fetch_object(queries.find_tenant, Tenant, slug=slug)


async def own_tenant(tx: Transaction) -> Tenant:
    """The tenant of the caller; raises NotFound for one that has been erased."""
    return _own(await tx.fetchrow(queries.own_tenant))


async def lock_writes_shared(tx: Transaction) -> None:
    """Take the shared lock that keeps the tenant's writes from being stopped until the transaction ends."""
    await tx.execute(queries.lock_writes_shared)


async def lock_own_tenant(tx: Transaction) -> Tenant:
    """The tenant of the caller, locked until the transaction ends; raises NotFound as `own_tenant`."""
    return _own(await tx.fetchrow(queries.lock_own_tenant))


async def update_own_tenant(tx: Transaction, patch: TenantPatch) -> Tenant:
    """Change the fields that a tenant may change itself; raises NotFound for one that has been erased."""
    return _own(
        await tx.fetchrow(
            queries.update_own_tenant,
            name=patch.name,
            sets_retention=patch.sets_retention,
            retention_days=patch.retention_days,
            sets_time_zone=patch.sets_time_zone,
            time_zone=patch.time_zone,
        )
    )


async def list_tenants(operator: Operator, *, only: TenantFilter, after: str, limit: int) -> list[Tenant]:
    """Tenants that pass the filter, whose slug comes after `after`, by slug."""
    rows = await operator.fetch(
        queries.list_tenants,
        search=only.search,
        status=only.status,
        plan=only.plan,
        requested=only.deletion_requested,
        after=after,
        limit=limit,
    )
    return [Tenant(**row) for row in rows]


async def forget_statistics(session: Session) -> list[str]:
    """Analyse every table that holds text of people; return the tables that could not be analysed."""
    row = await session.fetchrow(queries.forget_statistics)
    return list(row["left_out"]) if row else []


async def set_plan(operator: Operator, tenant_id: UUID, plan: str) -> Tenant:
    """Give a tenant that is locked another plan."""
    row = await operator.fetchrow(queries.set_tenant_plan, tenant_id=tenant_id, plan=plan)
    assert row is not None
    return Tenant(**row)


async def lock_tenant(operator: Operator, slug: str) -> Tenant | None:
    """The tenant of that slug, locked until the transaction ends; None if there is no such tenant."""
    return await operator.fetch_object(queries.lock_tenant, Tenant, slug=slug)


async def lock_writes(operator: Operator, slug: str) -> None:
    """Wait for writes of a tenant that are about to commit, and block others until the transaction ends."""
    await operator.execute(queries.lock_writes, slug=slug)


async def set_status(operator: Operator, tenant_id: UUID, status: TenantStatus) -> Tenant:
    """Suspend or resume a tenant that is locked."""
    is_suspended = status is TenantStatus.SUSPENDED
    row = await operator.fetchrow(
        queries.set_tenant_status,
        tenant_id=tenant_id,
        status=TenantStatus.SUSPENDED if is_suspended else TenantStatus.ACTIVE,
        read_only=status is TenantStatus.READ_ONLY,
    )
    assert row is not None
    return Tenant(**row)


def _own(row: asyncpg.Record | None) -> Tenant:
    if row is None:
        raise NotFound("This tenant was erased.", code=ErrorCode.TENANT_NOT_FOUND)
    return Tenant(**row)
