"""Edges between lineages: make, delete, follow them."""

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct

from recollect.memory import subgraphs
from recollect.memory.model import Edges, EdgeSpec, Link, Target
from recollect.relations import service as relations
from recollect.relations.model import Direction, Walk
from recollect_gateway.mcp_endpoint.tool import Arguments, Call, Reading, Reply
from recollect_gateway.mcp_endpoint.toolsets.lineage.shapes import (
    CreatedBy,
    EdgeOut,
    LineageId,
    NodeOut,
    Offset,
    edge_out,
    node_out,
    require_small,
)
from recollect_gateway.shapes import GraphName

EdgeKind = Annotated[str, Meta(min_length=1, max_length=256, description="What the edge says, such as cites")]
EdgeKinds = Annotated[list[EdgeKind], Meta(max_length=50, description="Only edges of these kinds; default any")]
ToGraph = Annotated[GraphName, Meta(description="The graph that the target lives in, if another: a symlink")]
Metadata = Annotated[dict[str, Any], Meta(description="Anything to keep with it")]
Ordinal = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1, description="Its place among the edges of its source")]
EdgeLimit = Annotated[int, Meta(ge=1, le=1_000, description="Edges at most")]


class PutEdge(Arguments, frozen=True, rename=None):
    """Arguments of `put_edge`."""

    from_lineage: LineageId
    to_lineage: LineageId
    kind: EdgeKind
    to_graph: ToGraph | None = None
    metadata: Metadata = {}
    ordinal: Ordinal | None = None
    created_by: CreatedBy | None = None


class DeleteEdge(Arguments, frozen=True, rename=None):
    """Arguments of `delete_edge`."""

    id: Annotated[UUID, Meta(description="The edge's id")]


class Adjacent(Reading, frozen=True, rename=None):
    """Arguments of `outgoing` and `incoming`."""

    lineage_id: LineageId
    edge_kinds: EdgeKinds = []
    limit: EdgeLimit = 100


class Traverse(Reading, frozen=True, rename=None):
    """Arguments of `traverse`."""

    lineage_id: LineageId
    max_depth: Annotated[int, Meta(ge=1, le=10, description="Edges from the start at most")] = 2
    edge_kinds: EdgeKinds = []
    direction: Annotated[Literal["outgoing", "incoming", "both"], Meta(description="Which way edges are followed")] = (
        "outgoing"
    )
    follow_symlinks: Annotated[bool, Meta(description="Follow edges into other graphs too")] = False
    max_nodes: Annotated[int, Meta(ge=1, le=500, description="Nodes at most, the start included")] = 50


class SymlinkManifest(Arguments, frozen=True, rename=None):
    """Arguments of `symlink_manifest`."""

    limit: EdgeLimit = 100
    offset: Offset = 0


class OneEdge(Struct, frozen=True):
    """Result of `put_edge`: the edge, new or as it was there already."""

    edge: EdgeOut
    created: bool


class DeletedEdge(Struct, frozen=True):
    """Result of `delete_edge`; `deleted` false: the graph has no such edge."""

    id: str
    deleted: bool


class EdgeList(Struct, frozen=True):
    """Result of `outgoing` and `incoming`, in the order of ordinal and age."""

    edges: list[EdgeOut]
    more: bool


class TraversedNode(Struct, frozen=True):
    """A node that was reached, and how many edges away."""

    node: NodeOut
    depth: int


class Traversal(Struct, frozen=True):
    """Result of `traverse`, nearest first. `cut`: the bound that ended it early (nodes, edges, time), or empty."""

    nodes: list[TraversedNode]
    edges: list[EdgeOut]
    cut: str


class SymlinkTarget(Struct, frozen=True, omit_defaults=True):
    """A graph that symlinks of a page lead to; `graph` is left out where it is gone."""

    graph_id: str
    count: int
    dangling: int
    graph: str | None = None


class Symlinks(Struct, frozen=True):
    """Result of `symlink_manifest`: the symlinks, oldest first, and the graphs that they lead to."""

    symlinks: list[EdgeOut]
    targets: list[SymlinkTarget]
    more: bool


async def put_edge(call: Call, arguments: PutEdge) -> Reply:
    """Make an edge."""
    require_small(call, arguments.metadata, "metadata")
    spec = EdgeSpec(
        Target(arguments.from_lineage),
        Target(arguments.to_lineage),
        arguments.kind,
        arguments.to_graph,
        arguments.metadata,
        arguments.ordinal,
        arguments.created_by,
    )
    async with call.writing(arguments.graph) as (tx, revision):
        edge = await subgraphs.put_edge(tx, revision, spec)
        link = Link(edge, revision.graph.name, arguments.to_graph or revision.graph.name, dangling=False)
        created = edge.id in revision.ids
    return Reply(OneEdge(edge_out(link), created))


async def delete_edge(call: Call, arguments: DeleteEdge) -> Reply:
    """Delete an edge of the graph."""
    async with call.writing(arguments.graph) as (tx, revision):
        deleted = await relations.delete_edges(tx, revision, [arguments.id])
    return Reply(DeletedEdge(str(arguments.id), deleted == 1))


async def outgoing(call: Call, arguments: Adjacent) -> Reply:
    """Show the edges that start at a node."""
    return await _adjacent(call, arguments, Direction.OUTGOING)


async def incoming(call: Call, arguments: Adjacent) -> Reply:
    """Show the edges that end at a node."""
    return await _adjacent(call, arguments, Direction.INCOMING)


async def traverse(call: Call, arguments: Traverse) -> Reply:
    """Walk from a node along its edges."""
    walk = Walk(Direction(arguments.direction), tuple(arguments.edge_kinds), arguments.follow_symlinks)
    async with call.transaction() as tx:
        found = await subgraphs.walk_from(
            tx,
            arguments.graph,
            arguments.lineage_id,
            walk,
            depth=arguments.max_depth,
            max_nodes=arguments.max_nodes,
            as_of=arguments.as_of,
        )
    nodes = [TraversedNode(node_out(node, found.graphs[node.graph_id]), depth) for node, depth in found.nodes]
    return Reply(Traversal(nodes, [edge_out(link) for link in found.links], found.cut or ""))


async def symlink_manifest(call: Call, arguments: SymlinkManifest) -> Reply:
    """List the edges that lead into other graphs."""
    async with call.transaction() as tx:
        found = await subgraphs.symlinks_of(tx, arguments.graph, offset=arguments.offset, limit=arguments.limit)
    return Reply(Symlinks([edge_out(link) for link in found.links], _targets(found), found.more))


async def _adjacent(call: Call, arguments: Adjacent, direction: Direction) -> Reply:
    walk = Walk(direction, tuple(arguments.edge_kinds))
    async with call.transaction() as tx:
        found = await subgraphs.edges_at(
            tx, arguments.graph, arguments.lineage_id, walk, limit=arguments.limit, as_of=arguments.as_of
        )
    return Reply(EdgeList([edge_out(link) for link in found.links], found.more))


def _targets(found: Edges) -> list[SymlinkTarget]:
    by_graph: dict[UUID, list[Link]] = {}
    for link in found.links:
        by_graph.setdefault(link.edge.to_graph, []).append(link)
    return [
        SymlinkTarget(str(graph_id), len(links), sum(link.dangling for link in links), links[0].to_graph)
        for graph_id, links in by_graph.items()
    ]
