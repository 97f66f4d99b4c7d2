"""A reindex rebuilds the passages of a few nodes at a time, and of a large one in parts."""

from uuid import UUID

import asyncpg

from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.nodes import indexing
from recollect.memory.model import NewMemory
from tests.support.memories import Agent

PASSAGES = """
    SELECT memory_id, source, text FROM passages WHERE tenant_id = $1 AND removed_revision IS NULL
    ORDER BY memory_id, source, text"""


async def reindexed(agent: Agent, *, limit: int, max_observations: int) -> list[int]:
    """Rebuild all passages; return how many nodes each step had."""
    steps: list[int] = []
    after, more = UUID(int=0), True
    while more:
        async with agent.db.transaction(agent.caller) as tx:
            revision = await graphs.lock_graph_by_id(tx, (await graphs.view(tx, None)).graph.id)
            page, more = await indexing.reindex_page(
                tx, revision, after=after, limit=limit, max_observations=max_observations
            )
            steps.append(len(page))
            after = page[-1] if page else after
    return steps


async def test_the_observations_of_a_step_are_bounded(agent: Agent) -> None:
    large = NewEntity("large", "thing", tuple(f"part {n}" for n in range(130)))
    await agent.create("bare", large, *(NewEntity(f"small {n}", "thing", ("one", "two")) for n in range(4)))
    assert await reindexed(agent, limit=10, max_observations=6) == [1, 1, 3, 1]
    assert await reindexed(agent, limit=2, max_observations=1_000) == [2, 2, 2, 0]


async def test_a_reindex_makes_the_same_passages(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.create("bare", NewEntity("large", "thing", tuple(f"part {n}" for n in range(130))))
    await agent.remember("It rained", NewMemory("Bees make honey", about=("bees",)))
    await agent.unobserve(("large", "part 7"))
    before = await owner.fetch(PASSAGES, agent.caller.tenant_id)
    # What no memory has any more: a name that an entity with observations does not need, and a removed observation.
    stale = """
        INSERT INTO passages (tenant_id, graph_id, id, node_id, memory_id, source, place, sequence, text, tsv, dated,
            created_by, added_revision)
        SELECT tenant_id, graph_id, gen_random_uuid(), id, gen_random_uuid(), 'observation', 0, id, 'stale', '', false,
            'test', 1
        FROM nodes WHERE tenant_id = $1 AND name = 'large'"""
    assert await owner.execute(stale, agent.caller.tenant_id) == "INSERT 0 1"
    await reindexed(agent, limit=10, max_observations=1_000)
    assert await owner.fetch(PASSAGES, agent.caller.tenant_id) == before
