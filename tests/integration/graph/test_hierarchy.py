"""Parents and children: random moves compared with a small model, cycles, limits, and concurrent moves."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.errors import Conflict, NotFound
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.hierarchy.model import PageRequest
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, Rewrite
from recollect.postgres.database import Database
from recollect.postgres.transactions import Transaction
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work

NAMES = [f"node {n}" for n in range(6)]
_graphs = itertools.count(1)


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent
        await assert_laws(agent)


@pytest.fixture(scope="module")
async def moving(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    """An agent whose graphs are shared out among the examples."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


async def move(agent: Agent, name: str, parent: str | None) -> None:
    async with agent.writing() as (tx, revision):
        entity = await hierarchy.set_parent(tx, revision, name, parent)
    assert (entity.name, entity.parent) == (name, parent)


class HierarchyReader:
    """Names that the hierarchy returns for a name."""

    def __init__(self, tx: Transaction, graph: str | None) -> None:
        self.tx, self.graph = tx, graph

    async def above(self, name: str) -> list[str]:
        return [e.name for e in (await hierarchy.get_ancestors(await graphs.view(self.tx, self.graph), name)).entities]

    async def children(self, name: str) -> list[str]:
        return [
            e.name
            for e in (
                await hierarchy.get_children(await graphs.view(self.tx, self.graph), name, PageRequest())
            ).entities
        ]

    async def below(self, name: str) -> list[str]:
        return [
            e.name
            for e in (
                await hierarchy.get_descendants(await graphs.view(self.tx, self.graph), name, PageRequest())
            ).entities
        ]

    async def roots(self) -> list[str]:
        return [
            e.name for e in (await hierarchy.get_roots(await graphs.view(self.tx, self.graph), PageRequest())).entities
        ]


Moves = list[tuple[str, str | None]]


@examples(30)
@given(moves=st.lists(st.tuples(st.sampled_from(NAMES), st.one_of(st.none(), st.sampled_from(NAMES))), max_size=16))
async def test_any_moves_leave_the_tree_of_the_model(moving: Agent, moves: Moves) -> None:
    agent = replace(moving, graph=f"tree-{next(_graphs)}")
    await agent.create(*NAMES)
    parents: dict[str, str] = {}
    for name, parent in moves:
        if parent is not None and name in [parent, *_line(parents, parent)]:
            with pytest.raises(Conflict):
                await move(agent, name, parent)
            continue
        await move(agent, name, parent)
        parents = {child: above for child, above in parents.items() if child != name}
        parents |= {} if parent is None else {name: parent}
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        reader = HierarchyReader(tx, agent.graph)
        assert await reader.roots() == [name for name in NAMES if name not in parents]
        for name in NAMES:
            assert await reader.above(name) == _line(parents, name)
            assert await reader.children(name) == [child for child in NAMES if parents.get(child) == name]
            assert await reader.below(name) == _below(parents, name)
    await assert_laws(agent)


def _line(parents: dict[str, str], name: str) -> list[str]:
    line = []
    while name in parents:
        name = parents[name]
        line.append(name)
    return line


def _below(parents: dict[str, str], name: str) -> list[str]:
    children = [child for child in NAMES if parents.get(child) == name]
    return [found for child in children for found in (child, *_below(parents, child))]


async def test_concurrent_moves_create_no_cycle(agent: Agent) -> None:
    await agent.create(*NAMES)
    moves = [(name, parent) for name in NAMES for parent in NAMES if name != parent]

    async def tried(name: str, parent: str) -> bool:
        try:
            await move(agent, name, parent)
        except Conflict:
            return False
        return True

    done = await asyncio.gather(*(tried(*one) for one in moves))
    assert any(done)
    assert not all(done)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        reader = HierarchyReader(tx, None)
        for name in NAMES:
            assert name not in await reader.above(name)
        assert (
            sorted([*await reader.roots(), *[n for r in await reader.roots() for n in await reader.below(r)]]) == NAMES
        )


async def test_an_expired_or_deleted_parent_separates_its_subtree(agent: Agent) -> None:
    await agent.create("top", "gone", "middle", "bottom", "left")
    for name, parent in (("middle", "top"), ("bottom", "middle"), ("gone", "top"), ("left", "gone")):
        await move(agent, name, parent)
    await agent.delete("gone")
    past = datetime.now(UTC) - timedelta(hours=1)
    async with agent.writing() as (tx, revision):
        head = (await agent.open("middle")).entities[0]
        fields = NodeFields(name="middle", kind="thing", parent_id=(await agent.open("top")).entities[0].id)
        await lineages.put_node(tx, revision, Draft(replace(fields, expires_at=past), head.id))
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        reader = HierarchyReader(tx, None)
        assert await reader.roots() == ["top", "bottom", "left"]
        assert await reader.below("top") == await reader.above("bottom") == await reader.above("left") == []
        assert await hierarchy.get_parent(await graphs.view(tx, None), "bottom") is None
    assert [(e.name, e.parent) for e in (await agent.open("bottom", "left")).entities] == [
        ("bottom", None),
        ("left", None),
    ]


async def test_a_cycle_of_any_length_is_detected(agent: Agent) -> None:
    """Even one that is longer than a walk may be."""
    line = [f"level {n}" for n in range(1_200)]
    await agent.create(*line)
    async with agent.writing() as (tx, revision):
        ids = {name: node.id for name, node in (await naming.find_named(GraphView(tx, revision.graph), line)).items()}
        heads = await nodes.read_heads(tx, revision.graph, list(ids.values()))
        moved = [(heads[ids[name]], ids[parent]) for parent, name in pairwise(line)]
        await nodes.rewrite(tx, revision, [Rewrite(h, replace(h.fields, parent_id=above)) for h, above in moved])
    with pytest.raises(Conflict, match="cycle"):
        await move(agent, line[0], line[-1])
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        above = await hierarchy.get_ancestors(await graphs.view(tx, None), line[-1])
        assert ([e.name for e in above.entities], above.next_offset) == (line[-2:198:-1], 1_000)


async def test_pages_of_a_subtree_are_complete(agent: Agent) -> None:
    await agent.create("top", *NAMES)
    for parent, name in pairwise(["top", *NAMES]):
        await move(agent, name, parent)
    await agent.relate(("top", NAMES[0], "knows"), (NAMES[0], NAMES[1], "knows"), (NAMES[5], "nobody", "knows"))
    seen: list[str] = []
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        offset: int | None = 0
        while offset is not None:
            page = await hierarchy.get_subtree(await graphs.view(tx, None), "top", PageRequest(offset, 3))
            seen += [entity.name for entity in page.entities]
            offset = page.next_offset
    assert seen == ["top", *NAMES]


async def test_a_walk_is_one_statement_at_any_depth(agent: Agent) -> None:
    await agent.create(*NAMES)
    for parent, name in pairwise(NAMES):
        await move(agent, name, parent)
    sent: dict[str, list[str]] = {}
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        for name in (NAMES[0], NAMES[0], NAMES[4]):
            queries: list[str] = []
            with tx._connection.query_logger(lambda record, queries=queries: queries.append(record.query)):
                await hierarchy.get_descendants(await graphs.view(tx, None), name, PageRequest())
            sent[name] = queries
    assert sent[NAMES[0]] == sent[NAMES[4]]


async def test_an_entitys_own_size_counts_only_in_answers_that_contain_it(agent: Agent) -> None:
    """Its observations count in an answer with its subtree, and not in one about its parent or children, now or in the
    past."""
    await agent.create("top", "leaf", NewEntity("wordy", "thing", ("x" * 500,)))
    for name, parent in (("wordy", "top"), ("leaf", "wordy")):
        await move(agent, name, parent)
    await agent.relate(("wordy", "to be made", "of"))
    then = (await agent.head()).revision
    for as_of in (None, str(then)):
        async with agent.db.transaction(agent.caller, read_only=True, reply_bytes=400) as tx:
            view, page = await graphs.view(tx, None, as_of), PageRequest()
            above = await hierarchy.get_parent(view, "wordy")
            assert above is not None
            assert above.name == "top"
            assert [e.name for e in (await hierarchy.get_ancestors(view, "wordy")).entities] == ["top"]
            assert [e.name for e in (await hierarchy.get_children(view, "wordy", page)).entities] == ["leaf"]
            assert [e.name for e in (await hierarchy.get_descendants(view, "wordy", page)).entities] == ["leaf"]
            assert len(await hierarchy.subtree_ids(view, "wordy")) == 2
            subtree = (await hierarchy.get_subtree(view, "wordy", page)).entities
            assert [(e.name, len(e.observations), e.omitted) for e in subtree] == [("wordy", 0, 1), ("leaf", 0, 0)]
            for name in ("to be made", "nobody"):
                with pytest.raises(NotFound):
                    await hierarchy.get_children(view, name, page)


async def test_a_parent_must_be_an_entity_of_the_same_graph(agent: Agent) -> None:
    await agent.create("Ada")
    await agent.relate(("Ada", "placeholder", "knows"))
    await replace(agent, graph="elsewhere").create("Babbage")
    calls: list[tuple[str, str | None]] = [("Ada", "Babbage"), ("Ada", "placeholder"), ("placeholder", None)]
    for name, parent in [*calls, ("Ada", ""), ("Babbage", "Ada")]:
        with pytest.raises(NotFound):
            await move(agent, name, parent)
    with pytest.raises(Conflict):
        await move(agent, "Ada", "Ada")
    assert (await agent.head()).revision == 2
