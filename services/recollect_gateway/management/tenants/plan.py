"""/v1/plan: the limits of the tenant's plan, and how much of them is used."""

from datetime import UTC, datetime

from litestar import Controller, Response
from litestar.di import NamedDependency

from recollect.postgres.tenant_database import TenantDatabase
from recollect_gateway.management.guards import BY_SCOPE, CallerRequest
from recollect_gateway.operations import plan
from recollect_gateway.operations.plan import PlanBody
from recollect_http.openapi.routes import get
from recollect_http.preconditions import tagged
from recollect_http.problems import TAGGED_RESPONSES


class PlanController(Controller):
    """Read the tenant's plan."""

    path = "/plan"
    tags = ("usage",)

    @get(
        "/",
        responses=TAGGED_RESPONSES,
        response_description="The plan's limits, and what is used of them now.",
        summary="Get the plan",
        opt=BY_SCOPE,
    )
    async def get_plan(self, request: CallerRequest, db: NamedDependency[TenantDatabase]) -> Response[PlanBody]:
        """Return the limits of the tenant's plan, and how much of each is used now."""
        async with db.transaction(request.user, read_only=True) as tx:
            return tagged(request, await plan.read_plan(tx, datetime.now(UTC)))
