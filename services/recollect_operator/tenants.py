"""/operator/v1/tenants: create, read, suspend, resume, delete and restore tenants."""

from collections.abc import Callable
from typing import Annotated, Literal

from litestar import Controller, Response, delete, get, post, put
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter
from msgspec import structs

from recollect.accounts.deletions import service as deletions
from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import NewKey, key_name, operator_caller
from recollect.accounts.members import service as members
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant, TenantFilter, TenantStatus
from recollect.caller import Role
from recollect.postgres.operator_sessions import Operator
from recollect_http.pages import Cursor, Limit, Page, page_of
from recollect_http.preconditions import tagged, unchanged
from recollect_http.problems import CHANGE_RESPONSES, RESPONSES, TAGGED_RESPONSES
from recollect_http.requests.validation import valid_body
from recollect_operator import operations
from recollect_operator.cells import OperatorCells
from recollect_operator.operator_identity import OperatorRequest
from recollect_operator.shapes import (
    MAX_GRACE_DAYS,
    CreatedTenant,
    CreateTenant,
    PlanName,
    RowCounts,
    Suspension,
    TenantInPath,
    TenantRecordBody,
    tenant_body,
)

GraceDays = Annotated[
    float | None,
    QueryParameter(
        ge=0,
        le=MAX_GRACE_DAYS,
        description="Days during which the tenant can be restored. Default: the deployment's setting",
    ),
]
Search = Annotated[
    str | None,
    QueryParameter(min_length=1, max_length=200, description="Only tenants with this text in their slug or name"),
]
OfStatus = Annotated[
    Literal["active", "read_only", "suspended", "deleted"] | None, QueryParameter(description="Only with this status")
]
OfPlan = Annotated[str | None, QueryParameter(max_length=63, description="Only with this plan")]
Requested = Annotated[
    bool | None,
    QueryParameter(description="Only those whose owners requested their deletion, or (`false`) did not"),
]
Confirm = Annotated[
    str | None, QueryParameter(max_length=63, description="The tenant's slug again; required if the grace period is 0")
]


class TenantRecordController(Controller):
    """The tenants of the deployment."""

    path = "/tenants"
    tags = ("tenants",)

    @get("/", responses=RESPONSES, response_description="A page of tenants.", summary="List tenants")
    async def list_tenants(
        self,
        request: OperatorRequest,
        state: State,
        search: Search = None,
        status: OfStatus = None,
        plan: OfPlan = None,
        deletion_requested: Requested = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[TenantRecordBody]:
        """List the tenants of all cells, sorted by slug, including suspended and deleted ones.

        The parameters select some of them.
        """
        only = TenantFilter(search, None if status is None else TenantStatus(status), plan, deletion_requested)
        found = await operations.list_tenants(state.cells, request.user, only, after=cursor or "", limit=limit + 1)
        return page_of(found, limit, lambda body: body, lambda body: body.slug)

    @post(
        "/",
        responses=RESPONSES,
        response_description="The tenant that was created, with its first credentials, which are shown only here.",
        summary="Create a tenant",
        before_request=valid_body(CreateTenant),
    )
    async def create_tenant(
        self, request: OperatorRequest, state: State, data: JSONBody[CreateTenant]
    ) -> CreatedTenant:
        """Create a tenant with its graph `default` and, if requested, an invitation of its first owner and a first key.

        Either all of it is created or nothing. The response is 409 `tenant_exists` if the slug is taken, so the request
        may be repeated.
        """
        cells: OperatorCells = state.cells
        await operations.share_plan(cells, request.user, data.plan, data.cell)
        async with (
            cells.claimed(data.slug, data.cell) as tenant_id,
            cells.at(data.cell).session(request.user) as operator,
            operator.transaction(),
        ):
            tenant = await tenants.create_tenant(
                operator, data.slug, data.name or data.slug, plan=data.plan, tenant_id=tenant_id
            )
            link, key = await _first_credentials(operator, tenant, data, state)
        return CreatedTenant(**structs.asdict(tenant_body(tenant, data.cell)), invitation_link=link, admin_key=key)

    @get("/{slug:str}", responses=TAGGED_RESPONSES, response_description="The tenant.", summary="Get a tenant")
    async def get_tenant(
        self, request: OperatorRequest, operator: NamedDependency[Operator], slug: TenantInPath
    ) -> Response[TenantRecordBody]:
        """Return a tenant with its ETag."""
        return tagged(request, tenant_body(await tenants.find_tenant(operator, slug), operator.cell))

    @get(
        "/{slug:str}/rows",
        responses=RESPONSES,
        response_description="The number of the tenant's rows in each table.",
        summary="Count a tenant's rows",
    )
    async def count_tenant_rows(self, operator: NamedDependency[Operator], slug: TenantInPath) -> RowCounts:
        """Count the rows of each table that an erasure of the tenant would delete."""
        return RowCounts(await deletions.count_rows(operator, slug))

    @put(
        "/{slug:str}/plan",
        responses=CHANGE_RESPONSES,
        response_description="The tenant with the new plan.",
        summary="Set a tenant's plan",
        before_request=valid_body(PlanName),
    )
    async def set_tenant_plan(
        self,
        request: OperatorRequest,
        operator: NamedDependency[Operator],
        state: State,
        slug: TenantInPath,
        data: JSONBody[PlanName],
    ) -> TenantRecordBody:
        """Give a tenant another plan, from its next call on.

        What the tenant has stored stays, even beyond the plan's limits.
        """
        check = _unchanged(request, operator)
        changed = await operations.set_tenant_plan(state.cells, request.user, operator, slug, data.plan, check=check)
        return tenant_body(changed, operator.cell)

    @put(
        "/{slug:str}/suspension",
        responses=CHANGE_RESPONSES,
        response_description="The tenant, which is suspended now.",
        summary="Suspend a tenant",
        before_request=valid_body(Suspension),
    )
    async def suspend_tenant(
        self,
        request: OperatorRequest,
        operator: NamedDependency[Operator],
        slug: TenantInPath,
        data: JSONBody[Suspension],
    ) -> TenantRecordBody:
        """Suspend a tenant at once, as a whole or read-only.

        When the response arrives, writes under way have either been completed or will never be.
        """
        read_only, check = data.kind == "read_only", _unchanged(request, operator)
        return tenant_body(
            await tenants.suspend_tenant(operator, slug, read_only=read_only, check=check), operator.cell
        )

    @delete(
        "/{slug:str}/suspension",
        responses=CHANGE_RESPONSES,
        response_description="The tenant, which is active again.",
        summary="Resume a tenant",
        status_code=200,
    )
    async def resume_tenant(
        self, request: OperatorRequest, operator: NamedDependency[Operator], slug: TenantInPath
    ) -> TenantRecordBody:
        """Accept a suspended tenant's credentials again, for reads and writes."""
        return tenant_body(
            await tenants.resume_tenant(operator, slug, check=_unchanged(request, operator)), operator.cell
        )

    @delete(
        "/{slug:str}",
        responses=CHANGE_RESPONSES,
        response_description="The tenant, which is suspended now and will be erased at `erase_at`.",
        summary="Delete a tenant",
        status_code=202,
    )
    async def delete_tenant(
        self,
        request: OperatorRequest,
        operator: NamedDependency[Operator],
        state: State,
        slug: TenantInPath,
        grace_days: GraceDays = None,
        confirm: Confirm = None,
    ) -> TenantRecordBody:
        """Suspend a tenant as a whole at once, and have a worker erase it when its grace period is over.

        Until then it can be restored. Without a grace period the deletion cannot be undone: `confirm` must then repeat
        the slug.
        """
        days = state.settings.tenant_deletion_grace_days if grace_days is None else grace_days
        check = _unchanged(request, operator)
        deleted = await operations.delete_tenant(operator, slug, days=days, confirm=confirm, check=check)
        return tenant_body(deleted, operator.cell)

    @post(
        "/{slug:str}/restore",
        responses=CHANGE_RESPONSES,
        response_description="The tenant, with the status that it had before the deletion.",
        summary="Restore a tenant",
        status_code=200,
    )
    async def restore_tenant(
        self, request: OperatorRequest, operator: NamedDependency[Operator], slug: TenantInPath
    ) -> TenantRecordBody:
        """Undo a tenant's deletion during its grace period. The tenant is active or suspended, as before."""
        return tenant_body(
            await deletions.restore_tenant(operator, slug, check=_unchanged(request, operator)), operator.cell
        )


def _unchanged(request: OperatorRequest, operator: Operator) -> Callable[[Tenant], None]:
    return unchanged(request, lambda tenant: tenant_body(tenant, operator.cell))


async def _first_credentials(
    operator: Operator, tenant: Tenant, data: CreateTenant, state: State
) -> tuple[str | None, str | None]:
    """The link of its owner's invitation and its first key, each if the request asks for it."""
    tx, link, key = await operator.within(operator_caller(tenant)), None, None
    if data.owner_email is not None:
        issued = await members.invite(tx, data.owner_email, Role.OWNER, pepper=state.pepper)
        link = f"{state.settings.base_url}/join/{issued.secret}"
    if data.admin_key is not None:
        new = NewKey(key_name(data.admin_key, path="admin_key"), kind="admin")
        key = (await identity.create_key(tx, new, pepper=state.pepper)).secret
    return link, key
