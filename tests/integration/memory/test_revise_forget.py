"""Revised and forgotten memories: every reader sees the change, and history keeps the old state."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange
from recollect.errors import ErrorCode, InvalidInput, NotFound, TooLarge
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.graph.lineages import service as lineages
from recollect.graph.nodes import service as nodes
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation
from recollect.memory import revising
from recollect.memory.model import MemoryPatch, MemoryRef, NewMemory, RememberOutcome, Revised
from recollect.postgres.database import Database
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
        forgotten = await revising.forget(tx, revision, [_target(t) for t in targets], reason=reason, delete=delete)
    return forgotten.ids


def _target(target: UUID | str) -> MemoryRef:
    return MemoryRef(name=target) if isinstance(target, str) else MemoryRef(id=target)


async def test_a_revision_replaces_an_observation(agent: Agent) -> None:
    (said,) = await agent.remember(NewMemory("likes tea", about=("Ada",), thread="monday"))
    revised = await revise(agent, said.id, text="likes coffee")
    assert (revised.node_id, revised.text, revised.version) == (said.node_id, "likes coffee", 2)
    assert revised.id == said.id
    assert (await agent.open("Ada")).entities[0].observations == ("likes coffee",)
    assert await agent.recalled("tea") == []
    assert await agent.recalled("coffee") == ["likes coffee"]
    assert (await revise(agent, said.id, text="likes milk")).id == said.id


async def test_a_revision_to_the_same_text_writes_nothing(agent: Agent) -> None:
    (said,) = await agent.remember(NewMemory("likes tea", about=("Ada",)))
    head = await agent.head()
    assert (await revise(agent, said.id, text="likes tea")).id == said.id
    assert await agent.head() == head


async def test_a_revision_to_the_text_of_another_observation_returns_that_one(agent: Agent) -> None:
    tea, coffee = await agent.remember(
        NewMemory("likes tea", about=("Ada",)), NewMemory("likes coffee", about=("Ada",))
    )
    assert (await revise(agent, tea.id, text="likes coffee")).id == coffee.id
    assert (await agent.open("Ada")).entities[0].observations == ("likes coffee",)


@pytest.mark.parametrize(
    ("coffee", "tea", "amended", "left"),
    [
        (None, 1.0, None, None),
        (1.0, None, None, None),
        (1.0, 2.0, None, 2.0),
        (2.0, 1.0, None, 2.0),
        (None, 1.0, 0, None),
        (1.0, 2.0, 0, None),
        (1.0, None, 3.0, 3.0),
        (None, 2.0, 0.5, 0.5),
        (2.0, 3.0, 1.0, 1.0),
    ],
)
async def test_merged_observations_expire_at_the_requested_or_else_at_the_later_time(
    agent: Agent, coffee: float | None, tea: float | None, amended: float | None, left: float | None
) -> None:
    said = [
        NewMemory(f"likes {what}", about=("Ada",), ttl_days=days) for what, days in (("coffee", coffee), ("tea", tea))
    ]
    first, second = await agent.remember(*said)
    remembered = (await agent.head()).at
    assert (await revise(agent, first.id, text="likes tea", ttl_days=amended)).id == second.id
    since = (await agent.head()).at if amended is not None else remembered
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        (one,) = await observations.list_observations(tx, [second.node_id])
    assert (one.content, one.expires_at) == ("likes tea", left and since + timedelta(days=left))


async def test_an_observation_cannot_be_archived(agent: Agent) -> None:
    (said,) = await agent.remember(NewMemory("likes tea", about=("Ada",)))
    with pytest.raises(InvalidInput, match="statement about an entity"):
        await revise(agent, said.id, status="archived")


async def test_each_revision_of_a_fact_makes_a_version(agent: Agent) -> None:
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


async def test_an_entity_may_have_its_own_text(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person"))
    await revise(agent, "Ada", text="wrote the first program")
    assert await agent.recalled("program") == ["wrote the first program"]
    assert names(await agent.read()) == ["Ada"]


async def test_a_conflict_returns_both_texts(agent: Agent) -> None:
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


async def test_an_existing_node_of_a_disallowed_kind_can_be_revised(agent: Agent, owner: asyncpg.Connection) -> None:
    agent = replace(agent, graph="people")
    await agent.create(NewEntity("Tom", "cat"))
    await owner.execute("UPDATE graphs SET kind_whitelist = '{person}' WHERE tenant_id = $1", agent.caller.tenant_id)
    await revise(agent, "Tom", importance=9)
    assert (await agent.open("Tom")).entities[0].importance == 9


async def test_two_concurrent_revisions_are_both_in_history(agent: Agent) -> None:
    (fact,) = await agent.remember("it rained")
    texts = [f"it rained {n} times" for n in range(8)]
    revised = await asyncio.gather(*(revise(agent, fact.id, text=text) for text in texts))
    assert sorted(one.version or 0 for one in revised) == list(range(2, 10))
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        versions = await lineages.history(tx, await graphs.get_graph(tx, "default"), fact.id)
    assert {version.content for version in versions} == {"it rained", *texts}


async def test_outdated_memories_are_found_on_request(agent: Agent) -> None:
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


async def test_a_deleted_entity_goes_with_its_observations_and_relations(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("likes rain",)), "Grace")
    await agent.relate(("Ada", "Babbage", "knows"), ("Grace", "Ada", "read"), ("Grace", "Hopper", "is"))
    (fact,) = await agent.remember("it rained")
    assert len(await forget(agent, "Ada", fact.id, "Hopper", delete=True)) == 3
    assert (names(await agent.read()), triples(await agent.read())) == (["Grace"], [])
    assert await agent.recalled("rain", include_outdated=True) == []
    head = await agent.head()
    assert (head.entities, head.facts, head.placeholders, head.observations, head.relations) == (1, 0, 0, 0, 0)


async def test_an_entity_is_found_by_name_once_its_last_observation_is_forgotten(agent: Agent) -> None:
    (said,) = await agent.remember(NewMemory("likes tea", about=("Ada",)))
    await forget(agent, said.id)
    assert await agent.recalled("Ada") == ["Ada"]


@pytest.mark.parametrize("status", ["outdated", "archived"])
async def test_remembering_about_an_inactive_entity_revives_it_without_its_old_observations(
    agent: Agent, status: str
) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes programs",), content="tunes the engine"))
    await agent.create(NewEntity("Bea", "person", ("grows roses",)))
    await agent.let_go("Ada", status)
    await agent.let_go("Bea", status)
    before = await agent.read()
    wanted = [NewMemory(text, about=("Ada",)) for text in ("likes green tea", "writes programs")]
    assert [memory.outcome for memory in await agent.remember(*wanted)] == [RememberOutcome.NEW] * 2
    ada, bea = (await agent.read()).entities
    assert (ada.status, ada.content, ada.observations) == ("active", None, ("likes green tea", "writes programs"))
    assert bea == before.entities[1]
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        (node,) = (await nodes.require_entity_heads(tx, await graphs.get_graph(tx, "default"), ["Ada"])).values()
        said = {(o.content, o.status, o.reason) for o in await observations.list_observations(tx, [ada.id])}
    assert (node.status, node.reason) == ("active", None)
    assert said == {
        ("likes green tea", "active", None),
        ("writes programs", "active", None),
        ("writes programs", "outdated", "was wrong"),
        ("tunes the engine", "outdated", "was wrong"),
    }
    assert await agent.recalled("green tea") == ["likes green tea"]
    assert "tunes the engine" not in await agent.recalled("tunes the engine", "Ada")
    assert "tunes the engine" in await agent.recalled("tunes the engine", include_outdated=True)
    async with agent.db.transaction(agent.caller) as tx:
        since = ChangeRange((await agent.head()).revision - 1)
        assert (await undoing.undo_changes(tx, None, "undo", since, dry_run=False)).skipped == []
    after = await agent.read()
    assert [(e.id, e.status, e.content, e.observations) for e in after.entities] == [
        (e.id, e.status, e.content, e.observations) for e in before.entities
    ]
    assert await agent.recalled("green tea") == []


async def test_an_inactive_entity_with_too_many_observations_is_not_revived(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observations, "MAX_BROUGHT_BACK", 2)
    await agent.create(NewEntity("Ada", "person", ("writes", "reads", "counts")))
    await agent.let_go("Ada")
    with pytest.raises(TooLarge, match="Make such an entity active first") as refused:
        await agent.remember(NewMemory("likes tea", about=("Ada",)))
    assert refused.value.code == ErrorCode.REQUEST_TOO_LARGE
    (ada,) = (await agent.read()).entities
    assert (ada.status, ada.observations) == ("outdated", ("writes", "reads", "counts"))
    async with agent.writing() as (tx, revision):
        await revising.revise(tx, revision, MemoryRef(id=ada.id), MemoryPatch(status="active"))
    await agent.remember(NewMemory("likes tea", about=("Ada",)))
    assert await agent.recalled("tea") == ["likes tea"]


async def test_an_inactive_entity_stays_inactive_if_nothing_is_added_to_it(agent: Agent) -> None:
    await agent.create("Ada", "Bea")
    await agent.let_go("Ada")
    async with agent.writing() as (tx, revision):
        wanted = [NewObservation("Bea", "grows roses")]
        await observations.add_observations(tx, revision, wanted, named=["Ada", "Bea"])
    assert [entity.status for entity in (await agent.read()).entities] == ["outdated", "active"]


async def test_a_placeholder_cannot_be_outdated_or_revised(agent: Agent) -> None:
    await agent.relate(("Ada", "Babbage", "knows"))
    assert await forget(agent, "Babbage") == []
    with pytest.raises(NotFound):
        await revise(agent, "Babbage", importance=1)


async def test_another_tenants_memories_cannot_be_revised_or_forgotten(agent: Agent, new_tenant: NewTenant) -> None:
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
