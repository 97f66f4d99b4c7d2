"""The tool `list_nodes`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.entities import service as entities
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import VersionFilter
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import Kinds, NodeVersionOut, Offset, Tags, node_out


class ListNodes(ReadArguments, frozen=True, rename=None):
    """Arguments of `list_nodes`."""

    kinds: Kinds = []
    tags: Tags = []
    compact: Annotated[bool, Meta(description="Without content, observations, metadata and provenance")] = False
    limit: Annotated[int, Meta(ge=1, le=500, description="Maximum number of nodes")] | None = None
    offset: Offset = 0


class Nodes(Struct, frozen=True, omit_defaults=True):
    """Result of `list_nodes`, oldest first; `next_offset` where there are `more`."""

    nodes: list[NodeVersionOut]
    more: bool
    next_offset: int | None = None


async def list_nodes(call: Call, arguments: ListNodes) -> Reply | PagedReply:
    """List nodes by kinds and tags."""
    offset, limit = arguments.offset, arguments.limit or PAGE_ROWS
    filter_ = VersionFilter(tuple(arguments.kinds), tuple(arguments.tags), limit, offset)
    async with call.searching(arguments.graph, arguments.as_of) as view:
        found, more = await lineages.list_nodes(view, filter_)
        entity_ids = [] if arguments.compact else [node.node_id for node in found if node.name is not None]
        observations = await entities.observations_of(view, entity_ids) if entity_ids else {}
    nodes = [
        node_out(node, view.graph.name, compact=arguments.compact, listed=observations.get(node.node_id))
        for node in found
    ]
    return paged(
        nodes,
        lambda rows, next_offset: Reply(Nodes(rows, next_offset is not None, next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=offset + limit if more else None,
    )


LIST_NODES = ToolSpec(
    title="List nodes",
    description="List the current nodes of a graph, oldest first, filtered by kinds and tags.",
    toolsets=frozenset({"lineage"}),
    result=Nodes,
    handler=list_nodes,
    read_only=True,
)
