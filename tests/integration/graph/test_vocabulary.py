"""The kinds and tags of a graph: those of its nodes, and those that observations have themselves."""

from datetime import UTC, datetime
from uuid import UUID

import asyncpg
import pytest

from recollect.graph.graphs import service as graphs
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import KindUse, SchemaDescription, TagPrefixUse, TagUse
from recollect.memory import revising
from recollect.memory.model import MemoryPatch, MemoryRef, NewMemory
from tests.support.memories import Agent


async def described(agent: Agent, as_of: str | None = None) -> SchemaDescription:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return await lineages.describe_schema(await graphs.view(tx, agent.graph, as_of))


async def tags(agent: Agent, as_of: str | None = None) -> dict[str, tuple[int, int]]:
    """How many nodes and observations have each tag."""
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        found, _ = await lineages.list_tags(await graphs.view(tx, agent.graph, as_of))
    return {use.tag: (use.count, use.observations) for use in found}


async def revise(agent: Agent, memory_id: UUID, patch: MemoryPatch) -> None:
    async with agent.writing() as (tx, revision):
        await revising.revise(tx, revision, MemoryRef(memory_id), patch)


@pytest.mark.proves("memgraph: describe-schema")
async def test_vocabulary_lists_node_types_and_observation_tags(agent: Agent) -> None:
    await agent.remember(
        NewMemory("bees make honey", kind="note", tags=("Topic:Bees", "food")),
        NewMemory("likes tea", about=("Ada",), kind="taste", tags=("food", "topic:tea")),
        NewMemory("likes milk", about=("Ada",), kind="taste", tags=("FOOD",)),
        NewMemory("sings", about=("Ada",)),
    )
    found = await described(agent)
    assert found.node_count == 2
    assert found.kinds == (
        KindUse("taste", 1, 2, ("Ada", "likes milk", "likes tea")),
        KindUse("note", 1, 0, ("bees make honey",)),
    )
    assert found.tag_prefixes == (TagPrefixUse("Topic", 1, 1, ("Bees", "tea")),)
    assert found.tags == (TagUse("food", 1, 2), TagUse("Topic:Bees", 1, 0), TagUse("topic:tea", 0, 1))
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        page = await lineages.list_tags(await graphs.view(tx, None), "TOPIC:", limit=1)
    assert page == ([TagUse("Topic:Bees", 1, 0)], True)


async def test_those_of_observations_follow_their_history(agent: Agent) -> None:
    (tea,) = await agent.remember(NewMemory("likes tea", about=("Ada",), kind="taste", tags=("old",)))
    then = str((await agent.head()).revision)
    await revise(agent, tea.id, MemoryPatch(tags=("new",)))
    assert (await tags(agent), await tags(agent, then)) == ({"new": (0, 1)}, {"old": (0, 1)})
    await revise(agent, tea.id, MemoryPatch(status="outdated"))
    assert await tags(agent) == {"new": (0, 1)}  # As those of an outdated node.
    later = str((await agent.head()).revision)
    await agent.unobserve(("Ada", "likes tea"))
    assert (await tags(agent), await tags(agent, later)) == ({}, {"new": (0, 1)})
    assert [(use.kind, use.observations) for use in (await described(agent, later)).kinds] == [("taste", 1)]


@pytest.mark.parametrize("expired", ["nodes", "observations"])
async def test_what_has_expired_is_not_counted(agent: Agent, owner: asyncpg.Connection, expired: str) -> None:
    """Neither an observation that has expired itself, nor one of an entity that has."""
    await agent.remember(NewMemory("likes tea", about=("Ada",), tags=("food",)))
    before = datetime.now(UTC)
    await owner.execute(
        f"UPDATE {expired} SET expires_at = clock_timestamp() WHERE tenant_id = $1",
        agent.caller.tenant_id,
    )
    if expired == "nodes":
        await owner.execute(
            "UPDATE node_versions SET expires_at = clock_timestamp() WHERE tenant_id = $1", agent.caller.tenant_id
        )
    assert await tags(agent) == {}
    assert await tags(agent, before.isoformat()) == {"food": (0, 1)}
