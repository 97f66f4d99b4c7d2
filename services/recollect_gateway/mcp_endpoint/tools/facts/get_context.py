"""The tool `get_context`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.graphs import service as graphs
from recollect.memory import exploring
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import cut_short
from recollect_gateway.mcp_endpoint.schema import default_of
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    EdgeOut,
    NodeId,
    NodeOut,
    OwnedReadArguments,
    edge_out,
    graph_of,
    node_id,
    node_out,
)


class GetContext(OwnedReadArguments, frozen=True, rename=None):
    """Arguments of `get_context`."""

    node_id: NodeId = ""
    depth: Annotated[int, Meta(ge=0, le=6)] = 1
    max_nodes: Annotated[int, Meta(ge=1, le=200, extra_json_schema=default_of("subgraph_default_max_nodes"))] | None = (
        None
    )


class NodeContext(Struct, frozen=True, omit_defaults=True):
    """Result of `get_context`; `cut` says which bound ended it early."""

    success: bool
    nodes: list[NodeOut]
    edges: list[EdgeOut]
    cut: str | None = None


async def get_context(call: Call, arguments: GetContext) -> Reply | PagedReply:
    """Show the neighbourhood of a node; empty if the call names no node."""
    graph = graph_of(arguments)
    if not arguments.node_id:
        return Reply(NodeContext(True, [], []))
    async with call.reading(graph, arguments.as_of) as view:
        found = await exploring.neighbourhood(
            view,
            node_id(arguments.node_id),
            depth=arguments.depth,
            max_nodes=arguments.max_nodes or call.settings.subgraph_default_max_nodes,
        )
        owner_id = await graphs.name_of(view.tx, graph)
    nodes = [node_out(node, owner_id) for node in found.nodes]

    def reply(page: list[NodeOut], cut: str | None) -> Reply:
        ids = {node.node_id for node in found.nodes[: len(page)]}
        edges = [edge_out(edge) for edge in found.edges if edge.from_node in ids and edge.to_node in ids]
        return Reply(NodeContext(True, page, edges, cut))

    return cut_short(nodes, reply, limit=arguments.max_nodes, cut=found.cut, related_items=len(found.edges))


GET_CONTEXT = facts_tool(
    description="Show the nodes and relations around a node.",
    result=NodeContext,
    handler=get_context,
    read_only=True,
)
