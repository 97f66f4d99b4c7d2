"""The tool `traverse`."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from recollect.graph.relations.model import Direction, Walk
from recollect.memory import exploring
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import cut_short
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import (
    EdgeKinds,
    LineageEdgeOut,
    LineageId,
    NodeVersionOut,
    edge_out,
    node_out,
)

MAX_NODES = 50
"""The number of nodes of a walk, if the caller gives no limit: the memgraph package's default."""


class Traverse(ReadArguments, frozen=True, rename=None):
    """Arguments of `traverse`."""

    lineage_id: LineageId
    max_depth: Annotated[int, Meta(ge=1, le=10, description="Maximum number of edges from the start")] = 2
    edge_kinds: EdgeKinds = []
    direction: Annotated[Literal["outgoing", "incoming", "both"], Meta(description="Which way edges are followed")] = (
        "outgoing"
    )
    follow_symlinks: Annotated[bool, Meta(description="Follow edges into other graphs too")] = False
    max_nodes: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=500,
                description="Maximum number of nodes, including the start",
                extra_json_schema={"default": MAX_NODES},
            ),
        ]
        | None
    ) = None


class TraversedNode(Struct, frozen=True):
    """A node that was reached, and how many edges away."""

    node: NodeVersionOut
    depth: int


class Traversal(Struct, frozen=True):
    """Result of `traverse`, nearest first. `cut`: the bound that ended it early, or empty.

    That is nodes, edges or time; or size, where a page is full.
    """

    nodes: list[TraversedNode]
    edges: list[LineageEdgeOut]
    cut: str


async def traverse(call: Call, arguments: Traverse) -> Reply | PagedReply:
    """Walk from a node along its edges."""
    walk = Walk(Direction(arguments.direction), tuple(arguments.edge_kinds), arguments.follow_symlinks)
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await exploring.traverse_from(
            view,
            arguments.lineage_id,
            walk,
            depth=arguments.max_depth,
            max_nodes=arguments.max_nodes or MAX_NODES,
        )
    nodes = [TraversedNode(node_out(node, found.graphs[node.graph_id]), depth) for node, depth in found.nodes]

    def reply(page: list[TraversedNode], cut: str | None) -> Reply:
        left_out = {node.node_id for node, _ in found.nodes[len(page) :]}
        links = [link for link in found.links if not left_out & {link.edge.from_node, link.edge.to_node}]
        return Reply(Traversal(page, [*map(edge_out, links)], cut or ""))

    return cut_short(nodes, reply, limit=arguments.max_nodes, cut=found.cut, related_items=len(found.links))


TRAVERSE = ToolSpec(
    description="Walk from a node along its edges, nearest nodes first. It enters other graphs only with "
    "follow_symlinks.",
    toolsets=frozenset({"lineage"}),
    result=Traversal,
    handler=traverse,
    read_only=True,
)
