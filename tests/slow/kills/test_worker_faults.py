"""The worker when it, Valkey, PostgreSQL or the embedder goes away. Every passage is embedded in the end."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller
from recollect.jobs.model import EMBED_PASSAGES
from recollect.postgres.database import Database
from recollect.postgres.migrate import migrate
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import QUEUE_NAME, Wakeups
from recollect_local.postgres import LocalPostgres
from recollect_local.valkey import LocalValkey
from tests.support.embedding_server import DIMENSIONS, EmbeddingServer, serving_embeddings
from tests.support.gateway import eventually
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.support.workers import embedded_within, end_leases, remember, waiting, working

CUT_OFF = "work interrupted, will retry when its lease ends"
PEOPLE = [f"person {number}" for number in range(20)]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with serving_embeddings() as server:
        yield server
        server.answering.set()


@pytest.fixture
def remote(settings: Settings, server: EmbeddingServer) -> Settings:
    """Settings of a worker that uses the server, in batches of five."""
    changed = {
        "embedder": "openai",
        "embedding_url": server.url,
        "embedding_dimensions": DIMENSIONS,
        "embedding_batch": 5,
        "embedding_timeout_seconds": MAX_WAIT_SECONDS,
        "sweep_seconds": 1,
    }
    return settings.model_copy(update=changed)


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[LocalValkey]:
    """A Valkey of the test, which it may stop and flush."""
    server = LocalValkey(tmp_path)
    server.start()
    yield server
    server.stop()


async def test_a_worker_that_is_killed_during_a_batch_loses_nothing(
    remote: Settings, db: Database, caller: Caller, owner: asyncpg.Connection, server: EmbeddingServer, tmp_path: Path
) -> None:
    await remember(db, caller, *PEOPLE)
    server.answering.clear()
    with working(remote, tmp_path) as worker:
        assert await asyncio.to_thread(server.requested.wait, MAX_WAIT_SECONDS)
        assert worker.stop(signal.SIGKILL) == -signal.SIGKILL
    assert await waiting(owner, caller) == 40
    claimed = "SELECT count(*) FROM passages WHERE tenant_id = $1 AND claimed_until IS NOT NULL"
    assert await owner.fetchval(claimed, caller.tenant_id) > 0
    server.answering.set()
    await end_leases(remote)
    with working(remote, tmp_path) as worker:
        assert await embedded_within(owner, caller)
        assert worker.stop() == 0


async def test_sigterm_ends_a_worker_after_the_batch_in_hand(
    remote: Settings, db: Database, caller: Caller, owner: asyncpg.Connection, server: EmbeddingServer, tmp_path: Path
) -> None:
    await remember(db, caller, *PEOPLE)
    server.answering.clear()
    with working(remote, tmp_path) as worker:
        assert await asyncio.to_thread(server.requested.wait, MAX_WAIT_SECONDS)
        worker.send(signal.SIGTERM)
        server.answering.set()
        assert await asyncio.to_thread(worker.wait) == 0
    assert await waiting(owner, caller) > 0
    assert worker.lines(CUT_OFF) == []
    embedded = sum(line["passages"] for line in worker.lines("passages embedded"))
    assert embedded == sum(len(request["input"]) for request in server.requests), "what was asked for is stored"


async def test_sigterm_does_not_wait_for_an_embedder_that_hangs(
    remote: Settings, db: Database, caller: Caller, server: EmbeddingServer, tmp_path: Path
) -> None:
    await remember(db, caller, "Alice")
    server.answering.clear()
    with working(remote, tmp_path) as worker:
        assert await asyncio.to_thread(server.requested.wait, MAX_WAIT_SECONDS)
        assert await asyncio.to_thread(worker.stop) == 0
    assert len(worker.lines(CUT_OFF)) == 1


async def test_an_embedder_that_comes_back_is_used_again(
    remote: Settings, db: Database, caller: Caller, owner: asyncpg.Connection, server: EmbeddingServer, tmp_path: Path
) -> None:
    away = remote.model_copy(update={"embedding_url": "http://127.0.0.1:1/v1", "embedding_lease_seconds": 0.5})
    await remember(db, caller, "Alice")
    with working(away, tmp_path) as worker:
        await asyncio.to_thread(worker.wait_for, "embedding failed, will retry", times=2)
        failures = worker.lines("embedding failed, will retry")
        assert {line["tenant"]: line["reason"] for line in failures} == {
            str(caller.tenant_id): "The embedder cannot be reached (ConnectError)."
        }
    with working(remote, tmp_path):
        assert await embedded_within(owner, caller)


async def test_valkey_may_stop_and_come_back(
    settings: Settings, db: Database, caller: Caller, owner: asyncpg.Connection, valkey: LocalValkey, tmp_path: Path
) -> None:
    own = settings.model_copy(update={"redis_url": valkey.url, "sweep_seconds": 1})
    with working(own, tmp_path) as worker:
        await asyncio.to_thread(worker.wait_for, "listening for wake-ups")
        valkey.stop()
        await asyncio.to_thread(worker.wait_for, "cannot connect to Redis, sweeping without wake-ups")
        await remember(db, caller, "Alice")
        assert await embedded_within(owner, caller)
        valkey.start()
        await asyncio.to_thread(worker.wait_for, "listening for wake-ups", times=2)
        await require_wake_up_taken(own, caller)
        assert len(worker.lines("cannot connect to Redis, sweeping without wake-ups")) == 1
        assert worker.stop() == 0


async def test_a_worker_starts_while_valkey_is_away(
    settings: Settings, db: Database, caller: Caller, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    await remember(db, caller, "Alice")
    with working(settings.model_copy(update={"redis_url": "redis://127.0.0.1:1/0"}), tmp_path) as worker:
        assert await embedded_within(owner, caller)
        assert worker.stop() == 0


async def test_valkey_may_be_flushed_at_any_moment(
    remote: Settings,
    server: EmbeddingServer,
    db: Database,
    caller: Caller,
    owner: asyncpg.Connection,
    valkey: LocalValkey,
    tmp_path: Path,
) -> None:
    own = remote.model_copy(update={"redis_url": valkey.url})
    async with connect_redis(own) as redis:
        with working(own, tmp_path) as worker:
            await asyncio.to_thread(worker.wait_for, "listening for wake-ups")
            server.seconds = 0.2
            await remember(db, caller, *PEOPLE)
            Wakeups(redis).notify(caller.tenant_id, frozenset({EMBED_PASSAGES}))
            for _ in range(20):
                await redis.flushall()
                await asyncio.sleep(0.05)
            assert await embedded_within(owner, caller)
            await require_wake_up_taken(own, caller)
            assert worker.stop() == 0


async def test_postgresql_may_stop_and_come_back(settings: Settings, tmp_path: Path) -> None:
    postgres = LocalPostgres(tmp_path)
    postgres.start()
    await migrate(postgres.url())
    own = settings.model_copy(
        update={"database_url": postgres.url("recollect_app"), "sweep_seconds": 1, "database_acquire_seconds": 1}
    )
    async with Operator.connect(postgres.url("recollect_owner"), own) as operator:
        caller = operator_caller(await tenants.create_tenant(operator, "fault", "Fault"))
    try:
        with working(own, tmp_path) as worker:
            await asyncio.to_thread(worker.wait_for, "listening for wake-ups")
            await asyncio.to_thread(postgres.stop)
            await asyncio.to_thread(worker.wait_for, "sweep passages failed, will retry")
            await asyncio.to_thread(postgres.start)
            async with Database.connect(own.database_url, settings=own) as db:
                await remember(db, caller, "Alice")
            await asyncio.to_thread(worker.wait_for, "passages embedded")
            assert worker.stop() == 0
    finally:
        postgres.stop()


async def require_wake_up_taken(settings: Settings, caller: Caller) -> None:
    async with connect_redis(settings) as redis:

        async def is_taken() -> bool:
            return bool(await redis.zcard(QUEUE_NAME) == 0)

        queued, wakeups = await times_queued(redis), Wakeups(redis)
        wakeups.notify(caller.tenant_id, frozenset({EMBED_PASSAGES}))
        await wakeups.aclose()
        assert await times_queued(redis) > queued
        await eventually(is_taken)


async def times_queued(redis: Redis) -> int:
    """The number of entries that were queued since Valkey was started."""
    counts = await redis.info("commandstats")
    return int(counts.get("cmdstat_zadd", {"calls": 0})["calls"])
