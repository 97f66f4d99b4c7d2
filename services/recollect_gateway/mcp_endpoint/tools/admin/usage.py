"""The tool `usage`. `GET /v1/usage` answers the same shapes."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from recollect.accounts.usage import service as usage
from recollect.accounts.usage.model import Per, StoredCounts, UsageRow, cursor_of, usage_span
from recollect.graph.graphs import service as graphs
from recollect.postgres.transactions import Transaction
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import Arguments, PagedReply, Reply, ToolSpec
from recollect_gateway.operations import plan
from recollect_gateway.operations.plan import PlanBody
from recollect_http.requests.argument_types import Time, Until

MAX_STORED = 20
"""The maximum number of graphs whose stored counts are listed. `GET /v1/usage/stored` lists all of them, in pages."""


class Usage(Arguments, frozen=True, rename=None):
    """Arguments of `usage`. Calls are always those of the tenant; `graph` selects the stored counts of one graph."""

    since: Annotated[Time, Meta(description="Hours from that of this time on; default: a day before `to`")] | None = (
        msgspec.field(default=None, name="from")
    )
    until: Annotated[Until, Meta(description="Hours that begin before this time; default: now")] | None = msgspec.field(
        default=None, name="to"
    )
    per: Annotated[Per, Meta(description="Sum by hour, day or month, or over all")] = "hour"
    limit: Annotated[int, Meta(ge=1, le=1_000, description="Maximum number of rows")] | None = None
    cursor: Annotated[str, Meta(max_length=300, description="`next_cursor` of the previous page")] | None = None


class UsageReport(Struct, frozen=True):
    """Result of `usage`, oldest first. Only the first page has `stored` and `plan`; `stored_more`: there are others."""

    usage: list[UsageRow]
    next_cursor: str | None
    stored: list[StoredCounts]
    stored_more: bool
    plan: PlanBody | None


async def read_usage(call: Call, arguments: Usage) -> Reply | PagedReply:
    """Report calls and, on the first page, stored counts and the plan."""
    now, cursor, limit = datetime.now(UTC), arguments.cursor, arguments.limit or PAGE_ROWS
    span = usage_span(arguments.since, arguments.until, arguments.per, now=now, cursor=cursor)
    async with call.transaction() as tx:
        found, more = await usage.read_usage(tx, span, limit=limit)
        stored, stored_more, plan_body = list[StoredCounts](), False, None
        if cursor is None:
            stored, stored_more = await _stored(tx, arguments.graph)
            plan_body = await plan.read_plan(tx, now)

    def reply(rows: list[UsageRow], next_offset: int | None) -> Reply:
        next_cursor = None if next_offset is None else cursor_of(span, rows[-1])
        return Reply(UsageReport(rows, next_cursor, stored, stored_more, plan_body))

    return paged(found, reply, limit=arguments.limit, next_offset=limit if more else None)


USAGE = ToolSpec(
    name="usage",
    description="Report how often the organisation called each tool and route, hourly or summed, with errors and "
    "embedded passages; what its graphs hold now; and what its plan leaves of each quota. The last seconds may be "
    "missing.",
    toolsets=frozenset({"admin"}),
    result=UsageReport,
    handler=read_usage,
    read_only=True,
)


async def _stored(tx: Transaction, graph: str | None) -> tuple[list[StoredCounts], bool]:
    """The stored counts of all graphs or of one, and whether there are more; none if the graph does not exist."""
    if graph is None:
        return await usage.list_stored(tx, limit=MAX_STORED)
    graph_id = (await graphs.find_graph_ids(tx, [graph])).get(graph)
    return ([], False) if graph_id is None else await usage.list_stored(tx, graph_id=graph_id, limit=MAX_STORED)
