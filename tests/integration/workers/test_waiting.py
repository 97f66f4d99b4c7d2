"""The order of embedding: new memories come before bulk imports, and nothing starves.

No time is measured. The tests assert the order of claims, and what is embedded while an embedder holds back the bulk.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from uuid import UUID

import asyncpg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.embedding import Vectors
from recollect.graph.nodes import indexing
from recollect.graph.passages import service as passages
from recollect.graph.passages.model import MAX_SMALL, OLDEST_SHARE, ClaimLimits
from recollect.jobs.model import EMBED_PASSAGES
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import QUEUE_NAME, Wakeups, arq_redis
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding
from recollect_workers.schedule import ScheduledJob, repeat
from recollect_workers.wakeup_listener import MAX_JOBS, arq_worker, run_until_stopping
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.memories import Agent, embedder
from tests.support.workers import embedded_within, waiting

BULK = MAX_SMALL + 1
BATCH = 8

UNTOLD = "SELECT count(*) FROM passages WHERE text LIKE 'said %' AND NOT settled"

serial = count()

pytestmark = pytest.mark.usefixtures("no_backlog")


@pytest.fixture
def agent(db: Database, caller: Caller) -> Agent:
    return Agent(db, caller)


async def write(agent: Agent, what: str, count: int) -> set[str]:
    """Remember so many facts in one call; return their texts."""
    texts = [f"{what} {number}" for number in range(count)]
    await agent.remember(*(NewMemory(text, thread=text) for text in texts))
    return set(texts)


async def claim(agent: Agent, *, limit: int = BATCH, small_only: bool = False) -> list[str]:
    """The texts of the next claim, as a list in any order; they are not embedded."""
    async with agent.db.transaction(agent.caller) as tx:
        claimed = await passages.claim_pending(
            tx, model=embedder().model, limit=limit, lease_seconds=600, small_only=small_only
        )
    return [passage.text for passage in claimed if passage.text is not None]


class TestClaims:
    """What a claim takes from a backlog."""

    async def test_a_new_memory_is_in_the_first_claim_after_it(self, agent: Agent) -> None:
        await write(agent, "import", BULK)
        await claim(agent)
        said = await write(agent, "said", 3)
        assert said < set(await claim(agent))

    async def test_a_continuing_import_does_not_delay_a_memory(self, agent: Agent) -> None:
        said = await write(agent, "said", 3)
        for number in range(2):
            await write(agent, f"import {number}", BULK)
        assert said < set(await claim(agent))

    async def test_the_newest_memories_come_before_earlier_small_writes(self, agent: Agent) -> None:
        for number in range(4):
            await write(agent, f"early {number}", 5)
        said = await write(agent, "said", 5)
        assert said < set(await claim(agent))

    async def test_each_graph_has_places_in_a_claim(self, agent: Agent) -> None:
        quiet = await write(replace(agent, graph="quiet"), "quiet", 2)
        for number in range(4):
            await write(replace(agent, graph="busy"), f"busy {number}", 10)
        assert quiet < set(await claim(agent))

    async def test_if_there_are_more_graphs_than_places_each_place_is_another_graphs(self, agent: Agent) -> None:
        for number in range(BATCH):
            await write(replace(agent, graph=f"graph{number}"), f"said {number}", 2)
        claimed = await claim(agent, small_only=True, limit=4)
        assert (len(claimed), len({text.split()[1] for text in claimed})) == (4, 4)

    async def test_small_only_leaves_bulk_passages_to_others(self, agent: Agent) -> None:
        await write(agent, "import", BULK)
        said = await write(agent, "said", 2)
        assert set(await claim(agent, small_only=True)) == said
        assert await claim(agent, small_only=True) == []
        assert len(await claim(agent)) == BATCH

    async def test_bulk_passages_are_claimed_oldest_first(self, agent: Agent) -> None:
        first = await write(agent, "first", BULK)
        await write(agent, "second", BULK)
        taken = [text for _ in range(BULK // BATCH) for text in await claim(agent)]
        assert set(taken) < first
        assert len(taken) == len(set(taken)) == BULK // BATCH * BATCH

    async def test_rebuilt_passages_are_bulk(self, agent: Agent, owner: asyncpg.Connection) -> None:
        await write(agent, "said", 2)
        async with agent.writing() as (tx, revision):
            await indexing.reindex_page(tx, revision, after=UUID(int=0), limit=10)
        await write(agent, "others", 1)
        bulk = "SELECT bulk FROM passages WHERE tenant_id = $1 AND removed_revision IS NULL ORDER BY id"
        assert [row["bulk"] for row in await owner.fetch(bulk, agent.caller.tenant_id)] == [True, True, False]

    @pytest.mark.parametrize("limit", [1, 2, 3])
    def test_small_batches_reserve_the_share_of_the_oldest_by_chance(self, limit: int) -> None:
        kept = [limit - ClaimLimits.shared(limit).small for _ in range(10_000)]
        assert set(kept) == {0, 1}
        assert sum(kept) / len(kept) == pytest.approx(limit / OLDEST_SHARE, abs=0.05)


@given(
    bulk=st.booleans(),
    backlog=st.integers(1, 3 * BATCH),
    limit=st.sampled_from([4, BATCH]),
    told=st.lists(st.tuples(st.sampled_from(["first", "second"]), st.integers(0, BATCH)), min_size=1, max_size=4),
)
@example(bulk=True, backlog=20, limit=4, told=[("second", 8)])
@examples(15)
async def test_the_oldest_passages_are_claimed_soon_whatever_is_added(
    agent: Agent,
    owner: asyncpg.Connection,
    bulk: bool,
    backlog: int,
    limit: int,
    told: list[tuple[str, int]],
) -> None:
    """Even if each claim is preceded by as many new memories as it has places, or more, one place in four is for the
    backlog.
    """
    await owner.execute("DELETE FROM passages WHERE tenant_id = $1", agent.caller.tenant_id)
    waiting = await write(replace(agent, graph="first"), f"backlog {next(serial)}", backlog)
    await owner.execute("UPDATE passages SET bulk = $2 WHERE tenant_id = $1", agent.caller.tenant_id, bulk)
    for number in range(math.ceil(backlog / (limit // OLDEST_SHARE))):
        graph, more = told[number % len(told)]
        said = await write(replace(agent, graph=graph), f"new {next(serial)}", limit + more)
        claimed = set(await claim(agent, limit=limit))
        assert len(claimed) == limit
        assert claimed & said
        waiting -= claimed
    assert not waiting


class HeldEmbedder:
    """The real embedder, which holds imports back until it is released."""

    def __init__(self) -> None:
        self.model, self.dimensions, self.similarity_thresholds = (
            embedder().model,
            embedder().dimensions,
            embedder().similarity_thresholds,
        )
        self.asked, self.release = asyncio.Event(), asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if any(text.startswith("import") for text in texts):
            self.asked.set()
            await self.release.wait()
        return await embedder().embed(texts)

    async def close(self) -> None:
        """There is nothing to close."""


@pytest.fixture
async def context(settings: Settings, db: Database) -> AsyncIterator[WorkerContext]:
    async with connect_redis(settings) as redis:
        await redis.delete(QUEUE_NAME)
        wakeups = Wakeups(redis)
        yield WorkerContext(settings, db, HeldEmbedder(), wakeups, asyncio.Event())
        await wakeups.aclose()


@asynccontextmanager
async def at_embedding(context: WorkerContext) -> AsyncIterator[None]:
    """A worker that serves wake-ups, and sweeps on request or once a minute."""
    async with connect_redis(context.settings) as redis, asyncio.TaskGroup() as tasks:
        sweep = ScheduledJob("sweep passages", embedding.sweep, 60, context.backoff.due)
        tasks.create_task(repeat(context, sweep))
        tasks.create_task(run_until_stopping(context, arq_worker(context, arq_redis(redis))))
        try:
            yield
        finally:
            assert isinstance(context.embedder, HeldEmbedder)
            context.embedder.release.set()
            context.stopping.set()


async def wake(context: WorkerContext, caller: Caller) -> None:
    context.wakeups.notify(caller.tenant_id, frozenset({EMBED_PASSAGES}))


async def test_a_new_memory_does_not_wait_for_imports_of_any_tenant(
    context: WorkerContext, agent: Agent, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    held = context.embedder
    assert isinstance(held, HeldEmbedder)
    other = Agent(context.database, operator_caller(await new_tenant()))
    for number in range(2 * MAX_JOBS):
        await write(agent, f"import {number}", BULK)
        await wake(context, agent.caller)
        await asyncio.sleep(0.11)  # Otherwise, one wake-up stands for several.
    async with at_embedding(context):
        await asyncio.wait_for(held.asked.wait(), 60)
        for told in (other, agent):
            await write(told, "said", 3)
            await wake(context, told.caller)
        async with asyncio.timeout(60):
            while await owner.fetchval(UNTOLD):  # noqa: ASYNC110 - another connection's commits set no event
                await asyncio.sleep(0.02)
        assert await waiting(owner, agent.caller) == 2 * MAX_JOBS * BULK
        held.release.set()
        assert await embedded_within(owner, agent.caller, 60)
