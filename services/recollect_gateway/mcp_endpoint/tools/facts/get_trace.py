"""The tool `get_trace`."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct

from recollect.graph.graphs import service as graphs
from recollect.graph.relations.model import Edge
from recollect.memory import exploring
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import cut_short
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
    nodes = {node.node_id: node_out(node, owner_id) for node in found.nodes}
    return cut_short(
        found.paths,
        lambda paths, cut: Reply(Trace(True, [_path_out(path, nodes, found.edges) for path in paths], cut)),
        limit=arguments.max_paths,
        cut=found.cut,
        related_items=len(found.paths) * len(found.edges),
    )


GET_TRACE = facts_tool(
    description="Show the paths between two nodes, shortest first, whichever way the relations point.",
    result=Trace,
    handler=get_trace,
    read_only=True,
)


def _path_out(path: Sequence[UUID], nodes: Mapping[UUID, NodeOut], edges: Iterable[Edge]) -> PathOut:
    """A path with its own nodes and relations."""
    steps = {frozenset(step) for step in pairwise(path)}
    own = [edge_out(edge) for edge in edges if frozenset((edge.from_node, edge.to_node)) in steps]
    return PathOut([nodes[node] for node in path], own, len(path) - 1)
