"""The tool `delete_edge`."""

from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct

from recollect.graph.relations import service as relations
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec


class DeleteEdge(Arguments, frozen=True, rename=None):
    """Arguments of `delete_edge`."""

    id: Annotated[UUID, Meta(description="The edge's id")]


class DeletedEdge(Struct, frozen=True):
    """Result of `delete_edge`; `deleted` false: the graph has no such edge."""

    id: str
    deleted: bool


async def delete_edge(call: Call, arguments: DeleteEdge) -> Reply:
    """Delete an edge of the graph."""
    async with call.writing(arguments.graph) as (tx, revision):
        deleted = await relations.delete_edges(tx, revision, [arguments.id])
    return Reply(DeletedEdge(str(arguments.id), deleted == 1))


DELETE_EDGE = ToolSpec(
    title="Delete an edge",
    description="Delete an edge of a graph by its id. The edge stays in history.",
    toolsets=frozenset({"lineage"}),
    result=DeletedEdge,
    handler=delete_edge,
    destructive=True,
    idempotent=True,
)
