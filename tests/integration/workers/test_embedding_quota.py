"""No more passages are embedded in a day than the plan allows, by any number of workers; the others wait."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.quotas import service as quotas
from recollect.accounts.quotas.model import until_tomorrow
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller
from recollect.graph.passages import service as passages
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding
from tests.conftest import NewTenant
from tests.support.jobs import employed
from tests.support.memories import Agent, at_work
from tests.support.quotas import limit

pytestmark = pytest.mark.usefixtures("noon")


@pytest.fixture
async def agent(db: Database, caller: Caller, no_backlog: None) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent


@pytest.fixture
async def workers(settings: Settings, db: Database) -> AsyncIterator[list[WorkerContext]]:
    """Two workers, which claim a few passages at a time."""
    few = settings.model_copy(update={"embedding_batch": 3})
    async with employed(few, db) as one, employed(few, db) as other:
        yield [one, other]


async def embedded_vectors(owner: asyncpg.Connection, agent: Agent) -> int:
    """The number of the tenant's vectors."""
    count = "SELECT count(*) FROM passage_vectors WHERE tenant_id = $1"
    found: int = await owner.fetchval(count, agent.caller.tenant_id)
    return found


async def is_anything_pending(agent: Agent) -> bool:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return await passages.any_pending(tx)


async def next_day(owner: asyncpg.Connection, agent: Agent) -> None:
    """Let today's embeddings be yesterday's."""
    move = "UPDATE usage_hourly SET hour = hour - interval '1 day' WHERE tenant_id = $1"
    await owner.execute(move, agent.caller.tenant_id)


async def test_passages_beyond_the_quota_wait_for_the_next_day_and_are_found_by_words(
    agent: Agent, workers: list[WorkerContext], operator: Operator, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    await limit(operator, tenant.slug, embeddings_per_day=5)
    await agent.remember(*(f"the kettle number {n} is blue" for n in range(8)))
    await embedding.sweep(workers[0])
    assert await embedded_vectors(owner, agent) == 5
    assert await is_anything_pending(agent)
    assert len(await agent.recalled("kettle")) == 8
    await embedding.sweep(workers[1])
    assert await embedded_vectors(owner, agent) == 5
    await next_day(owner, agent)
    await embedding.sweep(workers[0])
    assert await embedded_vectors(owner, agent) == 8
    assert not await is_anything_pending(agent)


async def test_concurrent_workers_share_the_quota(
    agent: Agent,
    workers: list[WorkerContext],
    operator: Operator,
    tenant: Tenant,
    owner: asyncpg.Connection,
    noon: datetime,
) -> None:
    """Each claims before the other has stored what it claimed."""
    await limit(operator, tenant.slug, embeddings_per_day=7)
    for n in range(20):
        await agent.remember(f"the kettle number {n} is blue")
    runs = [embedding.embed_passages(worker, agent.caller.tenant_id, {}) for worker in workers * 2]
    await asyncio.gather(*runs)
    assert await embedded_vectors(owner, agent) == 7
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        assert await quotas.embeddings_left(tx, noon) == 0


async def test_passages_embedded_beyond_a_lowered_quota_are_released_at_once(
    agent: Agent, workers: list[WorkerContext], operator: Operator, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    """The plan is lowered between the claim and the moment at which vectors are stored."""
    await agent.remember("one kettle", "another kettle", "a third kettle")
    batch = await embedding._embed_next(workers[0], agent.caller.tenant_id)
    assert batch is not None
    assert len(batch.unembedded) == 3
    await limit(operator, tenant.slug, embeddings_per_day=2)
    stored = await embedding._store(workers[0], agent.caller.tenant_id, batch)
    assert (stored.embedded, await embedded_vectors(owner, agent)) == (2, 2)
    claimed = "SELECT count(*) FROM passages WHERE tenant_id = $1 AND NOT settled AND claimed_until IS NULL"
    assert await owner.fetchval(claimed, agent.caller.tenant_id) == 1


async def test_a_tenant_without_quota_does_not_delay_others(
    agent: Agent,
    workers: list[WorkerContext],
    operator: Operator,
    tenant: Tenant,
    new_tenant: NewTenant,
    owner: asyncpg.Connection,
) -> None:
    await limit(operator, tenant.slug, embeddings_per_day=1)
    await agent.remember("one kettle", "another kettle")
    async with at_work(agent.db, operator_caller(await new_tenant())) as other:
        await other.remember(*(f"the kettle number {n} is blue" for n in range(8)))
        await embedding.sweep(workers[0])
        assert (await embedded_vectors(owner, agent), await embedded_vectors(owner, other)) == (1, 8)


async def test_questions_do_not_count_towards_the_quota(
    agent: Agent, workers: list[WorkerContext], operator: Operator, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    await limit(operator, tenant.slug, embeddings_per_day=1)
    for n in range(5):
        await agent.recalled(f"kettle {n}")
    await agent.remember("one kettle")
    await embedding.sweep(workers[0])
    assert await embedded_vectors(owner, agent) == 1


@pytest.mark.parametrize(
    ("now", "seconds"),
    [
        (datetime(2027, 3, 1, 0, 0, 0, tzinfo=UTC), 86_400),
        (datetime(2027, 3, 1, 23, 59, 59, tzinfo=UTC), 1),
        (datetime(2027, 3, 1, 12, 0, 0, tzinfo=UTC), 43_200),
    ],
)
def test_time_until_the_next_day(now: datetime, seconds: int) -> None:
    assert until_tomorrow(now).total_seconds() == seconds
