"""Quotas are exact, even with concurrent writers, and never prevent deletions."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller, worker_caller
from recollect.accounts.quotas import service as quotas
from recollect.accounts.quotas.model import ROW_BYTES
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller
from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange
from recollect.errors import ErrorKind, QuotaExceeded
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import GraphPatch, NewGraph
from recollect.graph.nodes import service as nodes
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import NewEdge
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Query
from recollect.retention.compaction import service as compaction
from recollect.retention.erasure import service as erasure
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import eventually
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work
from tests.support.quotas import limit

Limit = Callable[..., Awaitable[str]]

REVISION = ROW_BYTES["changes"]
SAYING = REVISION + ROW_BYTES["observations"] + len("{}{}")
"""The bytes of a revision with one observation without tags or metadata, besides its text."""


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent


@pytest.fixture
def limited(operator: Operator, tenant: Tenant) -> Limit:
    """Gives the test's tenant a plan with these limits."""

    async def give(**limits: int) -> str:
        return await limit(operator, tenant.slug, **limits)

    return give


async def used(agent: Agent) -> dict[str, int | None]:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        _, found = await quotas.list_use(tx, datetime.now(UTC))
    return {one.name: one.used for one in found}


async def refusal(write: Awaitable[Any]) -> QuotaExceeded:
    with pytest.raises(QuotaExceeded) as refused:
        await write
    assert (refused.value.kind, refused.value.code) == (ErrorKind.FORBIDDEN, "quota_exceeded")
    return refused.value


async def state(owner: asyncpg.Connection, agent: Agent) -> list[Any]:
    """Everything that a write could have changed in the tenant."""
    heads = "SELECT graph_id, revision, entities, observations, stored_bytes FROM graph_heads WHERE tenant_id = $1"
    rows = [tuple(row) for row in await owner.fetch(f"{heads} ORDER BY 1", agent.caller.tenant_id)]
    for table in ("graphs", "nodes", "node_versions", "observations", "relations", "passages", "changes"):
        rows.append(await owner.fetchval(f"SELECT count(*) FROM {table} WHERE tenant_id = $1", agent.caller.tenant_id))
    return rows


class TestNodes:
    async def test_entities_facts_and_placeholders_count_up_to_the_limit(
        self, agent: Agent, limited: Limit, owner: asyncpg.Connection
    ) -> None:
        plan = await limited(nodes_per_graph=4)
        await agent.create("Ada")
        await agent.remember("the engine was never built")
        await agent.relate(("Ada", "Babbage", "knows"))  # Babbage is a placeholder.
        await agent.create("Grace")
        assert (await used(agent))["nodes_per_graph"] == 4
        before = await state(owner, agent)
        for write in (
            agent.create("Alan"),
            agent.remember("it is late"),
            agent.relate(("Ada", "Alan", "knows")),
        ):
            error = await refusal(write)
            assert plan in error.message
            assert "allows 4 entities, facts and placeholders in a graph" in error.message
            assert "There are 4, and this would add 1." in error.message
        assert await state(owner, agent) == before

    async def test_a_batch_is_refused_whole(self, agent: Agent, limited: Limit, owner: asyncpg.Connection) -> None:
        await limited(nodes_per_graph=3)
        await agent.create("a")
        before = await state(owner, agent)
        assert "There are 1, and this would add 3." in (await refusal(agent.create("b", "c", "d"))).message
        assert await state(owner, agent) == before
        assert await agent.create("b", "c") == ["b", "c"]

    async def test_the_limit_applies_to_each_graph_and_deletions_make_room(self, agent: Agent, limited: Limit) -> None:
        await limited(nodes_per_graph=1)
        await agent.create("a")
        await replace(agent, graph="other").create("a")
        await refusal(agent.create("b"))
        await agent.observe("a", "what is there may grow")
        await agent.delete("a")
        await agent.create("b")

    async def test_a_placeholder_that_becomes_an_entity_counts_once(self, agent: Agent, limited: Limit) -> None:
        await limited(nodes_per_graph=2)
        await agent.create("Ada")
        await agent.relate(("Ada", "Babbage", "knows"))
        assert await agent.create("Babbage") == ["Babbage"]


class TestTenantWide:
    async def test_observations_of_all_graphs_count(
        self, agent: Agent, limited: Limit, owner: asyncpg.Connection
    ) -> None:
        await limited(observations=3)
        other = replace(agent, graph="other")
        for each in (agent, other):
            await each.create("Ada")
        await agent.observe("Ada", "one", "two")
        await other.observe("Ada", "three")
        before = await state(owner, agent)
        assert "There are 3, and this would add 1." in (await refusal(other.observe("Ada", "four"))).message
        assert await state(owner, agent) == before
        await agent.create("needs none")
        await agent.unobserve(("Ada", "one"))
        await other.observe("Ada", "four")
        assert (await used(agent))["observations"] == 3

    async def test_graphs_count_however_they_are_created(
        self, agent: Agent, limited: Limit, owner: asyncpg.Connection
    ) -> None:
        await limited(graphs=2)  # One of them is `default`.
        await replace(agent, graph="second").create("a")
        before = await state(owner, agent)

        async def made() -> None:
            async with agent.db.transaction(agent.caller) as tx:
                await graphs.create_graph(tx, NewGraph("third"))

        async def ensured() -> None:
            async with agent.db.transaction(agent.caller) as tx:
                await graphs.ensure_graph(tx, NewGraph("third"))

        async def provided() -> None:
            async with agent.db.transaction(agent.caller) as tx:
                await graphs.provide_graph(tx, "third")

        third = replace(agent, graph="third")
        for write in (made(), ensured(), provided(), third.create("a")):
            assert "allows 2 graphs. There are 2, and this would add 1." in (await refusal(write)).message
        await third.delete("what is not there")  # It touches nothing, and so creates no graph.
        assert await state(owner, agent) == before
        async with agent.db.transaction(agent.caller) as tx:
            await graphs.delete_graph(tx, "second", "test")
        await third.create("a")

    async def test_stored_bytes_count_exactly_and_include_history(
        self, agent: Agent, limited: Limit, owner: asyncpg.Connection
    ) -> None:
        await agent.create(NewEntity("Ada", "person", ("likes tea",)))
        stored = (await used(agent))["stored_bytes"]
        assert stored is not None
        twice = stored + len("x" * 100) + SAYING
        await limited(stored_bytes=twice)
        before = await state(owner, agent)
        error = await refusal(agent.observe("Ada", "x" * 101))
        assert f"There are {stored:,}, and this would add {SAYING + 101:,}." in error.message
        assert await state(owner, agent) == before
        await agent.observe("Ada", "x" * 100)
        assert (await used(agent))["stored_bytes"] == twice
        await refusal(agent.observe("Ada", "x"))
        await agent.unobserve(("Ada", "x" * 100))
        assert (await used(agent))["stored_bytes"] == twice + REVISION, "it is history now"
        await refusal(agent.observe("Ada", "x"))
        await compact(agent)
        assert (await used(agent))["stored_bytes"] == stored + 2 * REVISION, "the log is kept"
        await limited(stored_bytes=twice + 2 * REVISION)
        await agent.observe("Ada", "x")

    async def test_repeated_updates_cannot_exceed_the_limit_on_bytes(self, agent: Agent, limited: Limit) -> None:
        await agent.relate(("Ada", "Grace", "knows"))
        await limited(stored_bytes=50_000)

        async def put(number: int) -> None:
            async with agent.writing() as (tx, revision):
                ends = await nodes.ensure_named(tx, revision, ["Ada", "Grace"])
                edge = NewEdge(ends["Ada"].id, ends["Grace"].id, "knows", metadata={"number": number})
                await relations.upsert_edges(tx, revision, [edge])

        async def fill() -> None:
            for number in range(500):
                await put(number)

        await refusal(fill())
        assert 49_000 <= ((await used(agent))["stored_bytes"] or 0) <= 50_000

    async def test_another_tenants_use_does_not_count(
        self, agent: Agent, limited: Limit, operator: Operator, new_tenant: NewTenant
    ) -> None:
        neighbour = await new_tenant()
        await limit(operator, neighbour.slug, observations=1, graphs=1, stored_bytes=10_000)
        await limited(observations=1, graphs=1, stored_bytes=10_000)
        async with at_work(agent.db, operator_caller(neighbour)) as other:
            for each in (agent, other):
                await each.create(NewEntity("Ada", "person", ("likes tea",)))
                assert "There are 1, and" in (await refusal(each.observe("Ada", "more"))).message
                assert (await used(each))["observations"] == 1

    async def test_a_confined_credential_is_not_told_the_tenants_use(self, agent: Agent, limited: Limit) -> None:
        await replace(agent, graph="closed").create(NewEntity("Ada", "person", ("one", "two", "three")))
        await agent.create("Ada")
        async with agent.db.transaction(agent.caller) as tx:
            ids = await graphs.graph_ids(tx, ["default"])
        await limited(observations=3, nodes_per_graph=1)
        confined = replace(agent, caller=replace(agent.caller, graphs=frozenset(ids.values())))
        error = await refusal(confined.observe("Ada", "four"))
        assert "allows 3 observations. This would add 1." in error.message
        assert "There are 1, and this would add 1." in (await refusal(confined.create("Grace"))).message
        told = await used(confined)
        assert told == dict.fromkeys(told) | {"nodes_per_graph": 1}


async def compact(agent: Agent) -> None:
    """Delete the past."""
    async with agent.db.transaction(agent.caller) as tx:
        graph = await graphs.get_graph(tx, "default")
        await compaction.compact(tx, graph.id, before=datetime.now(UTC) + timedelta(minutes=1))


async def undo(agent: Agent, since: int) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        await undoing.undo_changes(tx, "default", "undo", ChangeRange(since=since), dry_run=False)


async def erase(agent: Agent) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        await erasure.erase_person(tx, "default", "Ada")


async def delete_graph(agent: Agent) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.delete_graph(tx, "default", "test")


async def configure(agent: Agent) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.configure_graph(tx, "default", GraphPatch(metadata={"a": 1}), "test")


SHRINKING: dict[str, Callable[[Agent], Awaitable[Any]]] = {
    "an entity is deleted": lambda agent: agent.delete("Ada"),
    "an observation is deleted": lambda agent: agent.unobserve(("Ada", "likes tea")),
    "a relation is deleted": lambda agent: agent.unrelate(("Ada", "Grace", "knows")),
    "entities are merged": lambda agent: agent.merge(["Ada", "Grace"]),
    "what was added is undone": lambda agent: undo(agent, 0),
    "a person is erased": erase,
    "the past is compacted": compact,
    "the graph is deleted": delete_graph,
    "the graph is configured": configure,
}


@pytest.mark.parametrize("shrinking", SHRINKING)
async def test_deletions_are_possible_beyond_the_limits(
    agent: Agent, limited: Limit, owner: asyncpg.Connection, shrinking: str
) -> None:
    """As after a plan was lowered."""
    await agent.create(NewEntity("Ada", "person", ("likes tea", "likes cake")), NewEntity("Grace", "person"))
    await agent.relate(("Ada", "Grace", "knows"))
    await replace(agent, graph="other").create("Ada")
    await limited(graphs=1, nodes_per_graph=1, observations=1, stored_bytes=1)
    for write in (agent.observe("Grace", "x"), agent.create("b"), agent.relate(("Grace", "Ada", "knows"))):
        await refusal(write)
    await SHRINKING[shrinking](agent)
    if shrinking != "the graph is deleted":
        await assert_laws(agent, whole=False)


async def test_the_services_own_writes_are_not_limited(agent: Agent, limited: Limit) -> None:
    await agent.create("Ada")
    await limited(stored_bytes=1)
    itself = replace(agent, caller=worker_caller(agent.caller.tenant_id))
    await itself.relate(("Ada", "Ada", "links to"))


async def _waits_or_is_done(owner: asyncpg.Connection, task: asyncio.Task[Any]) -> bool:
    waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
    return task.done() or bool(await owner.fetchval(waits))


class TestConcurrentWriters:
    """Writers in two processes, each with its own pool."""

    @pytest.fixture
    async def agents(self, agent: Agent, settings: Settings) -> AsyncIterator[tuple[Agent, Agent]]:
        async with AsyncExitStack() as stack:
            wide = settings.model_copy(update={"database_pool_size": 12, "database_tenant_share": 1.0})
            dbs = [await stack.enter_async_context(Database.connect(wide.database_url, settings=wide)) for _ in "ab"]
            yield replace(agent, db=dbs[0]), replace(agent, db=dbs[1])

    async def outcomes(self, writes: Iterable[Awaitable[Any]]) -> int:
        """The number of writes that succeeded; the others were refused for the quota, and for nothing else."""
        done = await asyncio.gather(*writes, return_exceptions=True)
        failed = [one for one in done if isinstance(one, BaseException)]
        assert all(isinstance(one, QuotaExceeded) for one in failed), failed
        return len(done) - len(failed)

    @pytest.mark.parametrize("quota", ["graphs", "observations", "stored_bytes"])
    async def test_a_writer_waits_for_the_commit_of_an_earlier_one(
        self, agents: tuple[Agent, Agent], limited: Limit, owner: asyncpg.Connection, quota: str
    ) -> None:
        """There is room for one of two writers, and the first has written and not committed yet."""
        first, second = (replace(agent, graph=f"graph-{n}") for n, agent in enumerate(agents))
        if quota != "graphs":
            for writer in (first, second):
                await writer.create("Ada")
        there = (await used(first))[quota] or 0
        await limited(**{quota: there + {"graphs": 1, "observations": 1, "stored_bytes": 5_000}[quota]})
        said = NewEntity("Grace", "person", ("x" * 80,))

        async with first.db.transaction(first.caller) as tx:
            async with graphs.write_graph(tx, first.graph, "test") as revision:
                await entities.create_entities(tx, revision, [said])
            waiting = asyncio.create_task(second.create(said))
            await eventually(lambda: _waits_or_is_done(owner, waiting))
            assert not waiting.done(), "it counted without what is not committed"
        await refusal(waiting)

    async def test_observations_do_not_exceed_the_quota(self, agents: tuple[Agent, Agent], limited: Limit) -> None:
        writers = [replace(agents[n % 2], graph=f"graph-{n}") for n in range(12)]
        for writer in writers:
            await writer.create("Ada")
        await limited(observations=17)
        writes = [writer.observe("Ada", f"number {n}") for n in range(4) for writer in writers]
        assert await self.outcomes(writes) == 17
        assert (await used(agents[0]))["observations"] == 17

    async def test_nodes_do_not_exceed_the_quota(self, agents: tuple[Agent, Agent], limited: Limit) -> None:
        await limited(nodes_per_graph=7)
        assert await self.outcomes([agents[n % 2].create(f"entity {n}") for n in range(20)]) == 7
        assert (await agents[0].head()).entities == 7

    async def test_graphs_do_not_exceed_the_quota(
        self, agents: tuple[Agent, Agent], limited: Limit, owner: asyncpg.Connection
    ) -> None:
        await limited(graphs=5)
        writes = [replace(agents[n % 2], graph=f"graph-{n // 2}").create(f"entity {n}") for n in range(20)]
        assert await self.outcomes(writes) >= 4
        count = "SELECT count(*) FROM graphs WHERE tenant_id = $1"
        assert await owner.fetchval(count, agents[0].caller.tenant_id) == 5

    async def test_bytes_do_not_exceed_the_quota(self, agents: tuple[Agent, Agent], limited: Limit) -> None:
        writers = [replace(agents[n % 2], graph=f"graph-{n}") for n in range(8)]
        for writer in writers:
            await writer.create("Ada")
        before = (await used(agents[0]))["stored_bytes"] or 0
        each = len("x" * 50) + SAYING
        await limited(stored_bytes=before + 10 * each + each // 2)
        assert await self.outcomes([w.observe("Ada", f"{n}".rjust(50, "x")) for n in range(4) for w in writers]) == 10
        assert (await used(agents[0]))["stored_bytes"] == before + 10 * each

    async def test_writers_without_a_relevant_limit_do_not_wait_for_each_other(
        self, agents: tuple[Agent, Agent], limited: Limit
    ) -> None:
        """Although another holds the lock."""
        await limited(graphs=9, embeddings_per_day=9)
        await agents[0].create("Ada")
        turn = Query.compile(
            "SELECT pg_advisory_xact_lock(hashtextextended('what is stored of ' || :tenant_id::uuid::text, 0))"
        )
        async with agents[0].db.transaction(agents[0].caller) as tx:
            await tx.execute(turn)
            await agents[1].observe("Ada", "likes tea")
