"""New facts are related to similar entities once they are embedded; pending links are in PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import store
from recollect.graph.lineages.model import Version
from recollect.graph.nodes.model import NewFact
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import MENTIONS_ENTITY
from recollect.memory import revising, writing
from recollect.memory.revising import NodePatch
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import Wakeups
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import linking
from tests.conftest import NewTenant
from tests.support.memories import Agent, at_work, embedder

TEXT = "the harbour crane was repaired in March"


@pytest.fixture
async def context(settings: Settings, db: Database) -> AsyncIterator[WorkerContext]:
    async with connect_redis(settings) as redis:
        wakeups = Wakeups(redis)
        yield WorkerContext(settings, db, embedder(), wakeups, asyncio.Event())
        await wakeups.aclose()


async def fact(agent: Agent, text: str = TEXT, threshold: float | None = None, *, auto_link: bool = True) -> Version:
    async with agent.writing() as (tx, revision):
        kept = await writing.create_fact(tx, revision, NewFact(text), auto_link=auto_link, threshold=threshold)
        return kept.node


async def create_entities(agent: Agent) -> None:
    """Entities, of which one has an observation that is similar to the fact."""
    await agent.create(
        NewEntity("Crane 4", "machine", ("the harbour crane was repaired in April", "is blue")),
        NewEntity("Bakery", "shop", ("sells rye bread",)),
    )


async def linked_entities(owner: asyncpg.Connection, fact_id: UUID) -> list[str]:
    """The names of the nodes to which a fact is related."""
    rows = await owner.fetch(
        "SELECT n.name FROM relations r JOIN nodes n ON n.id = r.to_node WHERE r.from_node = $1 AND r.type = $2 "
        "AND r.removed_revision IS NULL ORDER BY 1",
        fact_id,
        MENTIONS_ENTITY,
    )
    return [row["name"] for row in rows]


async def queued(owner: asyncpg.Connection, caller: Caller) -> int:
    return int(await owner.fetchval("SELECT count(*) FROM autolinks WHERE tenant_id = $1", caller.tenant_id))


@pytest.mark.proves("graph-contract: auto-link-by-likeness")
async def test_a_fact_is_related_to_a_similar_entity_once_after_it_is_embedded(
    agent: Agent, context: WorkerContext, owner: asyncpg.Connection
) -> None:
    await create_entities(agent)
    made = await fact(agent)
    await linking.sweep(context)
    assert (await linked_entities(owner, made.node_id), await queued(owner, agent.caller)) == ([], 1)
    await agent.embed()
    await linking.sweep(context)
    assert (await linked_entities(owner, made.node_id), await queued(owner, agent.caller)) == (["Crane 4"], 0)
    head = await agent.head()
    await fact(agent)
    await linking.sweep(context)
    assert await linked_entities(owner, made.node_id) == ["Crane 4"]
    assert (await agent.head()).relations == head.relations


async def test_the_change_is_by_the_worker(agent: Agent, context: WorkerContext, owner: asyncpg.Connection) -> None:
    await create_entities(agent)
    await fact(agent)
    await agent.embed()
    await linking.sweep(context)
    row = await owner.fetchrow(
        "SELECT operation, actor FROM changes WHERE tenant_id = $1 ORDER BY revision DESC LIMIT 1",
        agent.caller.tenant_id,
    )
    assert row is not None
    assert dict(row) == {"operation": "auto_link", "actor": "worker"}


async def test_an_entity_created_later_is_linked_only_when_the_fact_is_created_again(
    agent: Agent, context: WorkerContext, owner: asyncpg.Connection
) -> None:
    """Then, relations that were deleted by hand are made again, too, as docs/embedding.md says."""
    await agent.create("Crane 4")
    made = await fact(agent, "Crane 4 stands beside Crane 5")
    await agent.embed()
    await linking.sweep(context)
    async with agent.writing() as (tx, revision):
        taken = await owner.fetch("SELECT id FROM relations WHERE from_node = $1", made.node_id)
        assert await relations.delete_edges(tx, revision, [row["id"] for row in taken]) == 1
    await agent.create("Crane 5")
    await agent.embed()
    await linking.sweep(context)
    assert await linked_entities(owner, made.node_id) == []
    assert (await fact(agent, "Crane 4 stands beside Crane 5")).node_id == made.node_id
    assert await linked_entities(owner, made.node_id) == ["Crane 4", "Crane 5"]


@pytest.mark.proves("graph-contract: auto-link-by-likeness")
@pytest.mark.parametrize(("threshold", "named"), [(0.0, ["Bakery", "Crane 4"]), (1.0, []), (None, ["Crane 4"])])
async def test_a_fact_is_related_to_entities_from_its_threshold(
    agent: Agent, context: WorkerContext, owner: asyncpg.Connection, threshold: float | None, named: list[str]
) -> None:
    await create_entities(agent)
    made = await fact(agent, threshold=threshold)
    await agent.embed()
    await linking.sweep(context)
    assert await linked_entities(owner, made.node_id) == named


async def test_no_link_is_made_without_auto_link(
    agent: Agent, context: WorkerContext, owner: asyncpg.Connection
) -> None:
    await create_entities(agent)
    made = await fact(agent, auto_link=False)
    assert await queued(owner, agent.caller) == 0
    await agent.embed()
    await linking.sweep(context)
    assert await linked_entities(owner, made.node_id) == []


@pytest.mark.parametrize("status", ["outdated", "archived"])
async def test_an_outdated_or_archived_fact_is_not_linked(
    agent: Agent, context: WorkerContext, owner: asyncpg.Connection, status: str
) -> None:
    await create_entities(agent)
    made = await fact(agent)
    async with agent.writing() as (tx, revision):
        await revising.change(tx, revision, made.node_id, NodePatch(status=status))
    await agent.embed()
    await linking.sweep(context)
    assert (await linked_entities(owner, made.node_id), await queued(owner, agent.caller)) == ([], 0)


async def test_a_deleted_fact_is_not_linked(agent: Agent, context: WorkerContext, owner: asyncpg.Connection) -> None:
    await create_entities(agent)
    made = await fact(agent)
    async with agent.writing() as (tx, revision):
        await revising.delete(tx, revision, made.node_id)
    await agent.embed()
    await linking.sweep(context)
    assert (await linked_entities(owner, made.node_id), await queued(owner, agent.caller)) == ([], 0)


async def test_many_facts_are_linked_and_a_failed_batch_is_repeated(
    agent: Agent, context: WorkerContext, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create_entities(agent)
    made = [await fact(agent, f"{TEXT}, the {number}th time", threshold=0.4) for number in range(45)]
    await agent.embed()
    recorded = store.record_revision

    async def fails(*_: object) -> None:
        raise RuntimeError("the power went")

    monkeypatch.setattr(store, "record_revision", fails)
    await linking.sweep(context)
    assert await queued(owner, agent.caller) == 45
    monkeypatch.setattr(store, "record_revision", recorded)
    await asyncio.gather(*[linking.sweep(context) for _ in range(2)])
    assert await queued(owner, agent.caller) == 0
    assert [await linked_entities(owner, one.node_id) for one in made] == [["Crane 4"]] * 45


async def test_facts_are_linked_to_entities_of_their_own_tenant(
    db: Database, context: WorkerContext, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    callers = [operator_caller(await new_tenant()) for _ in range(2)]
    async with at_work(db, callers[0]) as mine, at_work(db, callers[1]) as theirs:
        made = []
        for agent, name in ((mine, "mine"), (theirs, "theirs")):
            await agent.create(NewEntity(name, "machine", (TEXT,)))
            made.append(await fact(agent, threshold=0.0))
            await agent.embed()
        await linking.sweep(context)
        assert [await linked_entities(owner, one.node_id) for one in made] == [["mine"], ["theirs"]]
