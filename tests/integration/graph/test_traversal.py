"""Paths and neighbourhoods, compared with networkx."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.accounts.identity.model import operator_caller
from recollect.fairness.computing import finish
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft
from recollect.graph.nodes import naming
from recollect.graph.nodes.model import NodeFields
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import Direction, NewEdge, Walk
from recollect.graph.traversal import service as traversal
from recollect.graph.traversal.model import Paths, PathSearch, ReachedNodes
from recollect.postgres.database import Database
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.memories import Agent, at_work

NAMES = [f"node {n}" for n in range(8)]
TYPES = ("knows", "admires")
TRIPLES = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(TYPES)),
    min_size=1,
    max_size=24,
    unique=True,
)
WALKS = st.builds(Walk, st.sampled_from(Direction), st.sampled_from([(), ("knows",), TYPES]))

_graphs = itertools.count(1)


@pytest.fixture(scope="module")
async def walking(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    """An agent whose graphs are shared out among the examples."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


@dataclass(frozen=True)
class StoredGraph:
    """A stored graph with the ids of its names."""

    agent: Agent
    ids: dict[str, UUID]

    async def walk(self, way: Callable[[Transaction, Graph], Awaitable[Any]]) -> Any:
        async with self.agent.db.transaction(self.agent.caller, read_only=True) as tx:
            return await way(tx, await graphs.get_graph(tx, self.agent.graph or "default"))

    async def around(self, name: str, walk: Walk, depth: int, **bounds: Any) -> ReachedNodes:
        reached: ReachedNodes = await self.walk(
            lambda tx, graph: traversal.neighbourhood(
                GraphView(tx, graph), [self.ids[name]], walk, depth=depth, **bounds
            )
        )
        return reached

    async def shortest(self, source: str, target: str, walk: Walk, depth: int) -> Paths:
        ends = self.ids[source], self.ids[target]
        searched: PathSearch = await self.walk(
            lambda tx, graph: traversal.open_shortest_path(GraphView(tx, graph), *ends, walk, max_depth=depth)
        )
        return finish(searched.shortest_path())

    async def paths(self, source: str, target: str, walk: Walk, depth: int, limit: int = 10_000) -> Paths:
        ends = self.ids[source], self.ids[target]
        searched: PathSearch = await self.walk(
            lambda tx, graph: traversal.open_paths(GraphView(tx, graph), *ends, walk, max_depth=depth, max_paths=limit)
        )
        return finish(searched.all_paths())


async def store_graph(agent: Agent, triples: Iterable[tuple[str, str, str]]) -> StoredGraph:
    """A graph with these relations. Half of the names are entities; the others are placeholders that relations need."""
    await agent.create(*NAMES)
    await agent.relate(*triples)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, agent.graph or "default")
        found = await naming.find_named(GraphView(tx, graph), [*NAMES, *(end for s, t, _ in triples for end in (s, t))])
    return StoredGraph(agent, {name: node.id for name, node in found.items()})


def networkx_graph(
    drawing: StoredGraph, triples: Iterable[tuple[str, str, str]], walk: Walk
) -> "networkx.DiGraph[UUID]":
    """The same graph for networkx: an edge wherever the walk may go."""
    graph: networkx.DiGraph[UUID] = networkx.DiGraph()
    graph.add_nodes_from(drawing.ids.values())
    for source, target, type_ in triples:
        if not walk.types or type_ in walk.types:
            if walk.direction != Direction.INCOMING:
                graph.add_edge(drawing.ids[source], drawing.ids[target])
            if walk.direction != Direction.OUTGOING:
                graph.add_edge(drawing.ids[target], drawing.ids[source])
    return graph


@pytest.mark.proves("crate: paths")
@examples(30)
@given(triples=TRIPLES, walk=WALKS, depth=st.integers(1, 5), ends=st.permutations(NAMES))
async def test_paths_and_neighbourhoods_match_networkx(
    walking: Agent, triples: list[tuple[str, str, str]], walk: Walk, depth: int, ends: list[str]
) -> None:
    drawing = await store_graph(replace(walking, graph=f"map-{next(_graphs)}"), triples)
    expected = networkx_graph(drawing, triples, walk)
    start, end = drawing.ids[ends[0]], drawing.ids[ends[1]]

    around = await drawing.around(ends[0], walk, depth)
    assert around.depths == dict(networkx.single_source_shortest_path_length(expected, start, cutoff=depth))
    assert list(around.depths.values()) == sorted(around.depths.values())
    among = {
        (drawing.ids[s], drawing.ids[t], type_)
        for s, t, type_ in triples
        if {drawing.ids[s], drawing.ids[t]} <= around.depths.keys() and (not walk.types or type_ in walk.types)
    }
    assert {(edge.from_node, edge.to_node, edge.type) for edge in around.edges.values()} == among
    assert around.cut is None

    everything = sorted(networkx.all_simple_paths(expected, start, end, cutoff=depth), key=lambda p: (len(p), p))
    found = await drawing.paths(ends[0], ends[1], walk, depth)
    assert (found.paths, found.cut) == ([list(path) for path in everything], None)
    for edge in found.edges:
        assert not walk.types or edge.type in walk.types

    shortest = await drawing.shortest(ends[0], ends[1], walk, depth)
    assert [len(path) for path in shortest.paths] == [len(path) for path in everything[:1]]
    assert shortest.paths == [] or shortest.paths[0] in found.paths


async def test_the_path_from_a_node_to_itself_is_the_node(agent: Agent) -> None:
    drawing = await store_graph(agent, [("node 0", "node 0", "knows"), ("node 0", "node 1", "knows")])
    for found in (
        await drawing.shortest("node 0", "node 0", Walk(), 3),
        await drawing.paths("node 0", "node 0", Walk(), 3),
    ):
        assert (found.paths, found.cut) == ([[drawing.ids["node 0"]]], None)


async def test_each_level_of_a_walk_is_one_query_at_any_width(agent: Agent, settings: Settings) -> None:
    one_connection = settings.model_copy(update={"database_pool_size": 1})
    sent: dict[str, list[str]] = {}
    async with Database.connect(settings.database_url, settings=one_connection) as db:
        for graph, width in (("first", 1), ("narrow", 2), ("wide", 300)):
            here = Agent(db, agent.caller, graph)
            triples = [("hub", f"spoke {n}", "to") for n in range(width)]
            triples += [(f"spoke {n}", f"rim {n}", "to") for n in range(width)]
            drawing = await store_graph(here, triples)
            sent[graph] = await statements_of(drawing)
    assert sent["wide"] == sent["narrow"]
    assert 3 <= len([query for query in sent["wide"] if "FROM relations" in query]) <= 4


async def statements_of(drawing: StoredGraph) -> list[str]:
    """The statements that a neighbourhood of depth 2 sends."""
    sent: list[str] = []

    async def way(tx: Transaction, graph: Graph) -> ReachedNodes:
        with tx._connection.query_logger(lambda record: sent.append(record.query)):
            return await traversal.neighbourhood(GraphView(tx, graph), [drawing.ids["hub"]], Walk(), depth=2)

    assert len((await drawing.walk(way)).depths) > 2
    return sent


@pytest.mark.proves("crate: bounded-walks")
async def test_limits_apply_and_are_reported(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = await store_graph(agent, [("hub", f"spoke {n}", "to") for n in range(9)])
    whole = await drawing.around("hub", Walk(), 1, max_nodes=10)
    assert (len(whole.depths), whole.cut) == (10, None)
    part = await drawing.around("hub", Walk(), 1, max_nodes=5)
    assert (len(part.depths), len(part.edges), part.cut) == (5, 4, "nodes")
    ways = await store_graph(
        replace(agent, graph="ways"), [(a, b, "to") for n in range(4) for a, b in (("a", f"{n}"), (f"{n}", "b"))]
    )
    found = await ways.paths("a", "b", Walk(), 2, limit=3)
    assert (len(found.paths), found.cut) == (3, "paths")
    assert (await ways.paths("a", "b", Walk(), 2, limit=4)).cut is None
    assert (await ways.paths("a", "b", Walk(), 1)).paths == []
    monkeypatch.setattr(traversal, "MAX_EDGES", 5)
    assert (await drawing.around("hub", Walk(), 1)).cut == "edges"
    monkeypatch.undo()
    monkeypatch.setattr(traversal, "MAX_SECONDS", -1.0)
    assert (await ways.around("a", Walk(), 1)).cut == "time"


async def test_expired_nodes_are_not_traversed(agent: Agent) -> None:
    async with agent.writing() as (tx, revision):
        past = datetime.now(UTC) - timedelta(hours=1)
        await lineages.put_node(tx, revision, Draft(NodeFields(name="bridge")))
        await lineages.put_node(tx, revision, Draft(NodeFields(name="shore")))
    drawing = await store_graph(agent, [("node 0", "bridge", "to"), ("bridge", "node 1", "to")])
    assert len((await drawing.paths("node 0", "node 1", Walk(), 4)).paths) == 1
    async with agent.writing() as (tx, revision):
        await lineages.put_node(tx, revision, Draft(NodeFields(name="bridge", expires_at=past), drawing.ids["bridge"]))
    assert (await drawing.paths("node 0", "node 1", Walk(), 4)).paths == []
    assert (await drawing.shortest("node 0", "node 1", Walk(), 4)).paths == []
    assert list((await drawing.around("node 0", Walk(), 3)).depths) == [drawing.ids["node 0"]]


async def test_a_symlink_is_followed_on_request_within_the_callers_graphs(agent: Agent) -> None:
    here, there = (replace(agent, graph=graph) for graph in ("here", "there"))
    one, two = await store_graph(here, []), await store_graph(there, [("node 1", "node 2", "to")])
    async with agent.db.transaction(agent.caller) as tx, graphs.write_graph(tx, "here", "test") as revision:
        target = (await graphs.get_graph(tx, "there")).id
        edge = NewEdge(one.ids["node 0"], two.ids["node 1"], "to", to_graph=target)
        await relations.put_edges(tx, revision, [edge])
        own = revision.graph.id
    assert len((await one.around("node 0", Walk(), 3)).depths) == 1
    followed = await one.around("node 0", Walk(symlinks=True), 3)
    assert set(followed.depths) == {one.ids["node 0"], two.ids["node 1"], two.ids["node 2"]}
    narrow = StoredGraph(replace(here, caller=replace(agent.caller, graphs=frozenset([own]))), one.ids)
    assert len((await narrow.around("node 0", Walk(symlinks=True), 3)).depths) == 1
    await there.delete("node 1")
    assert len((await one.around("node 0", Walk(symlinks=True), 3)).depths) == 1
