"""The tools `outgoing` and `incoming`."""

from msgspec import Struct

from recollect.graph.relations.model import Direction, Walk
from recollect.memory import exploring
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import (
    EdgeKinds,
    EdgeLimit,
    LineageEdgeOut,
    LineageId,
    Offset,
    edge_out,
)


class Adjacent(ReadArguments, frozen=True, rename=None):
    """Arguments of `outgoing` and `incoming`."""

    lineage_id: LineageId
    edge_kinds: EdgeKinds = []
    limit: EdgeLimit | None = None
    offset: Offset = 0


class EdgeList(Struct, frozen=True, omit_defaults=True):
    """Result of `outgoing` and `incoming`, in the order of ordinal and age; `next_offset` where there are `more`."""

    edges: list[LineageEdgeOut]
    more: bool
    next_offset: int | None = None


async def outgoing(call: Call, arguments: Adjacent) -> Reply | PagedReply:
    """Show the edges that start at a node."""
    return await _adjacent(call, arguments, Direction.OUTGOING)


OUTGOING = ToolSpec(
    title="Outgoing edges",
    description="List the edges that start at a node.",
    toolsets=frozenset({"lineage"}),
    result=EdgeList,
    handler=outgoing,
    read_only=True,
)


async def incoming(call: Call, arguments: Adjacent) -> Reply | PagedReply:
    """Show the edges that end at a node."""
    return await _adjacent(call, arguments, Direction.INCOMING)


INCOMING = ToolSpec(
    title="Incoming edges",
    description="List the edges that end at a node, including those from other graphs.",
    toolsets=frozenset({"lineage"}),
    result=EdgeList,
    handler=incoming,
    read_only=True,
)


async def _adjacent(call: Call, arguments: Adjacent, direction: Direction) -> Reply | PagedReply:
    offset, limit = arguments.offset, arguments.limit or PAGE_ROWS
    walk = Walk(direction, tuple(arguments.edge_kinds))
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await exploring.edges_at(
            view,
            arguments.lineage_id,
            walk,
            offset=offset,
            limit=limit,
        )
    return paged(
        [edge_out(link) for link in found.links],
        lambda rows, next_offset: Reply(EdgeList(rows, next_offset is not None, next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=offset + len(found.links) if found.more else None,
    )
