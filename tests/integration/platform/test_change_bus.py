"""The bus: who listens is woken when a graph of their tenant was written, and by nothing of another's."""

import asyncio
import socket
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest
from redis.asyncio import Redis

from recollect.caller import Caller
from recollect.platform.cache import connect_redis
from recollect.platform.change_bus import BLOCK_SECONDS, ChangeBus, Listener
from recollect.platform.change_stream import STREAM_LENGTH, ChangePublisher, stream_of
from recollect.platform.db import Database
from recollect.settings import Settings
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


async def tell(redis: Redis, tenant_id: UUID, graph_id: UUID, revision: int = 1) -> None:
    publisher = ChangePublisher(redis)
    publisher.publish(tenant_id, {graph_id: revision})
    await publisher.aclose()


async def settled(listener: Listener) -> None:
    """Its tenant's stream is read from now on, which is the first that it is woken for."""
    assert await listener.woken(MAX_WAIT_SECONDS)


async def test_who_listens_to_a_graph_is_woken_for_it_alone(bus: ChangeBus, redis: Redis) -> None:
    tenant_id = uuid4()
    with bus.listening(tenant_id, frozenset({GRAPH})) as one, bus.listening(tenant_id) as every:
        await settled(one)
        await settled(every)
        await tell(redis, tenant_id, OTHER)
        assert await every.woken(MAX_WAIT_SECONDS)
        assert not await one.woken(0)
        await tell(redis, tenant_id, GRAPH)
        assert await one.woken(MAX_WAIT_SECONDS)


async def test_nobody_is_woken_for_another_tenant(bus: ChangeBus, redis: Redis) -> None:
    tenant_id, stranger = uuid4(), uuid4()
    with bus.listening(tenant_id) as one, bus.listening(stranger) as other:
        await settled(one)
        await settled(other)
        await tell(redis, stranger, GRAPH)
        assert await other.woken(MAX_WAIT_SECONDS)
        assert not await one.woken(0)


async def test_a_tenant_that_comes_while_the_streams_of_others_are_read_is_read_at_once(bus: ChangeBus) -> None:
    with bus.listening(uuid4()) as first:
        await settled(first)
        async with asyncio.timeout(BLOCK_SECONDS):  # Else it would wait for the reading that has begun.
            for _ in range(5):
                with bus.listening(uuid4()) as late:
                    await settled(late)


async def test_once_nobody_listens_it_rests_and_it_comes_back(bus: ChangeBus, redis: Redis) -> None:
    for _ in range(2):
        tenant_id = uuid4()
        with bus.listening(tenant_id) as one:
            await settled(one)
            await tell(redis, tenant_id, GRAPH)
            assert await one.woken(MAX_WAIT_SECONDS)


async def test_what_is_no_entry_of_ours_wakes_nobody_and_stops_nothing(bus: ChangeBus, redis: Redis) -> None:
    tenant_id = uuid4()
    with bus.listening(tenant_id) as one:
        await settled(one)
        await redis.xadd(stream_of(tenant_id), {"g": "too short", "x": "y"})
        await tell(redis, tenant_id, GRAPH)
        assert await one.woken(MAX_WAIT_SECONDS)


async def test_a_stream_is_capped_and_ends_by_itself(redis: Redis) -> None:
    tenant_id, publisher = uuid4(), ChangePublisher(redis)
    for revision in range(STREAM_LENGTH * 2):
        publisher.publish(tenant_id, {uuid4(): revision})
        await asyncio.sleep(0)
    await publisher.aclose()
    assert 0 < await redis.xlen(stream_of(tenant_id)) < STREAM_LENGTH * 1.5
    assert 0 < await redis.ttl(stream_of(tenant_id)) <= 3_600


async def test_writes_of_one_graph_that_come_while_redis_is_told_are_told_together(redis: Redis) -> None:
    tenant_id, publisher = uuid4(), ChangePublisher(redis)
    for revision in range(1, 100):
        publisher.publish(tenant_id, {GRAPH: revision})
    await publisher.aclose()
    [(_, fields)] = await redis.xrange(stream_of(tenant_id))
    assert fields == {b"g": GRAPH.bytes, b"r": b"99"}


async def test_a_redis_that_hangs_holds_up_nobody_and_little_is_held_for_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = Settings(redis_url=f"redis://127.0.0.1:{silent.getsockname()[1]}/0", redis_timeout_seconds=0.2)
        async with connect_redis(settings) as redis, asyncio.timeout(MAX_WAIT_SECONDS):
            publisher, before = ChangePublisher(redis), len(asyncio.all_tasks())
            for _ in range(5_000):
                publisher.publish(uuid4(), {GRAPH: 1})
            assert len(asyncio.all_tasks()) - before <= 1
            await publisher.aclose()


async def test_what_was_rolled_back_is_not_told(settings: Settings, caller: Caller) -> None:
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
