"""What a traversal may cost, what it reached, and paths through what it saw."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from recollect.graph.relations.model import Direction, Edge, Subgraph

MAX_DEPTH = 10
"""Levels of a neighbourhood at most."""

MAX_PATH_DEPTH = 12
"""Edges of a path at most."""

MAX_NODES = 20_000
"""Nodes that one traversal looks at, at most."""

MAX_EDGES = 100_000
"""Edges that one level loads, at most."""

MAX_SECONDS = 5.0
"""How long one traversal goes on before it answers with what it has."""

MAX_STEPS = 200_000
"""Steps that the enumeration of paths takes, at most."""


@dataclass(slots=True)
class ReachedNodes:
    """What a traversal reached: nodes with their depth, in the order of discovery, and the edges among them.

    `cut` says why it ended early (`nodes`, `edges`, `depth`, `paths` or `time`); None where nothing was left out.
    """

    depths: dict[UUID, int]
    edges: dict[UUID, Edge] = field(default_factory=dict)
    cut: str | None = None


@dataclass(frozen=True, slots=True)
class Paths:
    """Paths as node ids, shortest first, and the edges that they take; `cut` as in `ReachedNodes`."""

    paths: list[list[UUID]]
    edges: list[Edge]
    cut: str | None = None


@dataclass(frozen=True, slots=True)
class NamedPaths:
    """Paths as the names of their nodes (the id of one that has none), shortest first; `cut` as in `ReachedNodes`."""

    paths: list[list[str]]
    cut: str | None = None


@dataclass(frozen=True, slots=True)
class ReachedSubgraph:
    """The entities within reach and the relations among them; `cut` as in `ReachedNodes`."""

    subgraph: Subgraph
    cut: str | None = None


def far_end(edge: Edge, near: Mapping[UUID, int], direction: Direction) -> UUID | None:
    """Where an edge leads from nodes that are known, or None if it cannot be followed that way."""
    if direction != Direction.INCOMING and edge.from_node in near and edge.to_node not in near:
        return edge.to_node
    if direction != Direction.OUTGOING and edge.to_node in near and edge.from_node not in near:
        return edge.from_node
    return None


def neighbours(edges: Iterator[Edge] | list[Edge], direction: Direction) -> dict[UUID, set[UUID]]:
    """Which nodes each node leads to."""
    found: dict[UUID, set[UUID]] = {}
    for edge in edges:
        if direction != Direction.INCOMING:
            found.setdefault(edge.from_node, set()).add(edge.to_node)
        if direction != Direction.OUTGOING:
            found.setdefault(edge.to_node, set()).add(edge.from_node)
    return found


def shortest(adjacency: Mapping[UUID, set[UUID]], start: UUID, end: UUID, *, max_depth: int) -> list[list[UUID]]:
    """The shortest path, of several the one with the least node ids; none if it takes more than `max_depth` edges."""
    distances = _distances(adjacency, end)
    if distances.get(start, max_depth + 1) > max_depth:
        return []
    path = [start]
    while path[-1] != end:
        left = distances[path[-1]] - 1
        path.append(min(node for node in adjacency[path[-1]] if distances.get(node) == left))
    return [path]


def simple_paths(
    adjacency: Mapping[UUID, set[UUID]], start: UUID, end: UUID, *, max_depth: int, max_paths: int
) -> tuple[list[list[UUID]], bool]:
    """Paths that visit no node twice, shortest first, ties by node id, and whether all within `max_depth` are there.

    Depth-first, pruned by each node's distance to the end, one length after the other: paths come shortest first
    without all of them being held.
    """
    distances = _distances(adjacency, end)
    paths: list[list[UUID]] = []
    steps = [0]
    for length in range(distances.get(start, max_depth + 1), max_depth + 1):
        for path in _paths_of_length(adjacency, distances, [start], end, length, steps):
            if len(paths) == max_paths:
                return paths, False
            paths.append(path)
        if steps[0] > MAX_STEPS:
            return paths, False
    return paths, True


def _paths_of_length(
    adjacency: Mapping[UUID, set[UUID]],
    distances: Mapping[UUID, int],
    path: list[UUID],
    end: UUID,
    length: int,
    steps: list[int],
) -> Iterator[list[UUID]]:
    steps[0] += 1
    left = length - len(path) + 1
    if path[-1] == end:
        if left == 0:
            yield list(path)
        return
    if steps[0] > MAX_STEPS:
        return
    for node in sorted(adjacency.get(path[-1], ())):
        if node not in path and distances.get(node, left) < left:
            path.append(node)
            yield from _paths_of_length(adjacency, distances, path, end, length, steps)
            path.pop()


def _distances(adjacency: Mapping[UUID, set[UUID]], end: UUID) -> dict[UUID, int]:
    """Edges from each node to the end, walking `adjacency` backwards."""
    backwards: dict[UUID, set[UUID]] = {}
    for node, targets in adjacency.items():
        for target in targets:
            backwards.setdefault(target, set()).add(node)
    distances, frontier = {end: 0}, [end]
    while frontier:
        frontier = [
            node
            for near in frontier
            for node in backwards.get(near, ())
            if _further(distances, node, distances[near] + 1)
        ]
    return distances


def _further(distances: dict[UUID, int], node: UUID, distance: int) -> bool:
    if node in distances:
        return False
    distances[node] = distance
    return True
