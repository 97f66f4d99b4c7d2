"""/v1/plan: what the tenant's plan allows, and how much of it is used."""

from datetime import UTC, datetime
from typing import Any

from litestar import Controller, Request, get
from litestar.datastructures import State
from litestar.di import NamedDependency

from recollect.caller import Caller
from recollect.platform.db import Database
from recollect_gateway.errors import RESPONSES
from recollect_gateway.guards import BY_SCOPE
from recollect_gateway.operations import plan
from recollect_gateway.operations.plan import PlanBody


class PlanController(Controller):
    """Tell a tenant its plan."""

    path = "/plan"
    tags = ("usage",)

    @get("/", responses=RESPONSES, summary="Read the plan", opt=BY_SCOPE)
    async def read_plan(self, request: Request[Caller, Any, State], db: NamedDependency[Database]) -> PlanBody:
        """What the plan allows, and how much of it is used now. For every key."""
        async with db.transaction(request.user, read_only=True) as tx:
            return await plan.read_plan(tx, datetime.now(UTC))
