"""The tool `delete_graph`."""

from typing import Annotated

from msgspec import Meta, Struct, field

from recollect.caller import Scope
from recollect.errors import NotFound
from recollect.graph.graphs import service as graphs
from recollect.retention.erasure import service as erasure
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.confirmation import confirm
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_http.requests.argument_types import GraphName


class DeleteGraph(Arguments, frozen=True, rename=None):
    """Arguments of `delete_graph`: the graph must be named, no default is taken."""

    graph: Annotated[GraphName, Meta(description="Graph to delete, by name or id")] = field()


class DeletedGraph(Struct, frozen=True):
    """Result of `delete_graph`; `deleted` false: there was no such graph."""

    graph: str
    deleted: bool


async def delete_graph(call: Call, arguments: DeleteGraph) -> Reply:
    """Delete a graph with its history."""
    try:
        async with call.changing(arguments.graph, unbounded=True) as tx:
            name = await graphs.name_of(tx, arguments.graph)
            await erasure.erase_graph(tx, arguments.graph)
    except NotFound:
        return Reply(DeletedGraph(arguments.graph, False))
    return Reply(DeletedGraph(name, True))


async def _count_nodes(call: Call, arguments: DeleteGraph) -> int:
    async with call.transaction() as tx:
        head = await graphs.head_of(await graphs.view(tx, arguments.graph))
    return head.entities + head.facts


DELETE_GRAPH = ToolSpec(
    title="Delete a graph",
    description="Delete a graph with everything in it, including its history. This cannot be undone. Its name "
    "becomes free again.",
    toolsets=frozenset({"lineage"}),
    result=DeletedGraph,
    handler=delete_graph,
    ask=confirm(
        "deletes the graph {graph} for good, with {size} nodes and its history", _count_nodes, max_unconfirmed=0
    ),
    destructive=True,
    idempotent=True,
    needs=Scope.TENANT_ADMIN,
)
