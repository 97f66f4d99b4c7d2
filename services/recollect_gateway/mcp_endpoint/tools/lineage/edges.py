"""Edges between lineages: create, delete and follow them."""

from collections.abc import Iterable
from itertools import zip_longest
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct

from recollect.fairness.computing import map_yielding
from recollect.graph.graphs import service as graphs
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import Direction, Walk
from recollect.memory import exploring, relating
from recollect.memory.model import EdgeSpec, NamedEdge, Target
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, cut_short, paged
from recollect_gateway.mcp_endpoint.tool import Arguments, Listing, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import (
    CreatedBy,
    LineageEdgeOut,
    LineageId,
    NodeVersionOut,
    Offset,
    edge_out,
    node_out,
    require_small,
)
from recollect_http.requests.argument_types import GraphName

EdgeKind = Annotated[str, Meta(min_length=1, max_length=256, description="The edge's kind, such as cites")]
EdgeKinds = Annotated[list[EdgeKind], Meta(max_length=50, description="Only edges of these kinds; default any")]
ToGraph = Annotated[
    GraphName, Meta(description="Name or id of the target's graph, if it is another one: makes a symlink")
]
EdgeMetadata = Annotated[
    dict[str, Any], Meta(description="Any data to store with it; replaces the metadata of an existing edge")
]
Ordinal = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1, description="Its position among the edges of its source")]
EdgeLimit = Annotated[int, Meta(ge=1, le=1_000, description="Maximum number of edges")]


MAX_NODES = 50
"""Nodes of a walk, if the caller gives no limit: the memgraph package's default."""


class PutEdge(Arguments, frozen=True, rename=None):
    """Arguments of `put_edge`."""

    from_lineage: LineageId
    to_lineage: LineageId
    kind: EdgeKind
    to_graph: ToGraph | None = None
    metadata: EdgeMetadata | None = None
    ordinal: Ordinal | None = None
    created_by: CreatedBy | None = None


class DeleteEdge(Arguments, frozen=True, rename=None):
    """Arguments of `delete_edge`."""

    id: Annotated[UUID, Meta(description="The edge's id")]


class Adjacent(ReadArguments, frozen=True, rename=None):
    """Arguments of `outgoing` and `incoming`."""

    lineage_id: LineageId
    edge_kinds: EdgeKinds = []
    limit: EdgeLimit | None = None
    offset: Offset = 0


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


class SymlinkManifest(Arguments, frozen=True, rename=None):
    """Arguments of `symlink_manifest`."""

    limit: EdgeLimit | None = None
    offset: Offset = 0


class OneEdge(Struct, frozen=True):
    """Result of `put_edge`. Neither `created` nor `updated`: the edge was there just so already."""

    edge: LineageEdgeOut
    created: bool
    updated: bool


class DeletedEdge(Struct, frozen=True):
    """Result of `delete_edge`; `deleted` false: the graph has no such edge."""

    id: str
    deleted: bool


class EdgeList(Struct, frozen=True, omit_defaults=True):
    """Result of `outgoing` and `incoming`, in the order of ordinal and age; `next_offset` where there are `more`."""

    edges: list[LineageEdgeOut]
    more: bool
    next_offset: int | None = None


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


class SymlinkGraph(Struct, frozen=True, omit_defaults=True):
    """A graph that symlinks of a page lead to, or come from; `graph`, its name, is left out where it is gone."""

    graph_id: str
    count: int
    dangling: int
    graph: str | None = None


class Symlinks(Struct, frozen=True, omit_defaults=True):
    """Result of `symlink_manifest`: a page of the symlinks, oldest first, and the graphs that they lead to.

    `inbound`: the same page of those that lead into the graph, and the graphs that they come from. `next_offset`: where
    more of either follow.
    """

    symlinks: list[LineageEdgeOut]
    targets: list[SymlinkGraph]
    more: bool
    inbound: list[LineageEdgeOut]
    sources: list[SymlinkGraph]
    more_inbound: bool
    next_offset: int | None = None


async def put_edge(call: Call, arguments: PutEdge) -> Reply:
    """Create an edge, or replace the properties of one that exists."""
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
        upsert = await relating.put_edge(tx, revision, spec)
        is_symlink = upsert.edge.is_symlink
        to_graph = await graphs.name_of(tx, arguments.to_graph) if is_symlink else revision.graph.name
        link = NamedEdge(upsert.edge, revision.graph.name, to_graph, dangling=False)
    return Reply(OneEdge(edge_out(link), upsert.created, upsert.updated))


async def delete_edge(call: Call, arguments: DeleteEdge) -> Reply:
    """Delete an edge of the graph."""
    async with call.writing(arguments.graph) as (tx, revision):
        deleted = await relations.delete_edges(tx, revision, [arguments.id])
    return Reply(DeletedEdge(str(arguments.id), deleted == 1))


async def outgoing(call: Call, arguments: Adjacent) -> Reply | Listing:
    """Show the edges that start at a node."""
    return await _adjacent(call, arguments, Direction.OUTGOING)


async def incoming(call: Call, arguments: Adjacent) -> Reply | Listing:
    """Show the edges that end at a node."""
    return await _adjacent(call, arguments, Direction.INCOMING)


async def traverse(call: Call, arguments: Traverse) -> Reply | Listing:
    """Walk from a node along its edges."""
    walk = Walk(Direction(arguments.direction), tuple(arguments.edge_kinds), arguments.follow_symlinks)
    async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
        found = await exploring.walk_from(
            view,
            arguments.lineage_id,
            walk,
            depth=arguments.max_depth,
            max_nodes=arguments.max_nodes or MAX_NODES,
        )
    nodes = [TraversedNode(node_out(node, found.graphs[node.graph_id]), depth) for node, depth in found.nodes]
    edges = await map_yielding(found.links, edge_out)

    def reply(page: list[TraversedNode], cut: str | None) -> Reply:
        left_out = {traversed.node.lineage_id for traversed in nodes[len(page) :]}
        page_edges = [edge for edge in edges if not left_out & {edge.from_lineage, edge.to_lineage}]
        return Reply(Traversal(page, page_edges, cut or ""))

    return cut_short(nodes, reply, limit=arguments.max_nodes, cut=found.cut, related_items=len(edges))


async def symlink_manifest(call: Call, arguments: SymlinkManifest) -> Reply | Listing:
    """List the edges that lead from this graph into others, and from others into this one."""
    name, offset, limit = arguments.graph, arguments.offset, arguments.limit or PAGE_ROWS
    async with call.reading(name) as view:
        outbound = await exploring.symlinks_of(view, offset=offset, limit=limit)
        inbound = await exploring.symlinks_of(view, inbound=True, offset=offset, limit=limit)
    # Both lists go on at the same offset, also where one of them had no room for `limit` edges.
    rows_read = min((len(page.links) for page in (outbound, inbound) if page.more), default=limit)

    def reply(rows: list[tuple[NamedEdge | None, NamedEdge | None]], next_offset: int | None) -> Reply:
        page_outbound = [link for link, _ in rows if link is not None]
        page_inbound = [link for _, link in rows if link is not None]
        return Reply(
            Symlinks(
                [edge_out(link) for link in page_outbound],
                _far_graphs((link.edge.to_graph, link.to_graph, link) for link in page_outbound),
                outbound.more or len(page_outbound) < len(outbound.links),
                [edge_out(link) for link in page_inbound],
                _far_graphs((link.edge.graph_id, link.graph, link) for link in page_inbound),
                inbound.more or len(page_inbound) < len(inbound.links),
                next_offset,
            )
        )

    return paged(
        [*zip_longest(outbound.links[:rows_read], inbound.links[:rows_read])],
        reply,
        limit=arguments.limit,
        offset=offset,
        next_offset=offset + rows_read if outbound.more or inbound.more else None,
    )


async def _adjacent(call: Call, arguments: Adjacent, direction: Direction) -> Reply | Listing:
    offset, limit = arguments.offset, arguments.limit or PAGE_ROWS
    walk = Walk(direction, tuple(arguments.edge_kinds))
    async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
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


def _far_graphs(ends: Iterable[tuple[UUID, str | None, NamedEdge]]) -> list[SymlinkGraph]:
    """The graphs at the far ends of symlinks, by id and name, each with the number of its symlinks."""
    by_graph: dict[UUID, tuple[str | None, list[NamedEdge]]] = {}
    for graph_id, name, link in ends:
        by_graph.setdefault(graph_id, (name, []))[1].append(link)
    return [
        SymlinkGraph(str(graph_id), len(links), sum(link.dangling for link in links), name)
        for graph_id, (name, links) in by_graph.items()
    ]
