"""/v1/plan: what the tenant's plan allows, and how much of it is used."""

from datetime import UTC, datetime
from typing import Any

from litestar import Controller, Request, Response, get
from litestar.datastructures import State
from litestar.di import NamedDependency
from msgspec import Struct

from recollect.accounts.quotas import service as quotas
from recollect.caller import Caller
from recollect.platform.db import Database
from recollect_gateway.errors import TELLING
from recollect_gateway.guards import BY_SCOPE
from recollect_gateway.preconditions import tagged


class QuotaBody(Struct, frozen=True):
    """A quota by its name. `limit` null: none. `used` null: not for a key that is confined to some graphs to know."""

    quota: str
    limit: int | None
    used: int | None


class RatesBody(Struct, frozen=True):
    """How much may be asked at once, of the tenant and of the key that asks; null is no limit."""

    requests_per_minute: int | None
    key_requests_per_minute: int | None
    concurrent_calls: int | None


class PlanBody(Struct, frozen=True):
    """The tenant's plan. Of `nodes_per_graph` is told what the fullest graph has that the key reaches."""

    plan: str
    quotas: list[QuotaBody]
    rates: RatesBody


class PlanController(Controller):
    """Tell a tenant its plan."""

    path = "/plan"
    tags = ("usage",)

    @get("/", responses=TELLING, summary="Read the plan", opt=BY_SCOPE)
    async def read_plan(
        self, request: Request[Caller, Any, State], db: NamedDependency[Database]
    ) -> Response[PlanBody]:
        """What the plan allows, and how much of it is used now. For every key."""
        async with db.transaction(request.user, read_only=True) as tx:
            plan, found = await quotas.list_use(tx, datetime.now(UTC))
        rates = request.user.rates
        body = PlanBody(
            plan,
            [QuotaBody(one.name, one.limit, one.used) for one in found],
            RatesBody(rates.requests_per_minute, rates.key_requests_per_minute, rates.concurrent_calls),
        )
        return tagged(request, body)
