"""What is revised or forgotten is so for every reader, and stays in history."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.errors import InvalidInput, NotFound
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.graph.lineages import service as lineages
from recollect.memory import revising
from recollect.memory.model import MemoryPatch, NewMemory, Revised, Target
from recollect.platform.db import Database
from tests.conftest import NewTenant
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work, names, triples


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent
        await assert_laws(agent)


async def revise(agent: Agent, target: UUID | str, **amendment: Any) -> Revised:
    async with agent.writing() as (tx, revision):
        return await revising.revise(tx, revision, _target(target), MemoryPatch(**amendment))


async def forget(agent: Agent, *targets: UUID | str, delete: bool = False, reason: str | None = None) -> list[UUID]:
    async with agent.writing() as (tx, revision):
        return await revising.forget(tx, revision, [_target(t) for t in targets], reason=reason, delete=delete)


def _target(target: UUID | str) -> Target:
    return Target(name=target) if isinstance(target, str) else Target(id=target)


async def test_a_statement_gives_way_to_another(agent: Agent) -> None:
    (said,) = await agent.remember(NewMemory("likes tea", about=("Ada",), thread="monday"))
    revised = await revise(agent, said.id, text="likes coffee")
    assert (revised.node_id, revised.text, revised.version) == (said.node_id, "likes coffee", None)
    assert revised.id == said.id
    assert (await agent.open("Ada")).entities[0].observations == ("likes coffee",)
    assert await agent.recalled("tea") == []
    assert await agent.recalled("coffee") == ["likes coffee"]
    assert (await revise(agent, said.id, text="likes milk")).id == said.id


async def test_a_statement_that_says_so_already_is_left_as_it_is(agent: Agent) -> None:
    (said,) = await agent.remember(NewMemory("likes tea", about=("Ada",)))
    head = await agent.head()
    assert (await revise(agent, said.id, text="likes tea")).id == said.id
    assert await agent.head() == head


async def test_a_statement_becomes_one_that_is_known(agent: Agent) -> None:
    tea, coffee = await agent.remember(
        NewMemory("likes tea", about=("Ada",)), NewMemory("likes coffee", about=("Ada",))
    )
    assert (await revise(agent, tea.id, text="likes coffee")).id == coffee.id
    assert (await agent.open("Ada")).entities[0].observations == ("likes coffee",)


@pytest.mark.parametrize("amendment", [{"status": "archived"}, {"based_on": 1}])
async def test_a_statement_has_no_archive_and_no_numbered_versions(agent: Agent, amendment: dict[str, Any]) -> None:
    (said,) = await agent.remember(NewMemory("likes tea", about=("Ada",)))
    with pytest.raises(InvalidInput, match="statement about an entity"):
        await revise(agent, said.id, **amendment)


async def test_a_fact_gets_a_version_for_each_revision(agent: Agent) -> None:
    (fact,) = await agent.remember("it rained")
    revised = await revise(agent, fact.id, text="it snowed", tags=("weather",), importance=3, reason="looked again")
    assert (revised.id, revised.version, revised.text) == (fact.id, 2, "it snowed")
    assert await agent.recalled("snowed", tags=("Weather",)) == ["it snowed"]
    assert await agent.recalled("rained") == []
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, "default")
        newest, first = await lineages.history(tx, graph, fact.id)
    assert (newest.metadata, newest.reason, newest.importance, newest.tags) == ({}, "looked again", 3, ("weather",))
    assert (first.content, first.superseded_by, first.tags) == ("it rained", newest.id, ())


async def test_an_entity_may_have_a_text_of_its_own(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person"))
    await revise(agent, "Ada", text="wrote the first program")
    assert await agent.recalled("program") == ["wrote the first program"]
    assert names(await agent.read()) == ["Ada"]


async def test_a_conflict_tells_both_texts(agent: Agent) -> None:
    agent = replace(agent, graph="notes")
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph("notes", conflict_policy="manual"))
    (fact,) = await agent.remember("it rained")
    assert (await revise(agent, fact.id, text="it snowed", based_on=1)).conflict == ()
    beside = await revise(agent, fact.id, text="it hailed", based_on=1)
    assert (beside.version, beside.text, beside.conflict) == (3, "it hailed", ("it snowed",))
    assert (await revise(agent, fact.id, text="it thundered", based_on=3)).conflict == ()
    with pytest.raises(InvalidInput):
        await revise(agent, fact.id, text="it dripped", based_on=5)


async def test_a_whitelist_lets_what_is_there_be_revised(agent: Agent, owner: asyncpg.Connection) -> None:
    agent = replace(agent, graph="people")
    await agent.create(NewEntity("Tom", "cat"))
    await owner.execute("UPDATE graphs SET kind_whitelist = '{person}' WHERE tenant_id = $1", agent.caller.tenant_id)
    await revise(agent, "Tom", importance=9)
    assert (await agent.open("Tom")).entities[0].importance == 9


async def test_two_revisions_at_once_are_both_in_history(agent: Agent) -> None:
    (fact,) = await agent.remember("it rained")
    texts = [f"it rained {n} times" for n in range(8)]
    revised = await asyncio.gather(*(revise(agent, fact.id, text=text) for text in texts))
    assert sorted(one.version or 0 for one in revised) == list(range(2, 10))
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        versions = await lineages.history(tx, await graphs.get_graph(tx, "default"), fact.id)
    assert {version.content for version in versions} == {"it rained", *texts}


async def test_what_is_outdated_is_found_when_asked_for(agent: Agent) -> None:
    (fact,) = await agent.remember("it rained")
    (said,) = await agent.remember(NewMemory("likes rain", about=("Ada",)))
    assert set(await forget(agent, fact.id, said.id, "nobody", uuid4(), reason="long ago")) == {fact.id, said.id}
    assert await agent.recalled("rain") == []
    assert set(await agent.recalled("rain", include_outdated=True)) == {"it rained", "likes rain"}
    head = await agent.head()
    assert set(await forget(agent, fact.id, said.id, reason="long ago")) == {fact.id, said.id}
    assert await agent.head() == head
    await revise(agent, fact.id, status="active")
    assert await agent.recalled("rain") == ["it rained"]


async def test_what_is_deleted_leaves_with_all_that_belongs_to_it(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("likes rain",)), "Grace")
    await agent.relate(("Ada", "Babbage", "knows"), ("Grace", "Ada", "read"), ("Grace", "Hopper", "is"))
    (fact,) = await agent.remember("it rained")
    assert len(await forget(agent, "Ada", fact.id, "Hopper", delete=True)) == 3
    assert (names(await agent.read()), triples(await agent.read())) == (["Grace"], [])
    assert await agent.recalled("rain", include_outdated=True) == []
    head = await agent.head()
    assert (head.entities, head.facts, head.placeholders, head.observations, head.relations) == (1, 0, 0, 0, 0)


async def test_a_name_is_found_again_when_its_last_statement_is_forgotten(agent: Agent) -> None:
    (said,) = await agent.remember(NewMemory("likes tea", about=("Ada",)))
    await forget(agent, said.id)
    assert await agent.recalled("Ada") == ["Ada"]


async def test_a_placeholder_is_not_outdated(agent: Agent) -> None:
    await agent.relate(("Ada", "Babbage", "knows"))
    assert await forget(agent, "Babbage") == []
    with pytest.raises(NotFound):
        await revise(agent, "Babbage", importance=1)


async def test_nobody_revises_or_forgets_another_tenants(agent: Agent, new_tenant: NewTenant) -> None:
    (fact,) = await agent.remember("it rained")
    (said,) = await agent.remember(NewMemory("likes tea", about=("Ada",)))
    async with at_work(agent.db, operator_caller(await new_tenant())) as stranger:
        for other in (stranger, replace(agent, graph="elsewhere")):
            await other.create("Grace")
            assert await forget(other, fact.id, said.id, "Ada", delete=True) == []
            for target in (fact.id, said.id, "Ada"):
                with pytest.raises(NotFound):
                    await revise(other, target, text="it snowed")
    assert sorted(await agent.recalled("rained tea")) == ["it rained", "likes tea"]
