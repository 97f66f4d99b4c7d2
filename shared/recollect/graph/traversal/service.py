"""Use cases of traversal. Each level is one query over the whole frontier, whatever its size."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from uuid import UUID

from recollect.errors import TooLarge
from recollect.graph.entities import service as entities
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, Moment
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import EntityNotFound, unique
from recollect.graph.relations import service as relations
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
from recollect.platform.computing import each
from recollect.platform.db import Transaction


async def neighbourhood(
    tx: Transaction, graph: Graph, starts: Sequence[UUID], walk: Walk, *, depth: int, max_nodes: int = MAX_NODES
) -> ReachedNodes:
    """Everything within `depth` edges of the starts, at most `max_nodes` nodes, with every edge among them."""
    reached = ReachedNodes(dict.fromkeys(starts, 0))
    within = await _within(tx, graph, walk)
    deadline = time.monotonic() + MAX_SECONDS
    frontier = list(reached.depths)
    for level in range(1, depth + 1):
        if not frontier or reached.cut:
            break
        edges = await _load(tx, graph, frontier, walk, within, reached, deadline)
        frontier = await _advance(reached, edges, walk.direction, level, max_nodes)
    # The last level's nodes, at depth 0 the starts, may have edges among them that no level has loaded.
    if frontier:
        await _load(tx, graph, frontier, walk, within, reached, deadline)
    among = await each(
        list(reached.edges.values()),
        lambda edge: edge.from_node in reached.depths and edge.to_node in reached.depths,
    )
    reached.edges = dict(compress(reached.edges.items(), among))
    return reached


async def open_shortest_path(
    tx: Transaction, graph: Graph, start: UUID, end: UUID, walk: Walk, *, max_depth: int
) -> PathSearch:
    """What `PathSearch.shortest_path` needs, searched from both ends at once."""
    met = await _meet(tx, graph, start, end, walk, max_depth=max_depth)
    return await _path_search(tx, graph, start, end, walk, met, max_depth=max_depth, max_paths=1)


async def open_paths(
    tx: Transaction, graph: Graph, start: UUID, end: UUID, walk: Walk, *, max_depth: int, max_paths: int
) -> PathSearch:
    """What `PathSearch.all_paths` needs, to find paths of at most `max_depth` edges, at most `max_paths`."""
    # Every node of such a path lies within half its length of one of the ends.
    half = (max_depth + 1) // 2
    forth = await neighbourhood(tx, graph, [start], walk, depth=half)
    back = await neighbourhood(tx, graph, [end], _reverse(walk), depth=max_depth - half)
    both = ReachedNodes({}, forth.edges | back.edges, forth.cut or back.cut)
    return await _path_search(tx, graph, start, end, walk, both, max_depth=max_depth, max_paths=max_paths)


async def open_path_between(
    tx: Transaction, graph_name: str | None, source: str, target: str, *, as_of: str | None = None
) -> PathSearch:
    """The same for a shortest path between two names, whichever way its relations point; raises NotFound for either."""
    graph, at, (start, end) = await _ends(tx, graph_name, [source, target], as_of)
    return await open_shortest_path(tx, graph, start, end, Walk(at=at), max_depth=MAX_PATH_DEPTH)


async def open_paths_between(
    tx: Transaction,
    graph_name: str | None,
    source: str,
    target: str,
    *,
    max_depth: int,
    max_paths: int,
    as_of: str | None = None,
) -> PathSearch:
    """The same for simple paths between two names, whichever way their relations point; raises NotFound for either."""
    graph, at, (start, end) = await _ends(tx, graph_name, [source, target], as_of)
    return await open_paths(tx, graph, start, end, Walk(at=at), max_depth=max_depth, max_paths=max_paths)


async def moment_of_paths(tx: Transaction, searched: PathSearch) -> Moment | None:
    """The moment at which to read what lies on the paths: that of the search, also where the graph has moved on."""
    if searched.at is not None or (await graphs.head_of(tx, searched.graph)).revision == searched.revision:
        return searched.at
    return await graphs.moment(tx, searched.graph, str(searched.revision))


async def name_paths(tx: Transaction, searched: PathSearch, found: Paths) -> NamedPaths:
    """The names of what lies on the paths."""
    at = await moment_of_paths(tx, searched)
    on_paths = unique(node for path in found.paths for node in path)
    labels = await nodes.labels_of(tx, searched.graph, on_paths, at=at)
    return NamedPaths([[labels[node] for node in path] for path in found.paths], found.cut)


async def extract_subgraph(
    tx: Transaction,
    graph_name: str | None,
    names: Sequence[str],
    *,
    depth: int,
    max_nodes: int,
    as_of: str | None = None,
) -> ReachedSubgraph:
    """Entities within `depth` relations of the named ones, nearest first, and the relations among all that was reached.

    Names that nothing has are passed over.
    """
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return ReachedSubgraph(Subgraph([], []))
    at = await graphs.moment(tx, graph, as_of)
    starts = list((await _ids_of(tx, graph, unique(names), at)).values())
    reached = await neighbourhood(tx, graph, starts, Walk(at=at), depth=depth, max_nodes=max_nodes)
    ids = list(reached.depths)
    named = await nodes.names_of(tx, graph, ids, at=at)
    met = await entities.entities_by_id(tx, ids, graph=graph, at=at)
    return ReachedSubgraph(Subgraph(met, _relations(reached, named)), reached.cut)


async def neighbours_of(
    tx: Transaction, graph_name: str | None, name: str, walk: Walk, *, offset: int, limit: int, as_of: str | None = None
) -> Subgraph:
    """A page of the entities one relation away from a name (`as_of`: then), and the relations that lead to them.

    In the order of these relations' ordinals and age. Names that only relations know are no entities: the page counts
    them, and the relations name them. Raises NotFound for the name, TooLarge past MAX_EDGES relations.
    """
    graph, at, (start,) = await _ends(tx, graph_name, [name], as_of)
    walk = replace(walk, at=at)
    edges = await relations.edges_of(tx, graph, [start], walk, within=[graph.id], limit=MAX_EDGES + 1)
    if len(edges) > MAX_EDGES:
        raise TooLarge(f"More than {MAX_EDGES} relations touch {name!r}: name types, or page search_relations")
    far = {edge.id: edge.to_node if edge.from_node == start else edge.from_node for edge in edges}
    names = await nodes.names_of(tx, graph, [start, *far.values()], at=at)
    others = [node for node in unique(far.values()) if node != start and node in names]
    page = others[offset : offset + limit]
    leading = [edge for edge in edges if far[edge.id] in page]
    told = [Relation(e.id, names[e.from_node], names[e.to_node], e.type, e.created_at, e.updated_at) for e in leading]
    next_offset = offset + limit if len(others) > offset + limit else None
    return Subgraph(await entities.entities_by_id(tx, page, graph=graph, at=at), told, next_offset)


async def _ends(
    tx: Transaction, graph_name: str | None, names: Sequence[str], as_of: str | None
) -> tuple[Graph, Moment | None, list[UUID]]:
    """The graph, the moment, and the nodes of these names; raises NotFound for the first that nothing has."""
    graph = await graphs.open_graph(tx, graph_name)
    at = await graphs.moment(tx, graph, as_of) if graph else None
    found = await _ids_of(tx, graph, names, at) if graph else {}
    for name in names:
        if graph is None or name not in found:
            raise EntityNotFound(name)
    assert graph is not None
    return graph, at, [found[name] for name in names]


async def _ids_of(tx: Transaction, graph: Graph, names: Sequence[str], at: Moment | None) -> dict[str, UUID]:
    """Nodes by name, placeholders too, in the order asked for."""
    found = await nodes.find_named(tx, graph, names, at=at)
    return {name: found[name].id for name in names if name in found}


async def _path_search(
    tx: Transaction,
    graph: Graph,
    start: UUID,
    end: UUID,
    walk: Walk,
    reached: ReachedNodes,
    *,
    max_depth: int,
    max_paths: int,
) -> PathSearch:
    revision = (await graphs.head_of(tx, graph)).revision
    edges, way = list(reached.edges.values()), walk.direction
    return PathSearch(graph, walk.at, revision, start, end, edges, way, max_depth, max_paths, reached.cut)


def _relations(reached: ReachedNodes, names: Mapping[UUID, str]) -> list[Relation]:
    """The edges whose ends have names, oldest first."""
    return [
        Relation(edge.id, names[edge.from_node], names[edge.to_node], edge.type, edge.created_at, edge.updated_at)
        for edge in sorted(reached.edges.values(), key=lambda edge: edge.id)
        if edge.from_node in names and edge.to_node in names
    ]


async def _meet(tx: Transaction, graph: Graph, start: UUID, end: UUID, walk: Walk, *, max_depth: int) -> ReachedNodes:
    """Walk from both ends, the smaller frontier first, until they meet or nothing is left."""
    sides = [(ReachedNodes({start: 0}), walk), (ReachedNodes({end: 0}), _reverse(walk))]
    frontiers = [[start], [end]]
    within = await _within(tx, graph, walk)
    deadline = time.monotonic() + MAX_SECONDS
    for level in range(1, max_depth + 1):
        if sides[0][0].depths.keys() & sides[1][0].depths.keys():
            break
        side = min((0, 1), key=lambda s: len(frontiers[s]) or MAX_NODES)
        reached, way = sides[side]
        if not frontiers[0] or not frontiers[1] or reached.cut:
            break
        edges = await _load(tx, graph, frontiers[side], way, within, reached, deadline)
        frontiers[side] = await _advance(reached, edges, way.direction, level, MAX_NODES)
    forth, back = sides[0][0], sides[1][0]
    cut = forth.cut or back.cut or ("depth" if all(frontiers) else None)
    return ReachedNodes(forth.depths | back.depths, forth.edges | back.edges, cut)


async def _load(
    tx: Transaction,
    graph: Graph,
    frontier: Sequence[UUID],
    walk: Walk,
    within: Sequence[UUID],
    reached: ReachedNodes,
    deadline: float,
) -> list[Edge]:
    edges = await relations.edges_of(tx, graph, frontier, walk, within=within, limit=MAX_EDGES + 1)
    if len(edges) > MAX_EDGES:
        reached.cut = "edges"
    elif time.monotonic() > deadline:
        reached.cut = "time"
    reached.edges |= {edge.id: edge for edge in edges[:MAX_EDGES]}
    return edges[:MAX_EDGES]


async def _advance(
    reached: ReachedNodes, edges: Sequence[Edge], direction: Direction, level: int, max_nodes: int
) -> list[UUID]:
    """The next frontier: nodes that these edges lead to and that were not known."""

    def reach(edge: Edge) -> UUID | None:  # Each touches the last frontier: what it leads to is new, or known already.
        node = far_end(edge, reached.depths, direction)
        if node is None:
            return None
        if len(reached.depths) >= max_nodes:
            reached.cut = reached.cut or "nodes"
            return None
        reached.depths[node] = level
        return node

    return [node for node in await each(edges, reach) if node is not None]


async def _within(tx: Transaction, graph: Graph, walk: Walk) -> list[UUID]:
    """The graphs that a walk may enter: its own; with symlinks, every graph that the caller may use."""
    if not walk.symlinks:
        return [graph.id]
    return [other.id for other in await graphs.list_graphs(tx, limit=graphs.MAX_GRAPHS)]


def _reverse(walk: Walk) -> Walk:
    opposite = {Direction.OUTGOING: Direction.INCOMING, Direction.INCOMING: Direction.OUTGOING}
    return Walk(opposite.get(walk.direction, walk.direction), walk.types, walk.symlinks, walk.at)
