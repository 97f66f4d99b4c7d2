"""A past revision reads as it did when it was the newest."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.accounts.identity.model import operator_caller
from recollect.errors import InvalidInput, NotFound, TooLarge
from recollect.fairness.computing import finish
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.graph.graphs.view import GraphView
from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.hierarchy.model import PageRequest
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft
from recollect.graph.nodes import naming
from recollect.graph.nodes.model import NodeFields
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import Direction, NewEdge, Walk
from recollect.memory import exploring, reading, revising
from recollect.memory.model import Explored, MemoryRef, NewMemory
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import BooleanQuery, FuzzyQuery, RankedQuery, SubstringQuery
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.histories import HISTORIES, NAMED, written
from tests.support.memories import Agent, at_work, names, triples

_graphs = itertools.count(1)
_policies = st.sampled_from(["lww", "manual"])


@pytest.fixture(scope="module")
async def replaying(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    """An agent whose graphs are shared out among the examples."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


Reading = Callable[[GraphView], Awaitable[Any]]


async def _explore(view: GraphView, name: str, walk: Walk, to: str | None = None) -> Any:
    start = MemoryRef(name=name)
    try:
        if to is None:
            return await exploring.explore(view, start, walk, depth=3, max_nodes=50)
        searched = await exploring.open_paths(view, start, MemoryRef(name=to), walk, depth=3)
        return await exploring.explored_paths(view.tx, searched, finish(searched.all_paths()))
    except NotFound:
        return None


async def _versions(view: GraphView) -> Any:
    """The heads, without what a later write is known to change in them."""
    ids = await view.fetch(
        Query.compile("SELECT id FROM nodes WHERE tenant_id = :tenant_id AND graph_id = :graph_id ORDER BY id")
    )
    heads = await lineages.get_nodes(view, [row["id"] for row in ids])
    return [replace(head, superseded_by=None, superseded_revision=None, conflicts=()) for head in heads]


async def _counted(view: GraphView) -> Any:
    return await graphs.head_of(view)


READINGS: dict[str, Reading] = {
    "read_graph": lambda view: reading.read_graph(view, max_items=1_000),
    "a page": lambda view: reading.read_graph(view, offset=1, limit=2, max_items=9),
    "of a kind": lambda view: reading.read_graph(view, kind="cat", offset=0, limit=9, max_items=9),
    "open_nodes": lambda view: reading.open_nodes(view, NAMED),
    "search by name": lambda view: search.search_nodes(view, SubstringQuery("a")),
    "search by observation": lambda view: search.search_nodes(view, SubstringQuery("likes", tags=("NEW",))),
    "ranked search": lambda view: search.search_ranked(view, RankedQuery("likes tea")),
    "boolean search": lambda view: search.search_boolean(view, BooleanQuery("tag:new OR NOT type:person")),
    "fuzzy search": lambda view: search.search_fuzzy(view, FuzzyQuery("likes te")),
    "explore": lambda view: _explore(view, "Ada", Walk()),
    "explore outgoing": lambda view: _explore(view, "Babbage", Walk(Direction.OUTGOING, ("knows",))),
    "paths": lambda view: _explore(view, "Ada", Walk(), to="Grace"),
    "versions": _versions,
    "counts": _counted,
    "roots": lambda view: hierarchy.get_roots(view, PageRequest()),
}


async def _read_all(agent: Agent, as_of: str | None = None) -> dict[str, Any]:
    assert agent.graph is not None
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return {name: await read(await graphs.view(tx, agent.graph, as_of)) for name, read in READINGS.items()}


@pytest.mark.proves("rules: reads-of-the-past")
@examples(12)
@given(policy=_policies, history=HISTORIES)
async def test_every_past_revision_reads_as_it_did_then(replaying: Agent, policy: str, history: list[Any]) -> None:
    agent = replace(replaying, graph=f"past-{next(_graphs)}")
    await _make(agent, policy)
    seen: dict[int, tuple[dict[str, Any], datetime | None]] = {0: (await _read_all(agent), None)}
    for step in history:
        await written(agent, step)
        head = await agent.head()
        seen[head.revision] = await _read_all(agent), head.at
    for nth, (revision, (then, at)) in enumerate(seen.items()):
        _assert_same(await _read_all(agent, at.isoformat() if at and nth % 2 else str(revision)), then)


def _assert_same(past: dict[str, Any], then: dict[str, Any]) -> None:
    for name in READINGS:
        if name == "counts":  # Before the first revision, the head's time is not that of a revision.
            assert replace(past[name], at=then[name].at) == then[name]
        else:
            assert past[name] == then[name], name


async def _make(agent: Agent, policy: str) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph(agent.graph or "", conflict_policy=policy))


async def test_expiry_is_judged_at_the_moment_that_is_read(agent: Agent) -> None:
    """Nodes, observations, relations and paths exist until they expire."""
    agent = replace(agent, graph="notes")
    soon = datetime.now(UTC) + timedelta(hours=1)
    async with agent.writing() as (tx, revision):
        for name, expires_at in (("Ada", None), ("the meeting", soon), ("Grace", None)):
            await lineages.put_node(tx, revision, Draft(NodeFields(name=name, expires_at=expires_at)))
    await agent.relate(("Ada", "the meeting", "attends"), ("the meeting", "Grace", "is led by"))

    async def read(as_of: datetime | None) -> tuple[list[str], int, int, list[list[Any]], int]:
        then = None if as_of is None else as_of.isoformat()
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            view = await graphs.view(tx, "notes", then)
            whole = await reading.read_graph(view, max_items=99)
            opened = await reading.open_nodes(view, ["Ada"])
            around = await _explore(view, "Ada", Walk())
            through = await _explore(view, "Ada", Walk(), to="Grace")
        return list(names(whole)), len(whole.relations), len(opened.relations), through.paths, len(around.nodes)

    before = await read(None)
    assert before[:3] == (["Ada", "the meeting", "Grace"], 2, 1)
    assert (len(before[3]), before[4]) == (1, 3)
    assert await read(datetime.now(UTC)) == before
    assert await read(soon + timedelta(seconds=1)) == (["Ada", "Grace"], 0, 0, [], 1)


async def test_a_merge_does_not_change_times_in_the_past(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person"), NewEntity("Countess"))
    await agent.create("Babbage")
    before = await agent.read()
    await agent.merge(["Babbage", "Ada"])
    after = await agent.read()
    assert {e.name: e.created_at for e in after.entities} == {
        "Countess": before.entities[1].created_at,
        "Babbage": before.entities[0].created_at,
    }
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        assert await reading.read_graph(await graphs.view(tx, None, "2"), max_items=99) == before
        assert await reading.read_graph(await graphs.view(tx, None, "3"), max_items=99) == after


async def test_explore_starts_at_nodes_as_they_were(agent: Agent) -> None:
    """At an observation, a fact, or a name that was only a placeholder at that moment."""
    await agent.create("Ada")
    await agent.relate(("Ada", "Babbage", "knows"))
    (said,), (fact,) = [await agent.remember(item) for item in (NewMemory("likes tea", about=("Ada",)), "it rained")]
    starts = [
        MemoryRef(name="Babbage"),
        MemoryRef(id=said.id),
        MemoryRef(id=fact.id),
        MemoryRef(name="Ada"),
    ]

    async def explored(as_of: str | None) -> list[Explored]:
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            return [await exploring.explore(await graphs.view(tx, None, as_of), start, Walk()) for start in starts]

    then, revision = await explored(None), (await agent.head()).revision
    async with agent.writing() as (tx, writing):
        await revising.forget(tx, writing, starts, delete=True)
    assert await explored(str(revision)) == then
    for start in starts:
        with pytest.raises(NotFound):
            async with agent.db.transaction(agent.caller, read_only=True) as tx:
                await exploring.explore(await graphs.view(tx, None, str(revision + 1)), start, Walk())


async def test_a_past_too_large_for_one_reply_is_read_in_pages(agent: Agent) -> None:
    everybody = [f"entity {n}" for n in range(7)]
    await agent.create(*everybody)
    await agent.delete(*everybody[1:])
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        assert len((await reading.read_graph(await graphs.view(tx, None), max_items=6)).entities) == 1
        with pytest.raises(TooLarge):
            await reading.read_graph(await graphs.view(tx, None, "1"), max_items=6)
        assert (
            list(names(await reading.read_graph(await graphs.view(tx, None, "1"), limit=5, max_items=6)))
            == everybody[:5]
        )


async def test_a_symlink_is_read_as_it_was_in_both_graphs(agent: Agent) -> None:
    one, two = replace(agent, graph="one"), replace(agent, graph="two")
    await one.create("Ada")
    await two.create("Babbage")
    async with agent.db.transaction(agent.caller) as tx, graphs.write_graph(tx, "one", "test") as revision:
        target = await graphs.get_graph(tx, "two")
        ends = [
            (await naming.find_named(GraphView(tx, graph), [name]))[name]
            for graph, name in ((revision.graph, "Ada"), (target, "Babbage"))
        ]
        edge = NewEdge(ends[0].id, ends[1].id, "knows", to_graph=target.id)
        await relations.put_edges(tx, revision, [edge])
    linked, head = await one.read(), await one.head()
    assert triples(linked) == [("Ada", "Babbage", "knows")]
    await two.delete("Babbage")
    assert triples(await one.read()) == []
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        assert await reading.read_graph(await graphs.view(tx, "one", str(head.revision)), max_items=9) == linked
        now = datetime.now(UTC).isoformat()
        assert triples(await reading.read_graph(await graphs.view(tx, "one", now), max_items=9)) == []


@pytest.mark.parametrize("as_of", ["4", "x", "-1", "2027-01", "2027-13-31T12:00:00Z", "9" * 16, ""])
async def test_an_invalid_as_of_is_refused(agent: Agent, as_of: str) -> None:
    await agent.create("Ada")
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        with pytest.raises(InvalidInput) as refused:
            await reading.read_graph(await graphs.view(tx, None, as_of), max_items=9)
    assert refused.value.path == "as_of"


async def test_a_graph_is_empty_before_its_first_write(agent: Agent) -> None:
    await agent.create("Ada")
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        for as_of in ("0", "1999-01-01T00:00:00Z"):
            assert names(await reading.read_graph(await graphs.view(tx, None, as_of), max_items=9)) == []


async def test_a_placeholder_is_ordered_by_when_it_became_an_entity(agent: Agent) -> None:
    await agent.relate(("Ada", "Babbage", "knows"))
    await agent.create("Grace")
    await agent.create("Ada")
    read = await agent.read()
    assert names(read) == ["Grace", "Ada"]
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        assert await reading.read_graph(await graphs.view(tx, None, "3"), max_items=9) == read
        found = await search.search_nodes(await graphs.view(tx, None, "3"), SubstringQuery("thing"))
        assert names(found) == ["Grace", "Ada"]


async def test_time_of_an_entitys_last_change_is_read_as_it_was(agent: Agent) -> None:
    """Adding or removing an observation changes the entity, up to the moment that is read."""
    await agent.create(NewEntity("Ada", "person", ("likes tea",)), "Grace")
    seen = [await agent.read()]
    for write in (agent.observe("Ada", "likes coffee"), agent.unobserve(("Ada", "likes tea"), ("Grace", "is not so"))):
        await write
        seen.append(await agent.read())
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        for revision, then in enumerate(seen, start=1):
            assert await reading.read_graph(await graphs.view(tx, None, str(revision)), max_items=9) == then
