"""Placeholders, counters and history: invariants that hold after every write."""

import itertools
from collections.abc import AsyncIterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import asyncpg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.accounts.identity.model import operator_caller
from recollect.errors import NotFound
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.histories import HISTORIES, written
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, Triple, at_work, names, triples

EDGE = ("Ada", "Babbage", "knows")


async def test_a_relation_may_name_an_entity_that_does_not_exist_yet(agent: Agent) -> None:
    await agent.create("Ada")
    assert await agent.relate(EDGE) == [EDGE]
    graph = await agent.read()
    assert (names(graph), triples(graph)) == (["Ada"], [EDGE])
    head = await agent.head()
    assert (head.entities, head.placeholders, head.relations) == (1, 1, 1)


@pytest.mark.proves("memory-server: deferred-integrity")
async def test_a_placeholder_is_neither_listed_nor_found(agent: Agent) -> None:
    await agent.relate(EDGE)
    await agent.embed()
    assert names(await agent.read()) == []
    assert names(await agent.open("Ada", "Babbage")) == []
    assert await agent.found("Babbage") == []
    assert await agent.recalled("Babbage") == []
    with pytest.raises(NotFound, match="Entity with name Babbage not found"):
        await agent.observe("Babbage", "designed an engine")


@pytest.mark.proves("memory-server: deferred-integrity")
async def test_a_placeholder_becomes_the_entity_and_keeps_its_edges(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.relate(EDGE, ("Babbage", "Ada", "admires"))
    assert await agent.create(NewEntity("Babbage", "person", ("designed an engine",))) == ["Babbage"]
    opened = await agent.open("Babbage")
    assert [(e.name, e.kind, e.observations) for e in opened.entities] == [
        ("Babbage", "person", ("designed an engine",))
    ]
    assert triples(opened) == [EDGE, ("Babbage", "Ada", "admires")]
    assert await agent.recalled("Babbage") == ["designed an engine"]
    head = await agent.head()
    assert (head.entities, head.placeholders) == (1, 1)
    history = "SELECT version, placeholder, kind FROM node_versions WHERE node_id = $1 ORDER BY version"
    versions = [tuple(row) for row in await owner.fetch(history, opened.entities[0].id)]
    assert versions == [(1, True, None), (2, False, "person")]


@pytest.mark.proves("memory-server: deferred-integrity")
@pytest.mark.parametrize("name", ["Babbage", "Ada"], ids=["its target", "its source"])
async def test_a_placeholder_vanishes_with_its_last_relation(agent: Agent, name: str) -> None:
    second = (EDGE[0], EDGE[1], "admires")
    await agent.relate(EDGE, second)
    await agent.create("Ada" if name == "Babbage" else "Babbage")
    await agent.unrelate(EDGE)
    assert (await agent.head()).placeholders == 1
    await agent.unrelate(second)
    assert (await agent.head()).placeholders == 0


async def test_a_placeholder_vanishes_when_the_entity_that_named_it_is_deleted(agent: Agent) -> None:
    await agent.create("Ada")
    await agent.relate(EDGE, ("Ada", "Ada", "trusts"))
    await agent.delete("Ada")
    head = await agent.head()
    assert (head.entities, head.placeholders, head.relations) == (0, 0, 0)


async def test_deleting_a_placeholder_by_name_removes_its_relations(agent: Agent) -> None:
    await agent.create("Ada", "Grace")
    await agent.relate(EDGE, ("Grace", "Babbage", "read"), ("Ada", "Grace", "inspired"))
    await agent.delete("Babbage")
    assert triples(await agent.read()) == [("Ada", "Grace", "inspired")]
    assert (await agent.head()).placeholders == 0


async def test_a_recreated_name_is_a_new_lineage(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes programs",)))
    first = (await agent.open("Ada")).entities[0]
    await agent.delete("Ada")
    await agent.create("Ada")
    second = (await agent.open("Ada")).entities[0]
    assert second.id != first.id
    assert (second.kind, second.observations) == ("thing", ())


# After any operations, Recollect returns what the official memory server would, its counters are exact, every
# change that had an effect has one revision, and the history of every lineage is complete.


@dataclass
class OfficialServer:
    """The semantics of the official memory server (src/memory/index.ts), where a batch also names an entity or relation
    only once.

    Facts and threads are Recollect's own: an observation is (content, thread), a fact (text, thread).
    """

    entities: dict[str, tuple[str | None, list[tuple[str, str | None]]]] = field(default_factory=dict)
    relations: list[Triple] = field(default_factory=list)
    facts: set[tuple[str, str | None]] = field(default_factory=set)

    def create(self, entities: Sequence[NewEntity]) -> None:
        for new in entities:
            said: list[tuple[str, str | None]] = [(content, None) for content in dict.fromkeys(new.observations)]
            self.entities.setdefault(new.name, (new.kind, said))

    def observe(self, name: str, contents: Sequence[str]) -> None:
        if name not in self.entities:
            raise NotFound(name)
        said = self.entities[name][1]
        for content in contents:
            if content not in [known for known, _ in said]:
                said.append((content, None))

    def unobserve(self, statements: Sequence[tuple[str, str]]) -> None:
        for name, (_, said) in self.entities.items():
            said[:] = [(content, thread) for content, thread in said if (name, content) not in statements]

    def relate(self, relations: Sequence[Triple]) -> None:
        self.relations += [triple for triple in dict.fromkeys(relations) if triple not in self.relations]

    def unrelate(self, relations: Sequence[Triple]) -> None:
        self.relations = [triple for triple in self.relations if triple not in relations]

    def delete(self, deleted: Sequence[str]) -> None:
        self.entities = {name: entity for name, entity in self.entities.items() if name not in deleted}
        self.relations = [triple for triple in self.relations if not {triple[0], triple[1]} & set(deleted)]

    def remember(self, items: Sequence[NewMemory]) -> None:
        for item in items:
            for name in item.about:
                said = self.entities.setdefault(name, (None, []))[1]
                if (item.text, item.thread) not in said:
                    said.append((item.text, item.thread))
            if not item.about:
                self.facts.add((item.text, item.thread))

    def counters(self) -> dict[str, int]:
        ends = {end for source, target, _ in self.relations for end in (source, target)}
        return {
            "entities": len(self.entities),
            "facts": len(self.facts),
            "placeholders": len(ends - self.entities.keys()),
            "observations": sum(len(said) for _, said in self.entities.values()),
            "relations": len(self.relations),
        }


NAMES = st.sampled_from(["Ada", "Babbage", "Grace", "Ωmega"])
TEXTS = st.sampled_from(["likes tea", "likes coffee", "writes programs"])
THREADS = st.sampled_from([None, "monday"])
TRIPLES = st.lists(st.tuples(NAMES, NAMES, st.sampled_from(["knows", "admires"])), max_size=4)
ENTITIES = st.builds(
    NewEntity, name=NAMES, kind=st.sampled_from(["person", "cat"]), observations=st.lists(TEXTS, max_size=4).map(tuple)
)
ITEMS = st.builds(NewMemory, text=TEXTS, about=st.lists(NAMES, max_size=2, unique=True).map(tuple), thread=THREADS)
OPERATIONS = st.one_of(
    st.tuples(st.just("create"), st.tuples(st.lists(ENTITIES, max_size=3))),
    st.tuples(st.just("observe"), st.tuples(NAMES, st.lists(TEXTS, min_size=1, max_size=4))),
    st.tuples(st.just("unobserve"), st.tuples(st.lists(st.tuples(NAMES, TEXTS), max_size=3))),
    st.tuples(st.just("relate"), st.tuples(TRIPLES)),
    st.tuples(st.just("unrelate"), st.tuples(TRIPLES)),
    st.tuples(st.just("delete"), st.tuples(st.lists(NAMES, max_size=2))),
    st.tuples(st.just("remember"), st.tuples(st.lists(ITEMS, max_size=3))),
)

_graphs = itertools.count(1)


@pytest.fixture(scope="module")
async def replaying(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    """An agent whose graphs are shared out among the examples."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


@pytest.mark.proves("memory-server: equal-to-the-original")
@examples(25)
@given(operations=st.lists(OPERATIONS, min_size=1, max_size=12))
@example(operations=[("relate", ([("Ada", "Ada", "knows"), EDGE, ("Ada", "Ada", "knows")],))])
@example(
    operations=[
        ("create", ([NewEntity("Ada", "person", ("likes tea",))],)),
        ("relate", ([EDGE],)),
        ("unobserve", ([("Ada", "likes tea"), ("Babbage", "likes tea")],)),
    ]
)
async def test_any_operations_leave_the_graph_that_the_official_server_would(
    replaying: Agent, operations: list[tuple[str, tuple[Any, ...]]]
) -> None:
    agent, official, revision = replace(replaying, graph=f"replay-{next(_graphs)}"), OfficialServer(), 0
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph(agent.graph or ""))
    for operation, arguments in operations:
        before = deepcopy(official)
        refused = _refused_by_official_server(official, operation, arguments)
        assert await _refused_by_recollect(agent, operation, arguments) == refused
        revision += official != before
        if not refused:
            await _assert_reads_alike(agent, official, revision)
    await assert_laws(agent)


def _refused_by_official_server(official: OfficialServer, operation: str, arguments: tuple[Any, ...]) -> bool:
    """Whether the official server refuses the operation."""
    try:
        getattr(official, operation)(*arguments)
    except NotFound:
        return True
    return False


async def _refused_by_recollect(agent: Agent, operation: str, arguments: tuple[Any, ...]) -> bool:
    """Whether Recollect refuses it."""
    match operation, arguments:
        case "observe", (name, contents):
            arguments = (name, *contents)
        case _, (batch,):
            arguments = tuple(batch)
    try:
        await getattr(agent, operation)(*arguments)
    except NotFound:
        return True
    return False


async def _assert_reads_alike(agent: Agent, official: OfficialServer, revision: int) -> None:
    graph, head = await agent.read(), await agent.head()
    assert {entity.name: (entity.kind, entity.observations) for entity in graph.entities} == {
        name: (kind, tuple(content for content, _ in said)) for name, (kind, said) in official.entities.items()
    }
    assert len(graph.entities) == len(official.entities)
    assert triples(graph) == official.relations
    counters = official.counters()
    assert {counter: getattr(head, counter) for counter in counters} == counters
    assert head.revision == revision


@examples(30)
@given(policy=st.sampled_from(["lww", "manual"]), history=HISTORIES)
async def test_invariants_hold_after_every_write_of_any_history(
    replaying: Agent, policy: str, history: list[Any]
) -> None:
    """Versions are put; entities are renamed, merged, moved, revised and forgotten, in any order."""
    agent = replace(replaying, graph=f"history-{next(_graphs)}")
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph(agent.graph or "", conflict_policy=policy))
    for step in history:
        before = await agent.head()
        accepted = await written(agent, step)
        after = await agent.head()
        assert after.revision - before.revision in ((0, 1) if accepted else (0,))
        await assert_laws(agent)
