"""The worker compacts graphs with something beyond the retention, without being asked."""

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
from recollect.postgres.database import Database
from recollect.postgres.sql import Queries, Query
from recollect.retention.compaction import service as compaction
from recollect.retention.compaction.model import CompactionCheck
from recollect.settings import Settings
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from recollect_workers.jobs.compaction import schedule
from recollect_workers.schedule import scheduled_jobs
from tests.support.bounds import lower
from tests.support.clocks import clock_ahead
from tests.support.jobs import Desk, employed
from tests.support.memories import Agent, names
from tests.support.plans import AS_JSON, explained, looked_at

DAYS = 30.0


@pytest.fixture(autouse=True)
async def no_other_graphs_due(owner: asyncpg.Connection) -> None:
    """A sweep looks at every tenant's graphs. Those of other tests are not due."""
    await owner.execute("UPDATE graphs SET compaction_check_at = now() + interval '1 day'")


async def age(owner: asyncpg.Connection, agent: Agent, days: int = 31) -> None:
    """Let everything that the tenant wrote be so many days old, and let its graphs be due for a check."""
    tenant_id, past = agent.caller.tenant_id, timedelta(days=days)
    await owner.execute("UPDATE changes SET at = at - $2::interval WHERE tenant_id = $1", tenant_id, past)
    await owner.execute("UPDATE graph_heads SET at = at - $2::interval WHERE tenant_id = $1", tenant_id, past)
    await owner.execute(
        "UPDATE graph_indexes SET others_since = others_since - $2::interval WHERE tenant_id = $1", tenant_id, past
    )
    await make_due(owner, agent)


async def make_due(owner: asyncpg.Connection, agent: Agent) -> None:
    """Let a day pass, so that the tenant's graphs are due for a check again."""
    await owner.execute(
        "UPDATE graphs SET compaction_check_at = now() - interval '1 second' WHERE tenant_id = $1",
        agent.caller.tenant_id,
    )


async def check(agent: Agent, **bounds: Any) -> CompactionCheck:
    async with agent.db.transaction(agent.caller) as tx:
        return await compaction.check_graphs(tx, retention_days=DAYS, **bounds)


async def jobs_of(agent: Agent) -> list[Job]:
    return await Desk(agent.db, agent.caller).list()


async def deleted_lineages(owner: asyncpg.Connection, agent: Agent) -> int:
    """The number of the tenant's deleted lineages that are still stored."""
    query = "SELECT count(*) FROM nodes WHERE tenant_id = $1 AND removed_revision IS NOT NULL"
    return int(await owner.fetchval(query, agent.caller.tenant_id))


async def write_and_delete(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("likes tea",)), NewEntity("Grace", "person", ("likes coffee",)))
    await agent.delete("Ada")


async def test_a_due_graph_is_compacted_without_being_asked(
    context: WorkerContext, agent: Agent, owner: asyncpg.Connection
) -> None:
    await write_and_delete(agent)
    await age(owner, agent)
    await schedule(context)
    assert context.jobs_due.is_set()
    await job_loop.sweep(context)
    (job,) = await jobs_of(agent)
    assert (job.kind, job.status, job.created_by) == (COMPACT_GRAPH, "succeeded", "worker")
    assert (job.result or {})["nodes"] == 1
    assert await deleted_lineages(owner, agent) == 0
    assert names(await agent.read()) == ["Grace"]
    await schedule(context)
    await make_due(owner, agent)
    await schedule(context)
    assert len(await jobs_of(agent)) == 1, "all of it has gone"


async def test_a_worker_whose_clock_is_ahead_removes_no_more(
    context: WorkerContext, agent: Agent, owner: asyncpg.Connection
) -> None:
    await write_and_delete(agent)
    await age(owner, agent)
    await agent.delete("Grace")  # A moment ago.
    await schedule(context)
    with clock_ahead(timedelta(days=100)):
        await job_loop.sweep(context)
    (job,) = await jobs_of(agent)
    assert (job.status, (job.result or {})["nodes"]) == ("succeeded", 1)
    assert await deleted_lineages(owner, agent) == 1


async def test_graphs_are_checked_regularly(context: WorkerContext) -> None:
    assert schedule in [regular.job for regular in scheduled_jobs(context)]


@pytest.mark.parametrize("written", [False, True])
async def test_no_job_is_started_if_nothing_is_beyond_the_retention(
    context: WorkerContext, agent: Agent, owner: asyncpg.Connection, written: bool
) -> None:
    if written:
        await agent.create("Ada", "Grace")
        await age(owner, agent)
        await agent.observe("Ada", "likes tea")
        await agent.delete("Grace")  # A moment ago.
    await make_due(owner, agent)
    await schedule(context)
    assert await jobs_of(agent) == []
    assert await due_graphs(owner, agent) == 0


async def due_graphs(owner: asyncpg.Connection, agent: Agent) -> int:
    """The number of the tenant's graphs that are due for a check."""
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
async def test_any_kind_of_old_data_starts_a_compaction(agent: Agent, owner: asyncpg.Connection, write: Any) -> None:
    await write(agent)
    await age(owner, agent, days=29)
    assert (await check(agent)).started == 0
    await age(owner, agent, days=2)
    assert (await check(agent)).started == 1


async def test_a_state_that_must_be_kept_does_not_start_compactions_for_ever(
    context: WorkerContext, agent: Agent, owner: asyncpg.Connection
) -> None:
    """The state at the horizon is kept, even if it was superseded since."""
    await version(agent)
    await agent.create("Grace")
    await agent.merge(["Ada", "Grace"])
    await age(owner, agent)
    assert (await check(agent)).started == 1
    await job_loop.sweep(context)
    await make_due(owner, agent)
    assert (await check(agent)).started == 0


async def test_concurrent_sweeps_start_one_job(context: WorkerContext, agent: Agent, owner: asyncpg.Connection) -> None:
    await write_and_delete(agent)
    await age(owner, agent)
    await asyncio.gather(*(schedule(context) for _ in range(4)))
    assert len(await jobs_of(agent)) == 1
    await make_due(owner, agent)
    await asyncio.gather(*(schedule(context) for _ in range(4)))
    assert len(await jobs_of(agent)) == 1, "that one is under way"


async def test_a_graph_that_another_worker_checks_is_skipped(agent: Agent, owner: asyncpg.Connection) -> None:
    await write_and_delete(agent)
    await age(owner, agent)
    async with agent.db.transaction(agent.caller) as tx:
        assert (await compaction.check_graphs(tx, retention_days=DAYS)).started == 1
        assert await check(agent) == CompactionCheck(0, more=False)


async def test_another_tenants_graph_is_not_touched(
    context: WorkerContext, agent: Agent, other: Agent, owner: asyncpg.Connection
) -> None:
    for one in (agent, other):
        await write_and_delete(one)
    await age(owner, agent)
    await make_due(owner, other)
    await schedule(context)
    await job_loop.sweep(context)
    assert (len(await jobs_of(agent)), await jobs_of(other)) == (1, [])
    assert (await deleted_lineages(owner, agent), await deleted_lineages(owner, other)) == (0, 1)
    await age(owner, other)
    assert (await check(agent)).started == 0
    assert await due_graphs(owner, other) == 1, "a tenant's transaction looks at its own graphs"


async def test_graphs_of_a_suspended_tenant_wait(
    context: WorkerContext, agent: Agent, owner: asyncpg.Connection
) -> None:
    await write_and_delete(agent)
    await age(owner, agent)
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", agent.caller.tenant_id)
    await schedule(context)
    assert (await jobs_of(agent), await due_graphs(owner, agent)) == ([], 1)


async def test_scheduled_compaction_can_be_disabled(
    settings: Settings, db: Database, agent: Agent, owner: asyncpg.Connection
) -> None:
    await write_and_delete(agent)
    await age(owner, agent)
    off = settings.model_copy(update={"compaction_enabled": False})
    async with employed(off, db) as context:
        await schedule(context)
    assert (await jobs_of(agent), await due_graphs(owner, agent)) == ([], 1)


async def test_many_graphs_are_checked_a_few_at_a_time(
    context: WorkerContext, agent: Agent, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        graph = Agent(agent.db, agent.caller, f"graph-{number}")
        await write_and_delete(graph)
    await age(owner, agent)
    lower(monkeypatch, compaction.check_graphs, limit=2)
    assert (await check(agent, limit=2)).more
    assert await due_graphs(owner, agent) == 4, "of five, and the default graph"
    await schedule(context)
    assert {job.graph for job in await jobs_of(agent)} == {f"graph-{number}" for number in range(5)}


async def test_no_more_jobs_are_started_while_many_wait(
    agent: Agent, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MAX_PENDING_FOR_SWEEPS", 1)
    for name in ("one", "two"):
        await write_and_delete(Agent(agent.db, agent.caller, name))
    await age(owner, agent)
    assert await check(agent) == CompactionCheck(1, more=False)
    assert await due_graphs(owner, agent) >= 1
    await owner.execute("DELETE FROM jobs")
    assert (await check(agent)).started == 1


async def test_a_check_reads_indexes_only(agent: Agent, owner: asyncpg.Connection) -> None:
    """With any number of live and removed rows and any statistics: one row of each index for each graph."""
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
        )  # A table with a few rows is scanned, and rightly so.
        await tx.execute(queries.sort_by_indexes)
        told = await tx.fetchval(query, retention=timedelta(days=DAYS), limit=100)
    assert looked_at(msgspec.json.decode(told)[0]["Plan"]) <= 100


async def test_a_tenants_own_retention_takes_precedence(agent: Agent, owner: asyncpg.Connection) -> None:
    await write_and_delete(agent)
    await age(owner, agent, days=10)
    assert (await check(agent)).started == 0
    async with agent.db.transaction(agent.caller) as tx:
        await tenants.change_own_tenant(tx, TenantPatch(sets_retention=True, retention_days=7))
    await make_due(owner, agent)
    assert (await check(agent)).started == 1
    (job,) = await jobs_of(agent)
    assert job.arguments == {"retention_days": 7}


async def test_a_longer_retention_of_a_tenant_is_kept(agent: Agent, owner: asyncpg.Connection) -> None:
    await write_and_delete(agent)
    await age(owner, agent, days=40)
    async with agent.db.transaction(agent.caller) as tx:
        await tenants.change_own_tenant(tx, TenantPatch(sets_retention=True, retention_days=50))
    assert (await check(agent)).started == 0
    async with agent.db.transaction(agent.caller) as tx:
        await tenants.change_own_tenant(tx, TenantPatch(sets_retention=True, retention_days=None))
    await make_due(owner, agent)
    assert (await check(agent)).started == 1
