"""Use cases of walking from a node: its neighbourhood, its edges, and the paths from it to another node."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from uuid import UUID

import msgspec

from recollect.errors import InvalidInput
from recollect.graph.entities import service as entities
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Version, not_found
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import EntityNotFound, unique
from recollect.graph.observations import service as observations
from recollect.graph.relations import service as relations
from recollect.graph.relations import subgraphs
from recollect.graph.relations.model import Edge, EdgePosition, Walk
from recollect.graph.traversal import service as traversal
from recollect.graph.traversal.model import MAX_PATH_DEPTH, Paths, PathSearch
from recollect.memory.model import (
    EdgePage,
    Explored,
    MemoryRef,
    NamedEdge,
    NeighbourNode,
    TraversedSubgraph,
)
from recollect.memory.reading import require_nodes
from recollect.postgres.transactions import Transaction

MAX_PATHS = 10
"""The maximum number of paths that an exploration returns."""

MAX_EDGES = 1_000
"""Edges in one answer at most."""


EXCERPT = 300
"""The maximum number of characters of a node's texts that an exploration returns."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Nodes, nearest first, with the edges among them, or paths through them; `cut` says why it ended early."""

    nodes: list[Version]
    edges: list[Edge]
    paths: list[list[UUID]] = field(default_factory=list)
    cut: str | None = None


async def explore(view: GraphView, start: MemoryRef, walk: Walk, *, depth: int = 1, max_nodes: int = 30) -> Explored:
    """The neighbourhood of a node; raises NotFound. An observation as the start means the node that it is about."""
    graphs.require_there(view)
    start_id = await _node_id(view, start)
    reached = await traversal.neighbourhood(view, [start_id], walk, depth=depth, max_nodes=max_nodes)
    return await _explored(view, list(reached.depths), list(reached.edges.values()), [], reached.cut)


async def open_paths(view: GraphView, start: MemoryRef, to: MemoryRef, walk: Walk, *, depth: int = 1) -> PathSearch:
    """A search for the paths from one node to another, of at most `depth` edges; raises NotFound for either node."""
    graphs.require_there(view)
    start_id, end_id = await _node_id(view, start), await _node_id(view, to)
    return await traversal.open_paths(view, start_id, end_id, walk, max_depth=depth, max_paths=MAX_PATHS)


async def explored_paths(tx: Transaction, search: PathSearch, found: Paths) -> Explored:
    """The nodes and edges on the paths that a search found."""
    on_paths = unique(node for path in found.paths for node in path)
    view = await traversal.view_of_paths(tx, search)
    return await _explored(view, on_paths, found.edges, found.paths, found.cut)


async def neighbourhood(view: GraphView, node_id: UUID, *, depth: int, max_nodes: int) -> Neighbourhood:
    """The nodes within `depth` relations of a node, the node itself first; raises NotFound."""
    await require_nodes(view, [node_id])
    reached = await traversal.neighbourhood(view, [node_id], Walk(), depth=depth, max_nodes=max_nodes)
    found = await lineages.get_nodes(view, list(reached.depths))
    among = _edges_among(found, reached.edges.values())
    listed = await subgraphs.edges_within_reply(view, among)
    return Neighbourhood(found, listed, cut=_cut(listed, among) or reached.cut)


async def open_trace(view: GraphView, start: UUID, end: UUID, *, max_paths: int) -> PathSearch:
    """A search for paths between two nodes, by relations of either direction; raises NotFound for either node."""
    await require_nodes(view, [start, end])
    return await traversal.open_paths(view, start, end, Walk(), max_depth=MAX_PATH_DEPTH, max_paths=max_paths)


async def traced(tx: Transaction, search: PathSearch, found: Paths) -> Neighbourhood:
    """The nodes and edges on the paths that a search found: those paths, shortest first, whose edges fit a reply.

    If not even the first path fits, it comes with the edges that do.
    """
    view = await traversal.view_of_paths(tx, search)
    edges = _in_order_of(found)
    listed = await subgraphs.edges_within_reply(view, edges, _times_on(found))
    left_out = {frozenset((edge.from_node, edge.to_node)) for edge in edges[len(listed) :]}
    whole = [path for path in found.paths if not left_out & _steps(path)] or found.paths[:1]
    # A path may lead over a placeholder, which no other read returns: it is shown by its name, as find_path shows it.
    path_nodes = await lineages.get_nodes(view, unique(node for path in whole for node in path), placeholders=True)
    return Neighbourhood(path_nodes, listed, whole, _cut(listed, edges) or found.cut)


async def edges_at(
    view: GraphView, node_id: UUID, walk: Walk, *, after: EdgePosition | None = None, offset: int = 0, limit: int
) -> EdgePage:
    """A page of the edges at a node, by ordinal and age, also from other graphs that the caller may use.

    A view of the past has only the edges of the node's own graph. Raises NotFound for the node.
    """
    await require_nodes(view, [node_id])
    allowed = None if view.tx.caller.graphs is None else list(view.tx.caller.graphs)
    found = await relations.edges_of(view, [node_id], walk, within=allowed, after=after, offset=offset, limit=limit + 1)
    return await _edge_page(view, found, limit)


async def traverse_from(view: GraphView, start: UUID, walk: Walk, *, depth: int, max_nodes: int) -> TraversedSubgraph:
    """The subgraph within `depth` edges of a node, nearest nodes first. Raises NotFound for the node.

    Symlinks lead into other graphs, each with revisions of its own: following them in the past raises InvalidInput.
    """
    if walk.symlinks and view.at is not None:
        raise InvalidInput("as_of can read one graph only: leave out follow_symlinks or as_of", path="as_of")
    await require_nodes(view, [start])
    reached = await traversal.neighbourhood(view, [start], walk, depth=depth, max_nodes=max_nodes)
    edges = sorted(reached.edges.values(), key=lambda edge: edge.id)
    names = await _names(view, edges)
    if view.at is None:
        found = await lineages.get_nodes_across(view.tx, list(names), list(reached.depths))
    else:
        found = await lineages.get_nodes(view, list(reached.depths))
    listed = await subgraphs.edges_within_reply(view, edges[:MAX_EDGES])
    links = await _links(view, listed, names)
    cut = _cut(listed, edges) or reached.cut
    return TraversedSubgraph([(node, reached.depths[node.node_id]) for node in found], links, names, cut)


async def symlinks_of(view: GraphView, *, inbound: bool = False, offset: int, limit: int) -> EdgePage:
    """The edges from a graph into others that the caller may use (`inbound`: from others into it), oldest first."""
    found = await relations.list_symlinks(view.tx, view.graph, inbound=inbound, offset=offset, limit=limit + 1)
    # The reply has both directions, each of which may take half of what edges may take.
    return await _edge_page(view, found, limit, {link.id: 2 for link in found})


async def _node_id(view: GraphView, target: MemoryRef) -> UUID:
    if target.name is not None:
        named = (await naming.find_named(view, [target.name])).get(target.name)
        if named is None:
            raise EntityNotFound(target.name)
        return named.id
    assert target.id is not None
    node_id = (await observations.nodes_of_observations(view, [target.id])).get(target.id, target.id)
    if not await lineages.get_nodes(view, [node_id]):
        raise not_found(target.id)
    return node_id


async def _explored(
    view: GraphView, node_ids: Sequence[UUID], edges: Sequence[Edge], paths: Sequence[Sequence[UUID]], cut: str | None
) -> Explored:
    live = await lineages.get_nodes(view, node_ids)
    listed = await entities.observations_of(view, [node.node_id for node in live])
    texts = {node_id: observations.texts for node_id, observations in listed.items()}
    labels = await naming.labels_of(view, node_ids)
    named = [edge for edge in edges if edge.from_node in labels and edge.to_node in labels]
    triples = [(labels[edge.from_node], labels[edge.to_node], edge.type) for edge in named]
    explored = [_neighbour(node, texts.get(node.node_id, ())) for node in live]
    count = await subgraphs.count_fitting(view, triples, taken=sum(map(_listed_bytes, explored)))
    return Explored(
        nodes=explored,
        labels=labels,
        edges=named[:count],
        paths=[list(path) for path in paths],
        cut=_cut(named[:count], named) or cut,
    )


def _neighbour(node: Version, observations: tuple[str, ...]) -> NeighbourNode:
    return NeighbourNode(
        node.node_id, node.name, node.kind, node.content, observations, status=node.status, version=node.version
    )


def _listed_bytes(node: NeighbourNode) -> int:
    """Bytes that a node takes in an exploration, about: its name and kind, an excerpt of its texts, and the rest."""
    texts = ((node.content or "")[:EXCERPT], *(text[:EXCERPT] for text in node.observations[-1:]))
    return len(msgspec.json.encode((node.name, node.kind, texts))) + 2 * subgraphs.ITEM_BYTES


async def _edge_page(
    view: GraphView, found: Sequence[Edge], limit: int, times: Mapping[UUID, int] | None = None
) -> EdgePage:
    """The first `limit` edges, or those that fit a reply with their metadata. `times`: as for `edges_within_reply`."""
    listed = await subgraphs.edges_within_reply(view, found[:limit], times)
    return EdgePage(await _links(view, listed, await _names(view, listed)), more=len(found) > len(listed))


def _cut(listed: Sequence[Edge], edges: Sequence[Edge]) -> str | None:
    """The bound that left edges out of an answer, or None."""
    return "edges" if len(listed) < len(edges) else None


def _steps(path: Sequence[UUID]) -> set[frozenset[UUID]]:
    return {frozenset(step) for step in pairwise(path)}


def _in_order_of(found: Paths) -> list[Edge]:
    """The edges on the steps of paths that were found, in the order of the paths."""
    edges: dict[frozenset[UUID], list[Edge]] = {}
    for edge in found.edges:
        edges.setdefault(frozenset((edge.from_node, edge.to_node)), []).append(edge)
    steps = unique(frozenset(step) for path in found.paths for step in pairwise(path))
    return [edge for step in steps for edge in edges.get(step, ())]


def _times_on(found: Paths) -> Counter[UUID]:
    """The number of paths that each edge is part of: an answer repeats the edge for each path."""
    steps = Counter(frozenset(step) for path in found.paths for step in pairwise(path))
    return Counter({edge.id: steps[frozenset((edge.from_node, edge.to_node))] for edge in found.edges})


def _edges_among(found: Sequence[Version], edges: Iterable[Edge]) -> list[Edge]:
    node_ids = {node.node_id for node in found}
    return [edge for edge in edges if edge.from_node in node_ids and edge.to_node in node_ids]


async def _names(view: GraphView, edges: Sequence[Edge]) -> dict[UUID, str]:
    """The names of the graphs in which edges start and end, as far as they exist and the caller may use them."""
    names = {view.graph.id: view.graph.name}
    if any(edge.is_symlink or edge.graph_id != view.graph.id for edge in edges):
        names |= {graph.id: graph.name for graph in await graphs.list_graphs(view.tx, limit=graphs.MAX_GRAPHS)}
    return names


async def _links(view: GraphView, edges: Sequence[Edge], names: Mapping[UUID, str]) -> list[NamedEdge]:
    """Edges with the names of their graphs and whether their target is gone (never in a view of the past)."""
    is_now = view.at is None
    homes = await nodes.find_homes(view.tx, [edge.to_node for edge in edges]) if edges and is_now else {}
    return [
        NamedEdge(
            edge,
            names.get(edge.graph_id),
            names.get(edge.to_graph),
            dangling=is_now and homes.get(edge.to_node) != edge.to_graph,
        )
        for edge in edges
    ]
