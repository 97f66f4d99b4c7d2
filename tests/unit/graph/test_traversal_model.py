"""Paths through a loaded graph, compared with those of networkx."""

from collections.abc import Mapping
from itertools import islice
from uuid import UUID

import networkx
from hypothesis import given
from hypothesis import strategies as st

from recollect.fairness.computing import finish
from recollect.graph.traversal import model
from recollect.graph.traversal.model import shortest, simple_paths

SIZE = 7
NODES = [UUID(int=n + 1) for n in range(SIZE)]
EDGES = st.sets(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), max_size=25)
ENDS = st.sampled_from(NODES)


def _adjacency(edges: set[tuple[UUID, UUID]]) -> Mapping[UUID, set[UUID]]:
    adjacency: dict[UUID, set[UUID]] = {}
    for source, target in edges:
        adjacency.setdefault(source, set()).add(target)
    return adjacency


def _graph(edges: set[tuple[UUID, UUID]]) -> "networkx.DiGraph[UUID]":
    graph: networkx.DiGraph[UUID] = networkx.DiGraph()
    graph.add_nodes_from(NODES)
    graph.add_edges_from(edges)
    return graph


@given(edges=EDGES, start=ENDS, end=ENDS, depth=st.integers(1, SIZE))
def test_all_simple_paths_are_found_shortest_first(
    edges: set[tuple[UUID, UUID]], start: UUID, end: UUID, depth: int
) -> None:
    paths, complete = finish(simple_paths(_adjacency(edges), start, end, max_depth=depth, max_paths=10_000))
    expected = networkx.all_simple_paths(_graph(edges), start, end, cutoff=depth)
    assert paths == sorted(map(list, expected), key=lambda path: (len(path), path))
    assert complete


@given(edges=EDGES, start=ENDS, end=ENDS, limit=st.integers(1, 5))
def test_a_bounded_search_returns_the_first_paths_and_says_that_it_is_incomplete(
    edges: set[tuple[UUID, UUID]], start: UUID, end: UUID, limit: int
) -> None:
    everything, _ = finish(simple_paths(_adjacency(edges), start, end, max_depth=SIZE, max_paths=10_000))
    paths, complete = finish(simple_paths(_adjacency(edges), start, end, max_depth=SIZE, max_paths=limit))
    assert paths == everything[:limit]
    assert complete == (len(everything) <= limit)


@given(edges=EDGES, start=ENDS, end=ENDS, depth=st.integers(1, SIZE))
def test_the_shortest_path_is_the_first_of_all_paths(
    edges: set[tuple[UUID, UUID]], start: UUID, end: UUID, depth: int
) -> None:
    paths, _ = finish(simple_paths(_adjacency(edges), start, end, max_depth=depth, max_paths=1))
    assert shortest(_adjacency(edges), start, end, max_depth=depth) == paths


def test_the_enumeration_of_paths_is_bounded() -> None:
    """A complete graph of 40 nodes has far too many paths to list."""
    crowd = [UUID(int=n + 1) for n in range(40)]
    adjacency = {node: set(crowd) - {node} for node in crowd}
    paths, complete = finish(simple_paths(adjacency, crowd[0], crowd[1], max_depth=12, max_paths=10**9))
    assert not complete
    assert len(paths) <= model.MAX_STEPS
    assert all(len(set(path)) == len(path) for path in islice(paths, 0, None, 1_000))
    assert [len(path) for path in paths] == sorted(len(path) for path in paths)
