"""Use cases of traversal. Each level is one query over the whole frontier, whatever its size."""

import time
from collections.abc import Sequence
from itertools import pairwise
from uuid import UUID

from recollect.graphs import service as graphs
from recollect.graphs.model import Graph
from recollect.platform.db import Transaction
from recollect.relations import service as relations
from recollect.relations.model import Direction, Edge, Walk
from recollect.traversal.model import (
    MAX_EDGES,
    MAX_NODES,
    MAX_SECONDS,
    Paths,
    Reached,
    far_end,
    neighbours,
    simple_paths,
)


async def neighbourhood(
    tx: Transaction, graph: Graph, starts: Sequence[UUID], walk: Walk, *, depth: int, max_nodes: int = MAX_NODES
) -> Reached:
    """Everything within `depth` edges of the starts, at most `max_nodes` nodes, with every edge among them."""
    reached = Reached(dict.fromkeys(starts, 0))
    within = await _within(tx, graph, walk)
    deadline = time.monotonic() + MAX_SECONDS
    frontier = list(reached.depths)
    for level in range(1, depth + 1):
        if not frontier or reached.cut:
            break
        edges = await _load(tx, graph, frontier, walk, within, reached, deadline)
        frontier = _advance(reached, edges, walk.direction, level, max_nodes)
    # The last level's nodes may have edges among them that no level has loaded.
    if frontier and depth > 0:
        await _load(tx, graph, frontier, walk, within, reached, deadline)
    reached.edges = {
        i: edge
        for i, edge in reached.edges.items()
        if edge.from_node in reached.depths and edge.to_node in reached.depths
    }
    return reached


async def shortest_path(tx: Transaction, graph: Graph, start: UUID, end: UUID, walk: Walk, *, max_depth: int) -> Paths:
    """A shortest path, searched from both ends at once; no path where there is none within the bounds."""
    found = await _meet(tx, graph, start, end, walk, max_depth=max_depth)
    adjacency = neighbours(list(found.edges.values()), walk.direction)
    paths, _ = simple_paths(adjacency, start, end, max_depth=max_depth, max_paths=1)
    return Paths(paths, _taken(paths, found, walk.direction), found.cut)


async def all_paths(
    tx: Transaction, graph: Graph, start: UUID, end: UUID, walk: Walk, *, max_depth: int, max_paths: int
) -> Paths:
    """Simple paths of at most `max_depth` edges, shortest first, at most `max_paths`."""
    # Every node of such a path lies within half its length of one of the ends.
    half = (max_depth + 1) // 2
    forth = await neighbourhood(tx, graph, [start], walk, depth=half)
    back = await neighbourhood(tx, graph, [end], _reverse(walk), depth=max_depth - half)
    edges = list((forth.edges | back.edges).values())
    paths, complete = simple_paths(
        neighbours(edges, walk.direction), start, end, max_depth=max_depth, max_paths=max_paths
    )
    cut = forth.cut or back.cut or (None if complete else "paths")
    both = Reached({}, forth.edges | back.edges)
    return Paths(paths, _taken(paths, both, walk.direction), cut)


async def _meet(tx: Transaction, graph: Graph, start: UUID, end: UUID, walk: Walk, *, max_depth: int) -> Reached:
    """Walk from both ends, the smaller frontier first, until they meet or nothing is left."""
    sides = [(Reached({start: 0}), walk), (Reached({end: 0}), _reverse(walk))]
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
        frontiers[side] = _advance(reached, edges, way.direction, level, MAX_NODES)
    forth, back = sides[0][0], sides[1][0]
    return Reached(forth.depths | back.depths, forth.edges | back.edges, forth.cut or back.cut)


async def _load(
    tx: Transaction,
    graph: Graph,
    frontier: Sequence[UUID],
    walk: Walk,
    within: Sequence[UUID],
    reached: Reached,
    deadline: float,
) -> list[Edge]:
    edges = await relations.edges_of(tx, graph, frontier, walk, within=within, limit=MAX_EDGES + 1)
    if len(edges) > MAX_EDGES:
        reached.cut = "edges"
    elif time.monotonic() > deadline:
        reached.cut = "time"
    reached.edges |= {edge.id: edge for edge in edges[:MAX_EDGES]}
    return edges[:MAX_EDGES]


def _advance(reached: Reached, edges: Sequence[Edge], direction: Direction, level: int, max_nodes: int) -> list[UUID]:
    """The next frontier: nodes that these edges lead to and that were not known."""
    known = dict(reached.depths)
    frontier: list[UUID] = []
    for edge in edges:
        node = far_end(edge, known, direction)
        if node is None or node in reached.depths:
            continue
        if len(reached.depths) >= max_nodes:
            reached.cut = reached.cut or "nodes"
            break
        reached.depths[node] = level
        frontier.append(node)
    return frontier


async def _within(tx: Transaction, graph: Graph, walk: Walk) -> list[UUID]:
    """The graphs that a walk may enter: its own; with symlinks, every graph that the caller may use."""
    if not walk.symlinks:
        return [graph.id]
    return [other.id for other in await graphs.list_graphs(tx, limit=graphs.MAX_GRAPHS)]


def _reverse(walk: Walk) -> Walk:
    opposite = {Direction.OUTGOING: Direction.INCOMING, Direction.INCOMING: Direction.OUTGOING}
    return Walk(opposite.get(walk.direction, walk.direction), walk.types, walk.symlinks, walk.at)


def _taken(paths: Sequence[Sequence[UUID]], reached: Reached, direction: Direction) -> list[Edge]:
    """The edges between neighbours on the paths."""
    forward = {step for path in paths for step in pairwise(path)}
    backward = {(target, source) for source, target in forward}
    ends = {
        Direction.OUTGOING: forward,
        Direction.INCOMING: backward,
        Direction.BOTH: forward | backward,
    }[direction]
    return [edge for edge in reached.edges.values() if (edge.from_node, edge.to_node) in ends]
