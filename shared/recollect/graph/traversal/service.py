"""Use cases of traversal. Each level is one query over the whole frontier, whatever its size."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from recollect.fairness.computing import collect_yielding
from recollect.graph.entities import service as entities
from recollect.graph.graphs import moments
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import naming
from recollect.graph.nodes.model import EntityNotFound, unique
from recollect.graph.relations import service as relations
from recollect.graph.relations import subgraphs
from recollect.graph.relations.model import Direction, Edge, Relation, Subgraph, Walk
from recollect.graph.traversal.model import (
    MAX_EDGES,
    MAX_NODES,
    MAX_PATH_DEPTH,
    MAX_SECONDS,
    NamedPaths,
    Paths,
    PathSearch,
    ReachedNodes,
    ReachedSubgraph,
    far_end,
)
from recollect.postgres.transactions import Transaction


async def neighbourhood(
    view: GraphView, starts: Sequence[UUID], walk: Walk, *, depth: int, max_nodes: int = MAX_NODES
) -> ReachedNodes:
    """The nodes within `depth` edges of the starts, at most `max_nodes`, with every edge among them."""
    reached = ReachedNodes(dict.fromkeys(starts, 0))
    within = await _within(view, walk)
    deadline = time.monotonic() + MAX_SECONDS
    frontier = list(reached.depths)
    for level in range(1, depth + 1):
        if not frontier or reached.cut:
            break
        edges = await _load(view, frontier, walk, within, reached, deadline)
        frontier = await _advance(reached, edges, walk.direction, level, max_nodes)
    # The last level's nodes, at depth 0 the starts, may have edges among them that no level has loaded.
    if frontier:
        await _load(view, frontier, walk, within, reached, deadline)
    among = await collect_yielding(
        edge if edge.from_node in reached.depths and edge.to_node in reached.depths else None
        for edge in reached.edges.values()
    )
    reached.edges = {edge.id: edge for edge in among if edge is not None}
    return reached


async def open_shortest_path(view: GraphView, start: UUID, end: UUID, walk: Walk, *, max_depth: int) -> PathSearch:
    """The input of `PathSearch.shortest_path`, read from both ends at once."""
    reached = await _walk_until_met(view, start, end, walk, max_depth=max_depth)
    return await _path_search(view, start, end, walk, reached, max_depth=max_depth, max_paths=1)


async def open_paths(
    view: GraphView, start: UUID, end: UUID, walk: Walk, *, max_depth: int, max_paths: int
) -> PathSearch:
    """The input of `PathSearch.all_paths`, for paths of at most `max_depth` edges, at most `max_paths`."""
    # Every node of such a path lies within half its length of one of the ends.
    half = (max_depth + 1) // 2
    forth = await neighbourhood(view, [start], walk, depth=half)
    back = await neighbourhood(view, [end], _reverse(walk), depth=max_depth - half)
    both = ReachedNodes({}, forth.edges | back.edges, forth.cut or back.cut)
    return await _path_search(view, start, end, walk, both, max_depth=max_depth, max_paths=max_paths)


async def open_path_between(view: GraphView, source: str, target: str) -> PathSearch:
    """`open_shortest_path` between two names, by relations of either direction; raises NotFound for either name."""
    start, end = await _ends(view, [source, target])
    return await open_shortest_path(view, start, end, Walk(), max_depth=MAX_PATH_DEPTH)


async def open_paths_between(
    view: GraphView, source: str, target: str, *, max_depth: int, max_paths: int
) -> PathSearch:
    """`open_paths` between two names, by relations of either direction; raises NotFound for either name."""
    start, end = await _ends(view, [source, target])
    return await open_paths(view, start, end, Walk(), max_depth=max_depth, max_paths=max_paths)


async def view_of_paths(tx: Transaction, search: PathSearch) -> GraphView:
    """The view by which to read the nodes on the paths: at the search's moment, also where the graph has moved on."""
    view = GraphView(tx, search.graph, search.at)
    if view.at is not None or (await graphs.head_of(view)).revision == search.revision:
        return view
    return replace(view, at=await moments.find_moment(tx, search.graph, str(search.revision)))


async def name_paths(tx: Transaction, search: PathSearch, found: Paths) -> NamedPaths:
    """The paths as names of their nodes."""
    on_paths = unique(node for path in found.paths for node in path)
    labels = await naming.labels_of(await view_of_paths(tx, search), on_paths)
    return NamedPaths([[labels[node] for node in path] for path in found.paths], found.cut)


async def extract_subgraph(view: GraphView, names: Sequence[str], *, depth: int, max_nodes: int) -> ReachedSubgraph:
    """Entities within `depth` relations of the named ones, nearest first, and the relations among all reached nodes.

    Names that no node has are skipped.
    """
    starts = list((await _ids_of(view, unique(names))).values())
    reached = await neighbourhood(view, starts, Walk(), depth=depth, max_nodes=max_nodes)
    ids = list(reached.depths)
    names_by_id = await naming.names_of(view, ids)
    found = await entities.entities_by_id(view, ids)
    subgraph = await subgraphs.within_reply(view, Subgraph(found, await _relations(reached, names_by_id)))
    return ReachedSubgraph(subgraph, reached.cut or subgraph.cut)


async def neighbours_of(view: GraphView, name: str, walk: Walk, *, offset: int, limit: int) -> Subgraph:
    """A page of the entities one relation away from a name, and the relations that lead to them.

    In the order of these relations' ordinals and age. Placeholders are no entities: they count towards the page, and
    only its relations name them. Of more than MAX_EDGES relations, the first count. Raises NotFound for the name.
    """
    (start,) = await _ends(view, [name])
    found = await relations.edges_of(view, [start], walk, within=[view.graph.id], limit=MAX_EDGES + 1)
    edges, cut = found[:MAX_EDGES], subgraphs.RELATIONS_CUT if len(found) > MAX_EDGES else None
    far = [edge.to_node if edge.from_node == start else edge.from_node for edge in edges]
    names = await naming.names_of(view, unique([start, *far]))
    neighbours = [node for node in unique(far) if node != start and node in names]
    page = neighbours[offset : offset + limit]
    on_page = set(page)
    page_edges = [edge for edge, node in zip(edges, far, strict=True) if node in on_page]
    next_offset = offset + limit if len(neighbours) > offset + limit else None
    found_entities = await entities.entities_by_id(view, page)
    listed = Subgraph(found_entities, await _named(page_edges, names), next_offset, cut)
    return await subgraphs.within_reply(view, listed)


async def _ends(view: GraphView, names: Sequence[str]) -> list[UUID]:
    """The nodes of these names; raises NotFound for the first name that no node has."""
    found = await _ids_of(view, names)
    for name in names:
        if name not in found:
            raise EntityNotFound(name)
    return [found[name] for name in names]


async def _ids_of(view: GraphView, names: Sequence[str]) -> dict[str, UUID]:
    """Nodes by name, placeholders too, in the order of `names`."""
    found = await naming.find_named(view, names)
    return {name: found[name].id for name in names if name in found}


async def _path_search(
    view: GraphView, start: UUID, end: UUID, walk: Walk, reached: ReachedNodes, *, max_depth: int, max_paths: int
) -> PathSearch:
    revision = (await graphs.head_of(replace(view, at=None))).revision
    edges = list(reached.edges.values())
    return PathSearch(
        view.graph, view.at, revision, start, end, edges, walk.direction, max_depth, max_paths, reached.cut
    )


async def _relations(reached: ReachedNodes, names: Mapping[UUID, str]) -> list[Relation]:
    """The edges whose ends have names, oldest first."""
    edges = sorted(reached.edges.values(), key=lambda edge: edge.id)
    between_names = [edge for edge in edges if edge.from_node in names and edge.to_node in names]
    return await _named(between_names, names)


async def _named(edges: Iterable[Edge], names: Mapping[UUID, str]) -> list[Relation]:
    return await collect_yielding(
        Relation(edge.id, names[edge.from_node], names[edge.to_node], edge.type, edge.created_at, edge.updated_at)
        for edge in edges
    )


async def _walk_until_met(view: GraphView, start: UUID, end: UUID, walk: Walk, *, max_depth: int) -> ReachedNodes:
    """Walk from both ends, the smaller frontier first, until the walks meet or a frontier is empty."""
    sides = [(ReachedNodes({start: 0}), walk), (ReachedNodes({end: 0}), _reverse(walk))]
    frontiers = [[start], [end]]
    within = await _within(view, walk)
    deadline = time.monotonic() + MAX_SECONDS
    for level in range(1, max_depth + 1):
        if sides[0][0].depths.keys() & sides[1][0].depths.keys():
            break
        side = min((0, 1), key=lambda s: len(frontiers[s]) or MAX_NODES)
        reached, side_walk = sides[side]
        if not frontiers[0] or not frontiers[1] or reached.cut:
            break
        edges = await _load(view, frontiers[side], side_walk, within, reached, deadline)
        frontiers[side] = await _advance(reached, edges, side_walk.direction, level, MAX_NODES)
    forth, back = sides[0][0], sides[1][0]
    cut = forth.cut or back.cut or ("depth" if all(frontiers) else None)
    return ReachedNodes(forth.depths | back.depths, forth.edges | back.edges, cut)


async def _load(
    view: GraphView,
    frontier: Sequence[UUID],
    walk: Walk,
    within: Sequence[UUID],
    reached: ReachedNodes,
    deadline: float,
) -> list[Edge]:
    edges = await relations.edges_of(view, frontier, walk, within=within, limit=MAX_EDGES + 1)
    if len(edges) > MAX_EDGES:
        reached.cut = "edges"
    elif time.monotonic() > deadline:
        reached.cut = "time"
    reached.edges |= {edge.id: edge for edge in edges[:MAX_EDGES]}
    return edges[:MAX_EDGES]


async def _advance(
    reached: ReachedNodes, edges: Sequence[Edge], direction: Direction, level: int, max_nodes: int
) -> list[UUID]:
    """The next frontier: the nodes to which these edges lead, as far as they were not reached before."""

    def reach(edge: Edge) -> UUID | None:  # Each edge touches the last frontier, and leads to a new or a known node.
        node = far_end(edge, reached.depths, direction)
        if node is None:
            return None
        if len(reached.depths) >= max_nodes:
            reached.cut = reached.cut or "nodes"
            return None
        reached.depths[node] = level
        return node

    return [node for node in await collect_yielding(map(reach, edges)) if node is not None]


async def _within(view: GraphView, walk: Walk) -> list[UUID]:
    """The graphs that a walk may enter: its own; with symlinks, every graph that the caller may use."""
    if not walk.symlinks:
        return [view.graph.id]
    return [graph.id for graph in await graphs.list_graphs(view.tx, limit=graphs.MAX_GRAPHS)]


def _reverse(walk: Walk) -> Walk:
    opposite = {Direction.OUTGOING: Direction.INCOMING, Direction.INCOMING: Direction.OUTGOING}
    return replace(walk, direction=opposite.get(walk.direction, walk.direction))
