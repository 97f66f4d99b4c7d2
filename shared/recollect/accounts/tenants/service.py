"""Use cases of tenants: operators create, list, suspend and resume them; a tenant reads and changes itself."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, changed_fields, named
from recollect.accounts.operator_log import service as operator_log
from recollect.accounts.operator_log.model import OperatorAction
from recollect.accounts.plans import service as plans
from recollect.accounts.plans.model import UNLIMITED
from recollect.accounts.tenants import store
from recollect.accounts.tenants.model import (
    MAX_RETENTION_DAYS,
    Tenant,
    TenantFilter,
    TenantPatch,
    TenantStatus,
    tenant_name,
    tenant_slug,
)
from recollect.caller import Check, unconditional
from recollect.errors import Conflict, ErrorCode, InvalidInput, NotFound
from recollect.ids import new_id
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.transactions import Session, Transaction
from recollect.times import require_zone

EVERY_TENANT = TenantFilter()


async def create_tenant(
    operator: Operator, slug: str, name: str, *, plan: str = UNLIMITED, tenant_id: UUID | None = None
) -> Tenant:
    """Make a tenant with its graph `default`; raises Conflict if the slug is taken, NotFound for the plan.

    Called inside a transaction, it is part of it. `tenant_id` None: a new id.
    """
    name, tenant_id = tenant_name(name), tenant_id or new_id()
    await plans.require_plan(operator, plan)
    async with operator.transaction():
        await operator.enter(tenant_id)
        tenant = await store.insert_tenant(operator, tenant_id, tenant_slug(slug), name, plan=plan)
        if tenant is None:
            raise Conflict(f"There is already a tenant {slug!r}.", code=ErrorCode.TENANT_EXISTS)
        await _record(operator, tenant, Action.TENANT_CREATED, plan=plan)
    return tenant


async def find_tenant(operator: Operator, slug: str) -> Tenant:
    """The tenant of that slug; raises NotFound."""
    return _found(await store.find_tenant(operator, slug), slug)


async def list_tenants(
    operator: Operator, *, only: TenantFilter = EVERY_TENANT, after: str = "", limit: int = 1000
) -> list[Tenant]:
    """Tenants that pass the filter, by slug, after the slug `after`."""
    return await store.list_tenants(operator, only=only, after=after, limit=limit)


async def lock_tenant(operator: Operator, slug: str) -> Tenant:
    """The tenant of that slug, locked until the transaction ends; raises NotFound."""
    return _found(await store.lock_tenant(operator, slug), slug)


async def stop_writes(operator: Operator, slug: str) -> None:
    """Wait for writes of a tenant that are about to commit, and block others until the transaction ends.

    Call it before `lock_tenant`: writers and moves take both locks in this order.
    """
    await store.lock_writes(operator, slug)


async def own_tenant(tx: Transaction) -> Tenant:
    """The tenant of the caller."""
    return await store.own_tenant(tx)


async def change_own_tenant(tx: Transaction, patch: TenantPatch, *, check: Check[Tenant] = unconditional) -> Tenant:
    """Give the caller's tenant another name, retention or time zone.

    Raises InvalidInput, Forbidden for a credential that is confined to some graphs, and as `check` does.
    """
    tx.caller.require_graph(None)
    if patch.name is not None:
        patch = replace(patch, name=tenant_name(patch.name))
    if patch.retention_days is not None and not 1 <= patch.retention_days <= MAX_RETENTION_DAYS:
        raise InvalidInput(f"A retention is between 1 and {MAX_RETENTION_DAYS} days", path="settings.retention_days")
    if patch.time_zone is not None:
        require_zone(patch.time_zone, "settings.time_zone")
    await store.lock_writes_shared(tx)
    before = await store.lock_own_tenant(tx)
    check(before)
    changed = await store.update_own_tenant(tx, patch)
    if fields := changed_fields(before, changed):
        await audit.record(tx, Action.TENANT_CHANGED, named("tenant", changed.id), fields=fields)
    return changed


async def retention_of(tx: Transaction, default: timedelta) -> timedelta:
    """How long the caller's tenant keeps deleted and superseded versions; `default` if it has no setting."""
    days = (await store.own_tenant(tx)).retention_days
    return default if days is None else timedelta(days=days)


async def set_plan(operator: Operator, slug: str, plan: str, *, check: Check[Tenant] = unconditional) -> Tenant:
    """Give a tenant another plan, in force with its next call. Its data stays, even if it exceeds the plan.

    Raises NotFound, and as `check` does.
    """
    await plans.require_plan(operator, plan)
    async with operator.transaction():
        before = await lock_tenant(operator, slug)
        check(before)
        tenant = await store.set_plan(operator, before.id, plan)
        await _record(operator, tenant, Action.TENANT_PLAN_CHANGED, plan=plan)
    return tenant


async def suspend_tenant(
    operator: Operator, slug: str, *, read_only: bool = False, check: Check[Tenant] = unconditional
) -> Tenant:
    """Accept none of the tenant's credentials from now on, or (`read_only`) let none write; its data stays.

    Writes in progress have either committed before, or never commit. Raises NotFound, Conflict for a tenant that is
    deleted, and as `check` does.
    """
    status = TenantStatus.READ_ONLY if read_only else TenantStatus.SUSPENDED
    return await _set_status(operator, slug, status, check, Action.TENANT_SUSPENDED, kind=status)


async def resume_tenant(operator: Operator, slug: str, *, check: Check[Tenant] = unconditional) -> Tenant:
    """Accept the tenant's credentials again, to read and to write. Raises as `suspend_tenant` does."""
    return await _set_status(operator, slug, TenantStatus.ACTIVE, check, Action.TENANT_RESUMED)


async def forget_statistics(session: Session) -> list[str]:
    """Analyse the tables again, as the end of an erasure: the planner's statistics hold pieces of the erased text.

    Return the tables that could not be analysed, since others are analysing or vacuuming them.
    """
    return await store.forget_statistics(session)


async def _set_status(
    operator: Operator, slug: str, status: TenantStatus, check: Check[Tenant], action: Action, **details: str
) -> Tenant:
    async with operator.transaction():
        await stop_writes(operator, slug)
        before = await lock_tenant(operator, slug)
        check(before)
        if before.erase_at is not None:
            raise Conflict("This tenant is deleted. Restore it first.", code=ErrorCode.TENANT_DELETED)
        tenant = await store.set_status(operator, before.id, status)
        await _record(operator, tenant, action, **details)
    return tenant


async def _record(operator: Operator, tenant: Tenant, action: Action, **details: str) -> None:
    """Record an act in the tenant's own audit log, and in the log of operators."""
    await audit.record_of_operator(operator, tenant.id, action, named("tenant", tenant.id), **details)
    await operator_log.record(operator, OperatorAction(action), named("tenant", tenant.slug), **details)


def _found(tenant: Tenant | None, slug: str) -> Tenant:
    if tenant is None:
        raise NotFound(f"There is no tenant {slug!r}.", code=ErrorCode.TENANT_NOT_FOUND)
    return tenant
