"""The change bus: a listener is woken when a graph of its tenant is written, and not for other tenants."""

import asyncio
import socket
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest
from redis.asyncio import Redis

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.valkey.change_bus import BLOCK_SECONDS, ChangeBus, Listener
from recollect.valkey.change_stream import STREAM_LENGTH, ChangePublisher, stream_of
from recollect.valkey.client import connect_redis
from tests.support.timeouts import MAX_WAIT_SECONDS

GRAPH, OTHER = uuid4(), uuid4()


@pytest.fixture
async def redis(settings: Settings) -> AsyncIterator[Redis]:
    async with connect_redis(settings) as redis:
        yield redis


@pytest.fixture
async def bus(settings: Settings) -> AsyncIterator[ChangeBus]:
    async with connect_redis(settings, block_seconds=BLOCK_SECONDS, connections=2) as redis:
        bus = ChangeBus(redis)
        async with bus.running():
            yield bus


async def publish(redis: Redis, tenant_id: UUID, graph_id: UUID, revision: int = 1) -> None:
    publisher = ChangePublisher(redis)
    publisher.publish(tenant_id, {graph_id: revision})
    await publisher.aclose()


async def wait_until_read(listener: Listener) -> None:
    """Wait until the tenant's stream is read, for which the listener is woken the first time."""
    assert await listener.woken(MAX_WAIT_SECONDS)


async def test_a_listener_for_one_graph_is_woken_for_it_alone(bus: ChangeBus, redis: Redis) -> None:
    tenant_id = uuid4()
    with bus.listening(tenant_id, frozenset({GRAPH})) as one, bus.listening(tenant_id) as every:
        await wait_until_read(one)
        await wait_until_read(every)
        await publish(redis, tenant_id, OTHER)
        assert await every.woken(MAX_WAIT_SECONDS)
        assert not await one.woken(0)
        await publish(redis, tenant_id, GRAPH)
        assert await one.woken(MAX_WAIT_SECONDS)


@pytest.mark.proves("security: change-entries")
async def test_a_listener_is_not_woken_for_another_tenant(bus: ChangeBus, redis: Redis) -> None:
    tenant_id, stranger = uuid4(), uuid4()
    with bus.listening(tenant_id) as one, bus.listening(stranger) as other:
        await wait_until_read(one)
        await wait_until_read(other)
        await publish(redis, stranger, GRAPH)
        assert await other.woken(MAX_WAIT_SECONDS)
        assert not await one.woken(0)


async def test_a_new_tenants_stream_is_read_at_once(bus: ChangeBus) -> None:
    with bus.listening(uuid4()) as first:
        await wait_until_read(first)
        async with asyncio.timeout(BLOCK_SECONDS):  # Otherwise, it would wait for the read that has begun.
            for _ in range(5):
                with bus.listening(uuid4()) as late:
                    await wait_until_read(late)


async def test_the_bus_pauses_without_listeners_and_resumes(bus: ChangeBus, redis: Redis) -> None:
    for _ in range(2):
        tenant_id = uuid4()
        with bus.listening(tenant_id) as one:
            await wait_until_read(one)
            await publish(redis, tenant_id, GRAPH)
            assert await one.woken(MAX_WAIT_SECONDS)


@pytest.mark.proves("security: change-entries")
async def test_an_invalid_entry_wakes_nobody_and_stops_nothing(bus: ChangeBus, redis: Redis) -> None:
    tenant_id = uuid4()
    with bus.listening(tenant_id) as one:
        await wait_until_read(one)
        await redis.xadd(stream_of(tenant_id), {"g": "too short", "x": "y"})
        await publish(redis, tenant_id, GRAPH)
        assert await one.woken(MAX_WAIT_SECONDS)


async def test_a_stream_is_capped_and_expires(redis: Redis) -> None:
    tenant_id, publisher = uuid4(), ChangePublisher(redis)
    for revision in range(STREAM_LENGTH * 2):
        publisher.publish(tenant_id, {uuid4(): revision})
        await asyncio.sleep(0)
    await publisher.aclose()
    assert 0 < await redis.xlen(stream_of(tenant_id)) < STREAM_LENGTH * 1.5
    assert 0 < await redis.ttl(stream_of(tenant_id)) <= 3_600


async def test_concurrent_writes_of_one_graph_are_published_together(redis: Redis) -> None:
    tenant_id, publisher = uuid4(), ChangePublisher(redis)
    for revision in range(1, 100):
        publisher.publish(tenant_id, {GRAPH: revision})
    await publisher.aclose()
    [(_, fields)] = await redis.xrange(stream_of(tenant_id))
    assert fields == {b"g": GRAPH.bytes, b"r": b"99"}


async def test_a_hanging_redis_blocks_nobody_and_the_backlog_is_limited() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = Settings(redis_url=f"redis://127.0.0.1:{silent.getsockname()[1]}/0", redis_timeout_seconds=0.2)
        async with connect_redis(settings) as redis, asyncio.timeout(MAX_WAIT_SECONDS):
            publisher, before = ChangePublisher(redis), len(asyncio.all_tasks())
            for _ in range(5_000):
                publisher.publish(uuid4(), {GRAPH: 1})
            assert len(asyncio.all_tasks()) - before <= 1
            await publisher.aclose()


async def test_rolled_back_writes_are_not_announced(settings: Settings, caller: Caller) -> None:
    told: list[object] = []
    async with Database.connect(
        settings.database_url, settings=settings, on_written=lambda tenant, written: told.append((tenant, written))
    ) as database:
        async with database.transaction(caller, commit=False) as tx:
            tx.announce(GRAPH, 1)
        async with database.transaction(caller) as tx:
            async with tx.dry_run():
                tx.announce(GRAPH, 2)
            tx.announce(OTHER, 3)
    assert told == [(caller.tenant_id, {OTHER: 3})]
