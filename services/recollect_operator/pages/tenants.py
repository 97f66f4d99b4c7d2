"""Tenants: the list, and one tenant with its use, its plan, and what an operator does with it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter
from litestar.response import Redirect

from recollect.accounts.audit.model import named
from recollect.accounts.deletions import service as deletions
from recollect.accounts.deletions.model import MAX_GRACE
from recollect.accounts.operator_log import service as operator_log
from recollect.accounts.plans import service as plans
from recollect.accounts.plans.model import Plan
from recollect.accounts.quotas import service as quotas
from recollect.accounts.quotas.model import TenantUse, quotas_used
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant, TenantFilter, TenantStatus
from recollect.errors import InvalidInput, RecollectError
from recollect.postgres.operator_sessions import Operator
from recollect_http.pages import Cursor
from recollect_http.web.quotas import QuotaRow
from recollect_http.web.refusals import SEEN, FormRefusal, mark_of, refusal_of, unchanged_since
from recollect_operator import operations
from recollect_operator.operator_identity import OperatorRequest
from recollect_operator.pages.access import field
from recollect_operator.pages.rendering import go, here, render
from recollect_operator.shapes import TenantRecordBody, tenant_body

PAGE = 50
"""Tenants of a page of the list."""

LATEST = 10
"""Entries of the log that are shown with a tenant."""

REQUESTED = "requested"
STATES = {
    "": "Any",
    TenantStatus.ACTIVE: "Active",
    TenantStatus.READ_ONLY: "Read-only",
    TenantStatus.SUSPENDED: "Suspended",
    TenantStatus.DELETED: "Deleted",
    REQUESTED: "Deletion requested",
}
"""What the list is filtered by: a status, or that an owner requested the deletion."""

DONE = {
    "plan": "The plan is changed. It applies from the tenant's next call on.",
    "read_only": "The tenant is read-only: what it would write is refused.",
    "whole": "The tenant is suspended: none of its credentials is accepted.",
    "resumed": "The tenant is active again.",
    "restored": "The tenant is kept: its deletion, or the request for it, is taken back.",
    "deleted": "The tenant is deleted. It can be restored until it is erased.",
}

Search = Annotated[str, QueryParameter(max_length=200)]
InState = Annotated[
    Literal["", "active", "read_only", "suspended", "deleted", "requested"], QueryParameter(name="state")
]
OfPlan = Annotated[str, QueryParameter(max_length=63)]


@dataclass(frozen=True, slots=True)
class TenantRow:
    """A tenant of the list, with the quota of its plan of which it uses most; None: its plan has no limit."""

    tenant: TenantRecordBody
    fullest: QuotaRow | None


class TenantPages(Controller):
    """The tenants of the deployment."""

    path = "/tenants"

    @get("/")
    async def list_tenants(
        self,
        request: OperatorRequest,
        state: State,
        search: Search = "",
        of_state: InState = "",
        plan: OfPlan = "",
        cursor: Cursor = None,
    ) -> Response[str]:
        """One page of the tenants that pass the filters, by their slugs. It names cells whose tenants it lacks."""
        found, failures = await operations.list_reachable_tenants(
            state.cells, request.user, _filter(search.strip(), of_state, plan), after=cursor or "", limit=PAGE + 1
        )
        async with state.cells.home.session(request.user) as home:
            all_plans = await plans.list_plans(home)
        shown = found[:PAGE]
        use = await operations.list_use(state.cells, request.user, shown)
        by_name = {known.name: known for known in all_plans}
        return render(
            request,
            "tenants/list.html",
            done=DONE,
            unreachable=list(failures),
            rows=[TenantRow(tenant, _fullest(by_name.get(tenant.plan), use[tenant.slug])) for tenant in shown],
            search=search,
            chosen=of_state,
            plan=plan,
            states=list(STATES.items()),
            plans=[("", "Any"), *((known.name, known.name) for known in all_plans)],
            has_filters=bool(search or of_state or plan),
            first=here(request, cursor=None) if cursor else None,
            next=here(request, cursor=shown[-1].slug) if len(found) > PAGE else None,
        )

    @get("/{slug:str}")
    async def show(
        self, request: OperatorRequest, state: State, operator: NamedDependency[Operator], slug: FromPath[str]
    ) -> Response[str]:
        """One tenant."""
        return await _show(request, state, operator, slug)

    @post("/{slug:str}/plan")
    async def set_plan(
        self, request: OperatorRequest, state: State, operator: NamedDependency[Operator], slug: FromPath[str]
    ) -> Response[str] | Redirect:
        """Give it another plan."""
        check, plan = _unchanged(request, operator), field(request, "plan")
        try:
            await operations.set_tenant_plan(state.cells, request.user, operator, slug, plan, check=check)
        except RecollectError as error:
            return await _show(request, state, operator, slug, refusal_of(error))
        return go(f"tenants/{slug}", done="plan")

    @get("/{slug:str}/suspend")
    async def ask_to_suspend(
        self, request: OperatorRequest, operator: NamedDependency[Operator], slug: FromPath[str]
    ) -> Response[str]:
        """What a suspension does, and the form for it."""
        return await _ask(request, operator, slug, "tenants/suspend.html")

    @post("/{slug:str}/suspend")
    async def suspend(
        self, request: OperatorRequest, operator: NamedDependency[Operator], slug: FromPath[str]
    ) -> Response[str] | Redirect:
        """Suspend it as a whole or read-only, where its slug was typed."""
        kind = field(request, "kind")
        try:
            _require_typed(request, slug)
            if kind not in ("read_only", "whole"):
                raise InvalidInput("Choose what to refuse", path="kind")
            await tenants.suspend_tenant(
                operator, slug, read_only=kind == "read_only", check=_unchanged(request, operator)
            )
        except RecollectError as error:
            return await _ask(request, operator, slug, "tenants/suspend.html", refusal_of(error))
        return go(f"tenants/{slug}", done=kind)

    @post("/{slug:str}/resume")
    async def resume(
        self, request: OperatorRequest, state: State, operator: NamedDependency[Operator], slug: FromPath[str]
    ) -> Response[str] | Redirect:
        """Accept its credentials again."""
        try:
            await tenants.resume_tenant(operator, slug, check=_unchanged(request, operator))
        except RecollectError as error:
            return await _show(request, state, operator, slug, refusal_of(error))
        return go(f"tenants/{slug}", done="resumed")

    @post("/{slug:str}/restore")
    async def restore(
        self, request: OperatorRequest, state: State, operator: NamedDependency[Operator], slug: FromPath[str]
    ) -> Response[str] | Redirect:
        """Undo its deletion, and take back an owner's request for it."""
        try:
            await deletions.restore_tenant(operator, slug, check=_unchanged(request, operator))
        except RecollectError as error:
            return await _show(request, state, operator, slug, refusal_of(error))
        return go(f"tenants/{slug}", done="restored")

    @get("/{slug:str}/delete")
    async def ask_to_delete(
        self, request: OperatorRequest, state: State, operator: NamedDependency[Operator], slug: FromPath[str]
    ) -> Response[str]:
        """What goes with the tenant, and the form for its deletion."""
        return await _ask(request, operator, slug, "tenants/delete.html", days=_days(request, state))

    @post("/{slug:str}/delete")
    async def delete(
        self, request: OperatorRequest, state: State, operator: NamedDependency[Operator], slug: FromPath[str]
    ) -> Response[str] | Redirect:
        """Delete it with a grace of a day or more, where its slug was typed. Only the command erases at once."""
        try:
            _require_typed(request, slug)
            days = _grace_days(field(request, "days"))
            check = _unchanged(request, operator)
            await operations.delete_tenant(operator, slug, days=days, confirm=None, check=check)
        except RecollectError as error:
            shown = _days(request, state)
            return await _ask(request, operator, slug, "tenants/delete.html", refusal_of(error), days=shown)
        return go(f"tenants/{slug}", done="deleted")


async def _show(
    request: OperatorRequest, state: State, operator: Operator, slug: str, refusal: FormRefusal | None = None
) -> Response[str]:
    tenant = tenant_body(await tenants.find_tenant(operator, slug), operator.cell)
    tenant_id = UUID(tenant.id)
    use = (await quotas.list_use_of_tenants(operator, [tenant_id], datetime.now(UTC)))[tenant_id]
    all_plans = await plans.list_plans(operator)
    plan = next(plan for plan in all_plans if plan.name == tenant.plan)
    return render(
        request,
        "tenants/show.html",
        status=refusal.status if refusal else 200,
        done=DONE,
        tenant=tenant,
        seen=mark_of(tenant),
        fault=refusal.text if refusal else "",
        quotas=_quota_rows(plan, use),
        plans=[plan.name for plan in all_plans],
        log=await operator_log.list_entries(operator, subject=named("tenant", slug), limit=LATEST),
        cells=state.cells.names,
    )


async def _ask(
    request: OperatorRequest,
    operator: Operator,
    slug: str,
    template: str,
    refusal: FormRefusal | None = None,
    **context: Any,
) -> Response[str]:
    """A page that asks before a tenant is changed; again with what was entered, where that was refused."""
    tenant = tenant_body(await tenants.find_tenant(operator, slug), operator.cell)
    return render(
        request,
        template,
        status=refusal.status if refusal else 200,
        tenant=tenant,
        seen=mark_of(tenant),
        fault=refusal.text if refusal else "",
        typed=field(request, "typed"),
        kind=field(request, "kind"),
        **context,
    )


def _filter(search: str, of_state: str, plan: str) -> TenantFilter:
    requested = of_state == REQUESTED
    return TenantFilter(
        search=search or None,
        status=None if requested or not of_state else TenantStatus(of_state),
        plan=plan or None,
        deletion_requested=True if requested else None,
    )


def _fullest(plan: Plan | None, use: TenantUse) -> QuotaRow | None:
    rows = [] if plan is None else [row for row in _quota_rows(plan, use) if row.percent is not None]
    return max(rows, key=lambda row: row.percent or 0, default=None)


def _quota_rows(plan: Plan, use: TenantUse) -> Sequence[QuotaRow]:
    return [QuotaRow(quota.name, quota.used or 0, quota.limit) for quota in quotas_used(plan, use)]


def _unchanged(request: OperatorRequest, operator: Operator) -> Callable[[Tenant], None]:
    """A check that the tenant is as it was when the form was made."""
    check = unchanged_since(field(request, SEEN))
    return lambda tenant: check(tenant_body(tenant, operator.cell))


def _require_typed(request: OperatorRequest, slug: str) -> None:
    if field(request, "typed") != slug:
        raise InvalidInput(f"Type {slug} to confirm", path="typed")


def _days(request: OperatorRequest, state: State) -> str:
    """What the form has as days of grace: what was entered, or the deployment's setting."""
    return field(request, "days") or f"{max(state.settings.tenant_deletion_grace_days, 1):g}"


def _grace_days(entered: str) -> float:
    try:
        days = float(entered)
    except ValueError:
        days = math.nan
    if not 1 <= days <= MAX_GRACE.days:
        raise InvalidInput(f"The grace is 1 to {MAX_GRACE.days} days", path="days")
    return days
