"""Use cases of tenants: operators create, list, suspend and resume them; a tenant reads and changes itself."""

from datetime import timedelta

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, changed_fields, named
from recollect.accounts.plans import service as plans
from recollect.accounts.plans.model import UNLIMITED
from recollect.accounts.tenants import store
from recollect.accounts.tenants.model import (
    MAX_RETENTION_DAYS,
    Tenant,
    TenantPatch,
    TenantStatus,
    tenant_name,
    tenant_slug,
)
from recollect.caller import Check, unconditional
from recollect.errors import Conflict, ErrorCode, InvalidInput, NotFound
from recollect.platform.db import Operator, Transaction


async def create_tenant(operator: Operator, slug: str, name: str, *, plan: str = UNLIMITED) -> Tenant:
    """Make a tenant with its graph `default`; raises Conflict if the slug is taken, NotFound for the plan."""
    name = tenant_name(name)
    await plans.require_plan(operator, plan)
    async with operator.transaction():
        tenant = await store.insert_tenant(operator, tenant_slug(slug), name, plan=plan)
        if tenant is None:
            raise Conflict(f"There is a tenant {slug!r} already.", code=ErrorCode.TENANT_EXISTS)
        await _record(operator, tenant, Action.TENANT_CREATED, plan=plan)
    return tenant


async def find_tenant(operator: Operator, slug: str) -> Tenant:
    """The tenant of that slug; raises NotFound."""
    return _found(await store.find_tenant(operator, slug), slug)


async def list_tenants(operator: Operator, *, after: str = "", limit: int = 1000) -> list[Tenant]:
    """Tenants by slug, after the slug `after`."""
    return await store.list_tenants(operator, after=after, limit=limit)


async def own_tenant(tx: Transaction) -> Tenant:
    """The tenant of the caller."""
    return await store.own_tenant(tx)


async def change_own_tenant(tx: Transaction, patch: TenantPatch, *, check: Check[Tenant] = unconditional) -> Tenant:
    """Give the caller's tenant another name or retention; raises InvalidInput, and as `check` does."""
    if patch.name is not None:
        tenant_name(patch.name)
    if patch.retention_days is not None and not 1 <= patch.retention_days <= MAX_RETENTION_DAYS:
        raise InvalidInput(f"A retention has 1 to {MAX_RETENTION_DAYS} days", path="settings.retention_days")
    before = await store.lock_own_tenant(tx)
    check(before)
    changed = await store.update_own_tenant(tx, patch)
    if fields := changed_fields(before, changed):
        await audit.record(tx, Action.TENANT_CHANGED, named("tenant", changed.id), fields=fields)
    return changed


async def retention_of(tx: Transaction, default: timedelta) -> timedelta:
    """How long the caller's tenant keeps what was deleted or superseded; `default` where it does not say."""
    days = (await store.own_tenant(tx)).retention_days
    return default if days is None else timedelta(days=days)


async def set_plan(operator: Operator, slug: str, plan: str) -> Tenant:
    """Give a tenant another plan, in force with its next call: what it has stays, also beyond it. Raises NotFound."""
    await plans.require_plan(operator, plan)
    async with operator.transaction():
        tenant = _found(await store.set_plan(operator, slug, plan), slug)
        await _record(operator, tenant, Action.TENANT_PLAN_CHANGED, plan=plan)
    return tenant


async def suspend_tenant(operator: Operator, slug: str, *, read_only: bool = False) -> Tenant:
    """From now on none of the tenant's credentials is accepted, or (`read_only`) none writes; its data stays.

    What was about to be written either committed before, or never does. Raises NotFound.
    """
    status = TenantStatus.READ_ONLY if read_only else TenantStatus.SUSPENDED
    return await _set_status(operator, slug, status, Action.TENANT_SUSPENDED, kind=status)


async def resume_tenant(operator: Operator, slug: str) -> Tenant:
    """Accept the tenant's credentials again, to read and to write. Raises NotFound."""
    return await _set_status(operator, slug, TenantStatus.ACTIVE, Action.TENANT_RESUMED)


async def erase_tenant(operator: Operator, slug: str, *, dry_run: bool = False) -> dict[str, int]:
    """Delete a tenant with all that is its own, keys and log included; how many rows of each table. Raises NotFound.

    It is suspended first, so that nobody writes meanwhile. A dry run counts, and leaves it as it is.
    """
    tenant = await find_tenant(operator, slug)
    await store.allow_long_statements(operator)
    if dry_run:
        return await store.count_of_tenant(operator, tenant)
    async with operator.transaction():
        tenant = _found(await store.lock_tenant(operator, slug), slug)
        await _suspend(operator, tenant, TenantStatus.SUSPENDED)  # No entry in a log that is about to go.
    async with operator.transaction():
        await store.allow_audit_removal(operator)
        return await store.erase_tenant(operator, tenant)


async def forget_statistics(operator: Operator) -> list[str]:
    """The end of an erasure: the planner's statistics hold pieces of what was there, until they are taken anew.

    The tables of which that could not be done, since others are analysing or vacuuming them.
    """
    return await store.forget_statistics(operator)


async def _set_status(operator: Operator, slug: str, status: TenantStatus, action: Action, **details: str) -> Tenant:
    async with operator.transaction():
        tenant = await _suspend(operator, _found(await store.lock_tenant(operator, slug), slug), status)
        await _record(operator, tenant, action, **details)
    return tenant


async def _suspend(operator: Operator, tenant: Tenant, status: TenantStatus) -> Tenant:
    """Give a tenant, whose row is held, another status, beside which none of its writes is about to commit."""
    await store.lock_writes(operator, tenant.id)
    return await store.set_status(operator, tenant.id, status)


async def _record(operator: Operator, tenant: Tenant, action: Action, **details: str) -> None:
    await audit.record_of_operator(operator, tenant.id, action, named("tenant", tenant.id), **details)


def _found(tenant: Tenant | None, slug: str) -> Tenant:
    if tenant is None:
        raise NotFound(f"There is no tenant {slug!r}.", code=ErrorCode.TENANT_NOT_FOUND)
    return tenant
