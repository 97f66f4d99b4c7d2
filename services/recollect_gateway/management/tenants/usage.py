"""/v1/usage: the tenant's calls, hour by hour and in series for charts, and what its graphs hold."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from litestar import Controller
from litestar.di import NamedDependency
from litestar.params import QueryParameter
from msgspec import Meta, Struct

from recollect.accounts.usage import service as usage
from recollect.accounts.usage.model import (
    Kind,
    Per,
    StoredCounts,
    UsagePoint,
    UsageRow,
    cursor_of,
    series_span,
    usage_span,
)
from recollect.caller import Scope
from recollect.postgres.tenant_database import TenantDatabase
from recollect_gateway.management.guards import CallerRequest, mirrors
from recollect_gateway.management.memory.graphs import Cursor
from recollect_gateway.management.memory.times import require_written_times
from recollect_http.openapi.routes import get
from recollect_http.pages import Limit, Page
from recollect_http.requests.parsing import check_text

_OF_SINCE = "Start of the range: hours from that of this time on. Default: a day before `to`"
Since = Annotated[datetime | None, QueryParameter(name="from", description=_OF_SINCE)]
SeriesSince = Annotated[
    datetime | None, QueryParameter(name="from", description=f"{_OF_SINCE}; 30 days before it if `per` is `day`")
]
Until = Annotated[
    datetime | None,
    QueryParameter(name="to", description="End of the range: hours that begin before this time. Default: now"),
]
Sums = Annotated[
    Per, QueryParameter(description="Return sums for each `hour`, `day` or `month`, or one for the whole range (`all`)")
]
After = Annotated[
    str | None,
    QueryParameter(
        max_length=300,
        description="`next_cursor` of the previous page, which contains `from` and `to`. Default: the first page",
    ),
]


OfKind = Annotated[Kind | None, QueryParameter(description="Only tools, resources, routes, or the worker's work")]
OfName = Annotated[str | None, QueryParameter(max_length=200, description="Only what has this name, such as `recall`")]


Steps = Annotated[Literal["hour", "day"], QueryParameter(description="Return a point for each `hour` or `day`")]


class UsageSeries(Struct, frozen=True):
    """Usage over time."""

    since: Annotated[datetime, Meta(description="Start of the range, at a full hour")]
    until: Annotated[datetime, Meta(description="End of the range, before which the last point begins")]
    per: Annotated[Literal["hour", "day"], Meta(description="Length of time of each point")]
    points: Annotated[
        list[UsagePoint],
        Meta(description="One point for each hour or day (UTC), also those without usage, oldest first"),
    ]


class UsageController(Controller):
    """Read what a tenant uses."""

    path = "/usage"
    tags = ("usage",)

    @get("/", response_description="A page of the sums of calls.", summary="List calls", opt=mirrors("usage"))
    async def list_usage(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        since: Since = None,
        until: Until = None,
        per: Sums = "hour",
        cursor: After = None,
        limit: Limit = 50,
    ) -> Page[UsageRow]:
        """List sums of the calls of tools, resources and routes, and of the worker's work, oldest first.

        The range is 366 days at most. Calls of the last seconds may be missing.
        """
        request.user.require(Scope.MEMORY_READ)
        require_written_times(request, "from", "to")
        span = usage_span(since, until, per, now=datetime.now(UTC), cursor=cursor)
        async with db.transaction(request.user, read_only=True) as tx:
            found, more = await usage.read_usage(tx, span, limit=limit)
        return Page(found, cursor_of(span, found[-1]) if more else None)

    @get(
        "/series",
        response_description="The sums of calls for each hour or day.",
        summary="Get usage over time",
        opt=mirrors("usage"),
    )
    async def get_usage_series(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        since: SeriesSince = None,
        until: Until = None,
        per: Steps = "hour",
        kind: OfKind = None,
        name: OfName = None,
    ) -> UsageSeries:
        """Return sums of all calls, or of one kind or name, for charts.

        The range is 31 days at most by hour, and 366 days by day.
        """
        check_text({"name": name})
        require_written_times(request, "from", "to")
        span = series_span(since, until, per, now=datetime.now(UTC))
        async with db.transaction(request.user, read_only=True) as tx:
            return UsageSeries(span.since, span.until, per, await usage.read_series(tx, span, kind=kind, name=name))

    @get(
        "/stored",
        response_description="A page of the counts of each graph.",
        summary="List what graphs store",
        opt=mirrors("usage"),
    )
    async def list_stored_counts(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], cursor: Cursor = "", limit: Limit = 50
    ) -> Page[StoredCounts]:
        """List what is stored in each graph that the credential may access, sorted by the graph's name.

        Each entry also says what has expired and waits to be purged.
        """
        request.user.require(Scope.MEMORY_READ)
        async with db.transaction(request.user, read_only=True) as tx:
            found, more = await usage.list_stored(tx, after=cursor, limit=limit)
        return Page(found, found[-1].graph if more else None)
