"""The tool `history`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.lineages import service as lineages
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import Arguments, PagedReply, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import LineageId, NodeVersionOut, Offset, node_out


class History(Arguments, frozen=True, rename=None):
    """Arguments of `history`."""

    lineage_id: LineageId
    limit: Annotated[int, Meta(ge=1, le=500, description="Maximum number of versions")] | None = None
    offset: Offset = 0


class VersionHistory(Struct, frozen=True, omit_defaults=True):
    """Result of `history`, newest first; `next_offset` where there are `more`."""

    versions: list[NodeVersionOut]
    more: bool
    next_offset: int | None = None


async def history(call: Call, arguments: History) -> Reply | PagedReply:
    """Show the versions of a node."""
    offset, limit = arguments.offset, arguments.limit or PAGE_ROWS
    async with call.reading(arguments.graph) as view:
        found = await lineages.history(view.tx, view.graph, arguments.lineage_id, offset=offset, limit=limit + 1)
    return paged(
        [node_out(node, view.graph.name) for node in found[:limit]],
        lambda rows, next_offset: Reply(VersionHistory(rows, next_offset is not None, next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=offset + limit if len(found) > limit else None,
    )


HISTORY = ToolSpec(
    title="History of a node",
    description="List every version of a node, newest first. Works for deleted nodes, too.",
    toolsets=frozenset({"lineage"}),
    result=VersionHistory,
    handler=history,
    read_only=True,
)
