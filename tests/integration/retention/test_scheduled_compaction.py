"""Graphs of which something is beyond the retention are compacted by the worker, without anybody asking."""

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import msgspec
import pytest

from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import TenantPatch
from recollect.curation.labels import service as labels
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.jobs.kinds import COMPACT_GRAPH
from recollect.jobs.model import Job
from recollect.platform.db import Database
from recollect.platform.sql import Queries, Query
from recollect.retention.compaction import service as compaction
from recollect.retention.compaction.model import CompactionCheck
from recollect.settings import Settings
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import runner
from recollect_workers.jobs.compaction import schedule
from recollect_workers.schedule import scheduled_jobs
from tests.support.bounds import lower
from tests.support.jobs import Desk, employed
from tests.support.memories import Agent, names
from tests.support.plans import AS_JSON, explained, looked_at

DAYS = 30.0


@pytest.fixture(autouse=True)
async def nobody_elses(owner: asyncpg.Connection) -> None:
    """A sweep looks at every tenant's graphs: those of other tests have had their turn."""
    await owner.execute("UPDATE graphs SET compaction_check_at = now() + interval '1 day'")


async def age(owner: asyncpg.Connection, agent: Agent, days: int = 31) -> None:
    """Let all that the tenant wrote be so many days old, and let its graphs have their turn."""
    tenant_id, past = agent.caller.tenant_id, timedelta(days=days)
    await owner.execute("UPDATE changes SET at = at - $2::interval WHERE tenant_id = $1", tenant_id, past)
    await owner.execute("UPDATE graph_heads SET at = at - $2::interval WHERE tenant_id = $1", tenant_id, past)
    await owner.execute(
        "UPDATE graph_indexes SET others_since = others_since - $2::interval WHERE tenant_id = $1", tenant_id, past
    )
    await come_round(owner, agent)


async def come_round(owner: asyncpg.Connection, agent: Agent) -> None:
    """Let a day pass: the tenant's graphs are looked at again."""
    await owner.execute(
        "UPDATE graphs SET compaction_check_at = now() - interval '1 second' WHERE tenant_id = $1",
        agent.caller.tenant_id,
    )


async def check(agent: Agent, **bounds: Any) -> CompactionCheck:
    async with agent.db.transaction(agent.caller) as tx:
        return await compaction.check_graphs(tx, retention_days=DAYS, **bounds)


async def jobs_of(agent: Agent) -> list[Job]:
    return await Desk(agent.db, agent.caller).list()


async def gone(owner: asyncpg.Connection, agent: Agent) -> int:
    """How many lineages the tenant still has that were deleted."""
    query = "SELECT count(*) FROM nodes WHERE tenant_id = $1 AND removed_revision IS NOT NULL"
    return int(await owner.fetchval(query, agent.caller.tenant_id))


async def write_and_delete(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("likes tea",)), NewEntity("Grace", "person", ("likes coffee",)))
    await agent.delete("Ada")


async def test_what_is_over_goes_without_anybody_asking(
    context: WorkerContext, agent: Agent, owner: asyncpg.Connection
) -> None:
    await write_and_delete(agent)
    await age(owner, agent)
    await schedule(context)
    assert context.jobs_due.is_set()
    await runner.sweep(context)
    (job,) = await jobs_of(agent)
    assert (job.kind, job.status, job.created_by) == (COMPACT_GRAPH, "succeeded", "worker")
    assert (job.result or {})["nodes"] == 1
    assert await gone(owner, agent) == 0
    assert names(await agent.read()) == ["Grace"]
    await schedule(context)
    await come_round(owner, agent)
    await schedule(context)
    assert len(await jobs_of(agent)) == 1, "all of it has gone"


async def test_it_is_done_regularly(context: WorkerContext) -> None:
    assert schedule in [regular.job for regular in scheduled_jobs(context)]


@pytest.mark.parametrize("written", [False, True])
async def test_where_nothing_is_over_no_job_is_started(
    context: WorkerContext, agent: Agent, owner: asyncpg.Connection, written: bool
) -> None:
    if written:
        await agent.create("Ada", "Grace")
        await age(owner, agent)
        await agent.observe("Ada", "likes tea")
        await agent.delete("Grace")  # A moment ago.
    await come_round(owner, agent)
    await schedule(context)
    assert await jobs_of(agent) == []
    assert await waiting(owner, agent) == 0


async def waiting(owner: asyncpg.Connection, agent: Agent) -> int:
    """Graphs of the tenant that wait to be looked at."""
    query = "SELECT count(*) FROM graphs WHERE tenant_id = $1 AND compaction_check_at <= now()"
    return int(await owner.fetchval(query, agent.caller.tenant_id))


async def observation(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("likes tea",)))
    await agent.unobserve(("Ada", "likes tea"))


async def relation(agent: Agent) -> None:
    await agent.create("Ada", "Grace")
    await agent.relate(("Ada", "Grace", "knows"))
    await agent.unrelate(("Ada", "Grace", "knows"))


async def version(agent: Agent) -> None:
    await agent.create("Ada")
    async with agent.writing() as (tx, revision):
        await labels.set_importance(tx, revision, {"Ada": 5})


@pytest.mark.parametrize("write", [observation, relation, version])
async def test_whatever_is_over_is_seen(agent: Agent, owner: asyncpg.Connection, write: Any) -> None:
    await write(agent)
    await age(owner, agent, days=29)
    assert (await check(agent)).started == 0
    await age(owner, agent, days=2)
    assert (await check(agent)).started == 1


async def test_a_state_that_is_kept_is_not_looked_at_for_ever(
    context: WorkerContext, agent: Agent, owner: asyncpg.Connection
) -> None:
    """What lives at the horizon stays, superseded or not."""
    await version(agent)
    await agent.create("Grace")
    await agent.merge(["Ada", "Grace"])
    await age(owner, agent)
    assert (await check(agent)).started == 1
    await runner.sweep(context)
    await come_round(owner, agent)
    assert (await check(agent)).started == 0


async def test_of_two_workers_sweeps_one_starts_a_job(
    context: WorkerContext, agent: Agent, owner: asyncpg.Connection
) -> None:
    await write_and_delete(agent)
    await age(owner, agent)
    await asyncio.gather(*(schedule(context) for _ in range(4)))
    assert len(await jobs_of(agent)) == 1
    await come_round(owner, agent)
    await asyncio.gather(*(schedule(context) for _ in range(4)))
    assert len(await jobs_of(agent)) == 1, "that one is under way"


async def test_a_graph_that_another_worker_looks_at_is_left_to_it(agent: Agent, owner: asyncpg.Connection) -> None:
    await write_and_delete(agent)
    await age(owner, agent)
    async with agent.db.transaction(agent.caller) as tx:
        assert (await compaction.check_graphs(tx, retention_days=DAYS)).started == 1
        assert await check(agent) == CompactionCheck(0, more=False)


async def test_another_tenants_graph_is_untouched(
    context: WorkerContext, agent: Agent, other: Agent, owner: asyncpg.Connection
) -> None:
    for one in (agent, other):
        await write_and_delete(one)
    await age(owner, agent)
    await come_round(owner, other)
    await schedule(context)
    await runner.sweep(context)
    assert (len(await jobs_of(agent)), await jobs_of(other)) == (1, [])
    assert (await gone(owner, agent), await gone(owner, other)) == (0, 1)
    await age(owner, other)
    assert (await check(agent)).started == 0
    assert await waiting(owner, other) == 1, "a tenant's transaction looks at its own graphs"


async def test_a_suspended_tenants_graphs_wait(context: WorkerContext, agent: Agent, owner: asyncpg.Connection) -> None:
    await write_and_delete(agent)
    await age(owner, agent)
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", agent.caller.tenant_id)
    await schedule(context)
    assert (await jobs_of(agent), await waiting(owner, agent)) == ([], 1)


async def test_it_can_be_switched_off(
    settings: Settings, db: Database, agent: Agent, owner: asyncpg.Connection
) -> None:
    await write_and_delete(agent)
    await age(owner, agent)
    off = settings.model_copy(update={"compaction_enabled": False})
    async with employed(off, db) as context:
        await schedule(context)
    assert (await jobs_of(agent), await waiting(owner, agent)) == ([], 1)


async def test_many_graphs_are_looked_at_a_few_at_a_time(
    context: WorkerContext, agent: Agent, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        graph = Agent(agent.db, agent.caller, f"graph-{number}")
        await write_and_delete(graph)
    await age(owner, agent)
    lower(monkeypatch, compaction.check_graphs, limit=2)
    assert (await check(agent, limit=2)).more
    assert await waiting(owner, agent) == 4, "of five, and the default graph"
    await schedule(context)
    assert {job.graph for job in await jobs_of(agent)} == {f"graph-{number}" for number in range(5)}


async def test_where_many_jobs_wait_others_wait_for_them(
    agent: Agent, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MAX_PENDING_FOR_SWEEPS", 1)
    for name in ("one", "two"):
        await write_and_delete(Agent(agent.db, agent.caller, name))
    await age(owner, agent)
    assert await check(agent) == CompactionCheck(1, more=False)
    assert await waiting(owner, agent) >= 1
    await owner.execute("DELETE FROM jobs")
    assert (await check(agent)).started == 1


async def test_a_look_reads_indexes_only(agent: Agent, owner: asyncpg.Connection) -> None:
    """However many live, or are gone, and whatever the planner knows: one row of each index a graph."""
    await write_and_delete(agent)
    await owner.execute("ANALYZE")
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph("crowd"))
    crowd = Agent(agent.db, agent.caller, "crowd")
    await crowd.create(*[NewEntity(f"e{number}", "x", (f"says {number}",)) for number in range(500)])
    await crowd.delete(*[f"e{number}" for number in range(100)])
    await age(owner, agent)
    queries = Queries("recollect.retention.compaction")
    query = explained(queries.list_to_check, AS_JSON)
    async with agent.db.transaction(agent.caller) as tx:
        await tx.execute(
            Query.compile("SET LOCAL enable_seqscan = off")
        )  # A table of a few rows is read from end to end, rightly.
        await tx.execute(queries.sort_by_indexes)
        told = await tx.fetchval(query, retention=timedelta(days=DAYS), limit=100)
    assert looked_at(msgspec.json.decode(told)[0]["Plan"]) <= 100


async def test_a_tenants_own_retention_goes_before_the_deployments(agent: Agent, owner: asyncpg.Connection) -> None:
    await write_and_delete(agent)
    await age(owner, agent, days=10)
    assert (await check(agent)).started == 0
    async with agent.db.transaction(agent.caller) as tx:
        await tenants.change_own_tenant(tx, TenantPatch(sets_retention=True, retention_days=7))
    await come_round(owner, agent)
    assert (await check(agent)).started == 1
    (job,) = await jobs_of(agent)
    assert job.arguments == {"retention_days": 7}


async def test_a_tenant_that_keeps_longer_keeps(agent: Agent, owner: asyncpg.Connection) -> None:
    await write_and_delete(agent)
    await age(owner, agent, days=40)
    async with agent.db.transaction(agent.caller) as tx:
        await tenants.change_own_tenant(tx, TenantPatch(sets_retention=True, retention_days=50))
    assert (await check(agent)).started == 0
    async with agent.db.transaction(agent.caller) as tx:
        await tenants.change_own_tenant(tx, TenantPatch(sets_retention=True, retention_days=None))
    await come_round(owner, agent)
    assert (await check(agent)).started == 1
