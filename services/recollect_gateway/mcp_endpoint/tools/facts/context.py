"""Walks along relations: the surroundings of a node, and the paths between two nodes."""

from itertools import pairwise
from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.graphs import service as graphs
from recollect.memory import exploring
from recollect.memory.exploring import Neighbourhood
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import cut_short
from recollect_gateway.mcp_endpoint.schema import default_of
from recollect_gateway.mcp_endpoint.tool import Listing, Reply
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
"""Paths, if the caller gives no limit: the contract's default."""


class GetContext(OwnedReadArguments, frozen=True, rename=None):
    """Arguments of `get_context`."""

    node_id: NodeId = ""
    depth: Annotated[int, Meta(ge=0, le=6)] = 1
    max_nodes: Annotated[int, Meta(ge=1, le=200, extra_json_schema=default_of("subgraph_default_max_nodes"))] | None = (
        None
    )


class GetTrace(OwnedReadArguments, frozen=True, rename=None):
    """Arguments of `get_trace`."""

    from_id: NodeId
    to_id: NodeId
    max_paths: Annotated[int, Meta(ge=1, le=50, extra_json_schema={"default": MAX_PATHS})] | None = None


class Context(Struct, frozen=True, omit_defaults=True):
    """Result of `get_context`; `cut` says which bound ended it early."""

    success: bool
    nodes: list[NodeOut]
    edges: list[EdgeOut]
    cut: str | None = None


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


async def get_context(call: Call, arguments: GetContext) -> Reply | Listing:
    """Show the surroundings of a node; nothing if no node is named."""
    graph = graph_of(arguments)
    if not arguments.node_id:
        return Reply(Context(True, [], []))
    async with call.reading(graph, arguments.as_of, keyed=True) as view:
        found = await exploring.neighbourhood(
            view,
            node_id(arguments.node_id),
            depth=arguments.depth,
            max_nodes=arguments.max_nodes or call.settings.subgraph_default_max_nodes,
        )
        owner_id = await graphs.name_of(view.tx, graph)
    nodes = [node_out(node, owner_id) for node in found.nodes]
    edges = await edges_out(found.edges)

    def reply(page: list[NodeOut], cut: str | None) -> Reply:
        ids = {node.id for node in page}
        return Reply(Context(True, page, [edge for edge in edges if edge.from_id in ids and edge.to_id in ids], cut))

    return cut_short(nodes, reply, limit=arguments.max_nodes, cut=found.cut, related_items=len(edges))


async def get_trace(call: Call, arguments: GetTrace) -> Reply | Listing:
    """Show the paths between two nodes."""
    graph = graph_of(arguments)
    ends = node_id(arguments.from_id), node_id(arguments.to_id)
    async with call.reading(graph, arguments.as_of) as view:
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


async def _paths_out(found: Neighbourhood, owner_id: str) -> list[PathOut]:
    """Paths, each with its own nodes and relations."""
    nodes = {node.node_id: node_out(node, owner_id) for node in found.nodes}
    paths = []
    for path in found.paths:
        steps = {frozenset(step) for step in pairwise(path)}
        edges = [edge for edge in found.edges if frozenset((edge.from_node, edge.to_node)) in steps]
        paths.append(PathOut([nodes[node] for node in path], await edges_out(edges), len(path) - 1))
    return paths
