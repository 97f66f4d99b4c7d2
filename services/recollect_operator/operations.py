"""Acts of operators that need several cells, or the deployment's settings: the API and the pages do them alike."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from recollect.accounts.deletions import service as deletions
from recollect.accounts.plans import service as plans
from recollect.accounts.plans.model import Plan
from recollect.accounts.quotas import service as quotas
from recollect.accounts.quotas.model import TenantUse
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant, TenantFilter
from recollect.caller import Check, unconditional
from recollect.cells.directory import service as directory
from recollect.errors import InvalidInput, Unavailable
from recollect.postgres.operator_sessions import Operator
from recollect.settings.cells import HOME
from recollect_operator.cells import OperatorCells
from recollect_operator.operator_identity import OperatorIdentity
from recollect_operator.shapes import CellBody, TenantRecordBody, tenant_body


async def list_tenants(
    cells: OperatorCells, identity: OperatorIdentity, only: TenantFilter, *, after: str, limit: int
) -> list[TenantRecordBody]:
    """Tenants of all cells that pass the filter, by slug, after the slug `after`.

    Raises Unavailable, which names the cells that do not answer where there are several.
    """
    found, failures = await list_reachable_tenants(cells, identity, only, after=after, limit=limit)
    if not failures:
        return found
    first = next(iter(failures.values()))
    if len(cells.names) == 1:
        raise first
    raise Unavailable(" ".join(f"Cell {cell}: {error.message}" for cell, error in failures.items()), code=first.code)


async def list_reachable_tenants(
    cells: OperatorCells, identity: OperatorIdentity, only: TenantFilter, *, after: str, limit: int
) -> tuple[list[TenantRecordBody], dict[str, Unavailable]]:
    """The same of the cells that answer, and the error of each other cell, by its name."""
    answers = await cells.query_all(
        identity, lambda operator: tenants.list_tenants(operator, only=only, after=after, limit=limit)
    )
    found, failures = list[TenantRecordBody](), dict[str, Unavailable]()
    for cell, answer in answers.items():
        if isinstance(answer, Unavailable):
            failures[cell] = answer
        else:
            found += [tenant_body(tenant, cell) for tenant in answer]
    found.sort(key=lambda body: body.slug)
    return found[:limit], failures


async def list_use(
    cells: OperatorCells, identity: OperatorIdentity, listed: Sequence[TenantRecordBody]
) -> dict[str, TenantUse]:
    """What each of these tenants uses, by its slug, asked of the cells that they are in. Raises Unavailable."""
    used: dict[UUID, TenantUse] = {}
    for cell in sorted({tenant.cell for tenant in listed}):
        ids = [UUID(tenant.id) for tenant in listed if tenant.cell == cell]
        async with cells.at(cell).session(identity) as operator:
            used |= await quotas.list_use_of_tenants(operator, ids, datetime.now(UTC))
    return {tenant.slug: used[UUID(tenant.id)] for tenant in listed}


async def set_tenant_plan(
    cells: OperatorCells, identity: OperatorIdentity, operator: Operator, slug: str, plan: str, *, check: Check[Tenant]
) -> Tenant:
    """Give a tenant of the operator's cell another plan, which the cell gets first. Raises NotFound, Unavailable.

    It uses no second connection to that cell: requests that each hold one would wait for each other.
    """
    if operator.cell != HOME:
        async with cells.home.session(identity) as home:
            await plans.share_plan(home, operator, plan)
    return await tenants.set_plan(operator, slug, plan, check=check)


async def delete_tenant(
    operator: Operator, slug: str, *, days: float, confirm: str | None, check: Check[Tenant]
) -> Tenant:
    """Delete a tenant with so many days of grace; none needs its slug as `confirm`. Raises InvalidInput, NotFound."""
    grace = timedelta(days=days)
    if not grace and confirm != slug:  # The grace is 0 also for a fraction of a day below a microsecond.
        raise InvalidInput(
            "Without a grace period the tenant cannot be restored: repeat its slug to confirm", path="confirm"
        )
    return await deletions.delete_tenant(operator, slug, grace=grace, check=check)


async def set_plan(
    cells: OperatorCells,
    identity: OperatorIdentity,
    operator: Operator,
    name: str,
    limits: Mapping[str, int | None],
    *,
    check: Check[Plan | None] = unconditional,
) -> Plan:
    """Make or change a plan at home, whose session `operator` is, and then in every other cell.

    Raises InvalidInput, Unavailable for a cell that does not answer (home has the change by then), and as `check` does.
    """
    plan = await plans.set_plan(operator, name, limits, check=check)
    for cell in cells.names:
        if cell != HOME:
            async with cells.at(cell).session(identity) as cell_operator:
                await plans.share_plan(operator, cell_operator, name)
    return plan


async def share_plan(cells: OperatorCells, identity: OperatorIdentity, plan: str, cell: str) -> None:
    """Copy a plan from home to another cell, which may not have it yet where it was added later."""
    if cell == HOME:
        return
    async with cells.home.session(identity) as home, cells.at(cell).session(identity) as operator:
        await plans.share_plan(home, operator, plan)


async def list_cells(cells: OperatorCells, identity: OperatorIdentity) -> list[CellBody]:
    """Every cell, home first: how much it holds, whether it answers, and which migrations it lacks."""
    return [await _describe(cells, name, identity) for name in cells.names]


async def _describe(cells: OperatorCells, name: str, identity: OperatorIdentity) -> CellBody:
    try:
        async with cells.at(name).session(identity) as operator:
            return await _measure(operator)
    except Unavailable:
        return CellBody(name, False, None, None, [])


async def _measure(operator: Operator) -> CellBody:
    missing = await directory.missing_migrations(operator)
    size = await directory.measure_cell(operator)
    return CellBody(operator.cell, True, size.tenants, size.bytes, missing)
