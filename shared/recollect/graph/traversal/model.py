"""The bounds of a traversal, its results, and the search for paths in the edges that it read."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from uuid import UUID

from recollect.graph.graphs.model import Graph, Moment
from recollect.graph.relations.model import Direction, Edge, Subgraph

MAX_DEPTH = 10
"""Levels of a neighbourhood, at most."""

MAX_PATH_DEPTH = 12
"""Edges of a path, at most."""

MAX_NODES = 20_000
"""Nodes that one traversal visits, at most."""

MAX_EDGES = 100_000
"""Edges that one level loads, at most."""

MAX_SECONDS = 5.0
"""How long one traversal runs before it returns what it has."""

MAX_STEPS = 1_000_000
"""Edges that the enumeration of paths follows, at most: half a second."""

SLICE = 5_000
"""Edges that it follows before other computations have their turn."""


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
class PathSearch:
    """The input of a search for paths: the edges around both ends, and the bounds of paths.

    `at`: the moment that was read, None for the present, which was at `revision`. `cut` as in `ReachedNodes`.
    """

    graph: Graph
    at: Moment | None
    revision: int
    start: UUID
    end: UUID
    edges: Sequence[Edge]
    direction: Direction
    max_depth: int
    max_paths: int
    cut: str | None

    def shortest_path(self) -> Generator[None, None, Paths]:
        """A computation: a shortest path, or none. A path that was found is a shortest one, whatever the bounds cut."""
        adjacency = neighbours(self.edges, self.direction)
        yield
        paths = shortest(adjacency, self.start, self.end, max_depth=self.max_depth)
        return Paths(paths, self._edges_on(paths), None if paths else self.cut)

    def all_paths(self) -> Generator[None, None, Paths]:
        """A computation: simple paths, shortest first."""
        adjacency = neighbours(self.edges, self.direction)
        yield
        paths, complete = yield from simple_paths(
            adjacency, self.start, self.end, max_depth=self.max_depth, max_paths=self.max_paths
        )
        return Paths(paths, self._edges_on(paths), self.cut or (None if complete else "paths"))

    def _edges_on(self, paths: Sequence[Sequence[UUID]]) -> list[Edge]:
        """The edges between neighbours on the paths."""
        forward = {step for path in paths for step in pairwise(path)}
        backward = {(target, source) for source, target in forward}
        ends = {
            Direction.OUTGOING: forward,
            Direction.INCOMING: backward,
            Direction.BOTH: forward | backward,
        }[self.direction]
        return [edge for edge in self.edges if (edge.from_node, edge.to_node) in ends]


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
    """The unknown node to which an edge leads from a known one (`near`), or None if it cannot be followed that way."""
    if direction != Direction.INCOMING and edge.from_node in near and edge.to_node not in near:
        return edge.to_node
    if direction != Direction.OUTGOING and edge.to_node in near and edge.from_node not in near:
        return edge.from_node
    return None


def neighbours(edges: Iterable[Edge], direction: Direction) -> dict[UUID, set[UUID]]:
    """The nodes to which each node leads."""
    found: dict[UUID, set[UUID]] = {}
    for edge in edges:
        if direction != Direction.INCOMING:
            found.setdefault(edge.from_node, set()).add(edge.to_node)
        if direction != Direction.OUTGOING:
            found.setdefault(edge.to_node, set()).add(edge.from_node)
    return found


def shortest(adjacency: Mapping[UUID, set[UUID]], start: UUID, end: UUID, *, max_depth: int) -> list[list[UUID]]:
    """The shortest path, of several the one with the least node ids; none if it has more than `max_depth` edges."""
    distances = _distances(adjacency, start, end)
    if distances.get(start, max_depth + 1) > max_depth:
        return []
    path = [start]
    while path[-1] != end:
        left = distances[path[-1]] - 1
        path.append(min(node for node in adjacency[path[-1]] if distances.get(node) == left))
    return [path]


def simple_paths(
    adjacency: Mapping[UUID, set[UUID]], start: UUID, end: UUID, *, max_depth: int, max_paths: int
) -> Generator[None, None, tuple[list[list[UUID]], bool]]:
    """Paths that visit no node twice, shortest first, ties by node id, and whether they are all within `max_depth`.

    Depth-first, pruned by each node's distance to the end, one length after the other: paths come shortest first
    without all of them in memory. A computation in slices, of MAX_STEPS steps at most.
    """
    if start == end:
        return [[start]], True
    map_ = _PathMap(adjacency, start, end)
    paths: list[list[UUID]] = []
    steps = 0
    for length in range(map_.shortest or max_depth + 1, max_depth + 1):
        for path in map_.paths_of_length(length):
            steps += 1
            if path is not None:
                if len(paths) == max_paths:
                    return paths, False
                paths.append(path)
            if steps > MAX_STEPS:
                return paths, False
            if steps % SLICE == 0:
                yield
    return paths, True


class _PathMap:
    """The nodes from which an end can be reached, as numbers in the order of their ids."""

    def __init__(self, adjacency: Mapping[UUID, set[UUID]], start: UUID, end: UUID) -> None:
        distances = _distances(adjacency, start, end)
        self.shortest = distances.get(start)
        self._adjacency, self._ids = adjacency, sorted(distances)
        self._numbers = {node: number for number, node in enumerate(self._ids)}
        self._distances = [distances[node] for node in self._ids]
        self._start, self._end = self._numbers.get(start, 0), self._numbers[end]
        self._successors: dict[tuple[int, int], list[int]] = {}

    def paths_of_length(self, length: int) -> Iterator[list[UUID] | None]:
        """The paths of `length` edges, at least one, in the order of their ids; also None after each step."""
        path, branches = [self._start], [iter(self._successors_of(self._start, length))]
        while branches:
            node = next(branches[-1], None)
            if node is None:
                branches.pop()
                path.pop()
            elif node == self._end:
                yield [self._ids[number] for number in (*path, node)]
            elif node not in path:
                branches.append(iter(self._successors_of(node, length - len(path))))
                path.append(node)
            yield None

    def _successors_of(self, node: int, edges_left: int) -> list[int]:
        """The next nodes, in order, that are near enough to the end; the end itself only by the last edge."""
        successors = self._successors.get((node, edges_left))
        if successors is None:
            numbers = (self._numbers.get(near) for near in self._adjacency.get(self._ids[node], ()))
            successors = sorted(
                number
                for number in numbers
                if number is not None
                and self._distances[number] < edges_left
                and (number != self._end or edges_left == 1)
            )
            self._successors[node, edges_left] = successors
        return successors


def _distances(adjacency: Mapping[UUID, set[UUID]], start: UUID, end: UUID) -> dict[UUID, int]:
    """Edges from each node to the end, walking `adjacency` backwards: no path leads back over the start."""
    backwards: dict[UUID, set[UUID]] = {}
    for node, targets in adjacency.items():
        for target in targets:
            backwards.setdefault(target, set()).add(node)
    distances, frontier = {end: 0}, [end]
    while frontier:
        frontier = [
            node
            for near in frontier
            if near != start
            for node in backwards.get(near, ())
            if _is_first_visit(distances, node, distances[near] + 1)
        ]
    return distances


def _is_first_visit(distances: dict[UUID, int], node: UUID, distance: int) -> bool:
    """Record the distance of a node that has none yet; return whether it had none."""
    if node in distances:
        return False
    distances[node] = distance
    return True
