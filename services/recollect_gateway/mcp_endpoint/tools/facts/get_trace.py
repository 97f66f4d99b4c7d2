"""The tool `get_trace`."""

from itertools import pairwise
from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.graphs import service as graphs
from recollect.memory import exploring
from recollect.memory.exploring import Neighbourhood
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import cut_short
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    EdgeOut,
    NodeId,
    NodeOut,
    OwnedReadArguments,
    edges_out,
    graph_of,
    node_id,
    node_out,
)

MAX_PATHS = 5
"""The number of paths, if the caller gives no limit: the contract's default."""


class GetTrace(OwnedReadArguments, frozen=True, rename=None):
    """Arguments of `get_trace`."""

    from_id: NodeId
    to_id: NodeId
    max_paths: Annotated[int, Meta(ge=1, le=50, extra_json_schema={"default": MAX_PATHS})] | None = None


class PathOut(Struct, frozen=True):
    """A path: its nodes from start to end, and the relations between each and the next."""

    nodes: list[NodeOut]
    edges: list[EdgeOut]
    length: int


class Trace(Struct, frozen=True, omit_defaults=True):
    """Result of `get_trace`, shortest first; `cut` says which bound ended it early."""

    success: bool
    paths: list[PathOut]
    cut: str | None = None


async def get_trace(call: Call, arguments: GetTrace) -> Reply | PagedReply:
    """Show the paths between two nodes."""
    graph = graph_of(arguments)
    ends = node_id(arguments.from_id), node_id(arguments.to_id)
    async with call.searching(graph, arguments.as_of) as view:
        search = await exploring.open_trace(view, *ends, max_paths=arguments.max_paths or MAX_PATHS)
    paths = await call.compute(search.all_paths(), advice="Ask for fewer paths: max_paths.")
    async with call.transaction() as tx:
        found = await exploring.traced(tx, search, paths)
        owner_id = await graphs.name_of(tx, graph)
    return cut_short(
        await _paths_out(found, owner_id),
        lambda paths, cut: Reply(Trace(True, paths, cut)),
        limit=arguments.max_paths,
        cut=found.cut,
    )


GET_TRACE = facts_tool(
    description="Show the paths between two nodes, shortest first, whichever way the relations point.",
    result=Trace,
    handler=get_trace,
    read_only=True,
)


async def _paths_out(found: Neighbourhood, owner_id: str) -> list[PathOut]:
    """Paths, each with its own nodes and relations."""
    nodes = {node.node_id: node_out(node, owner_id) for node in found.nodes}
    paths = []
    for path in found.paths:
        steps = {frozenset(step) for step in pairwise(path)}
        edges = [edge for edge in found.edges if frozenset((edge.from_node, edge.to_node)) in steps]
        paths.append(PathOut([nodes[node] for node in path], await edges_out(edges), len(path) - 1))
    return paths
