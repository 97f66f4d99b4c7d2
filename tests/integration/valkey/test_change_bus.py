"""The change bus: a listener is woken when a graph of its tenant is written, and not for other tenants."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from redis.asyncio import Redis
from redis.asyncio.client import PubSub

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.valkey.change_bus import ChangeBus, Listener
from recollect.valkey.change_messages import ChangeMessage, ChangePublisher, channel_of
from recollect.valkey.client import connect_redis
from recollect_local.valkey import LocalValkey
from tests.support.gateway import eventually, until
from tests.support.timeouts import MAX_WAIT_SECONDS

GRAPH, OTHER = uuid4(), uuid4()


@pytest.fixture
async def redis(settings: Settings) -> AsyncIterator[Redis]:
    async with connect_redis(settings) as redis:
        yield redis


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[LocalValkey]:
    """A Redis of the test."""
    server = LocalValkey(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def bus(settings: Settings) -> AsyncIterator[ChangeBus]:
    async with connect_redis(settings, connections=1) as redis:
        bus = ChangeBus(redis)
        async with bus.running():
            yield bus


async def publish(redis: Redis, tenant_id: UUID, graph_id: UUID, revision: int = 1) -> None:
    publisher = ChangePublisher(redis)
    publisher.publish(tenant_id, {graph_id: revision})
    await publisher.aclose()


async def wait_until_followed(listener: Listener) -> None:
    """Wait until the tenant's channel is followed, for which the listener is woken the first time."""
    assert await listener.woken(MAX_WAIT_SECONDS)


async def test_a_listener_for_one_graph_is_woken_for_it_alone(bus: ChangeBus, redis: Redis) -> None:
    tenant_id = uuid4()
    with bus.listening(tenant_id, frozenset({GRAPH})) as one, bus.listening(tenant_id) as every:
        await wait_until_followed(one)
        await wait_until_followed(every)
        await publish(redis, tenant_id, OTHER)
        assert await every.woken(MAX_WAIT_SECONDS)
        assert not await one.woken(0)
        await publish(redis, tenant_id, GRAPH)
        assert await one.woken(MAX_WAIT_SECONDS)


@pytest.mark.proves("security: change-entries")
async def test_a_listener_is_not_woken_for_another_tenant(bus: ChangeBus, redis: Redis) -> None:
    tenant_id, stranger = uuid4(), uuid4()
    with bus.listening(tenant_id) as one, bus.listening(stranger) as other:
        await wait_until_followed(one)
        await wait_until_followed(other)
        await publish(redis, stranger, GRAPH)
        assert await other.woken(MAX_WAIT_SECONDS)
        assert not await one.woken(0)


async def test_a_new_tenant_is_followed_while_the_bus_waits_for_messages(
    bus: ChangeBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.valkey.change_bus.SILENCE_SECONDS", 10 * MAX_WAIT_SECONDS)
    with bus.listening(uuid4()) as first:
        await wait_until_followed(first)
        for _ in range(5):
            with bus.listening(uuid4()) as late:
                await wait_until_followed(late)


async def test_a_tenant_without_listeners_is_followed_no_longer(bus: ChangeBus, redis: Redis) -> None:
    tenant_id = uuid4()

    async def is_left() -> bool:
        return not (await redis.pubsub_numsub(channel_of(tenant_id)))[0][1]

    with bus.listening(uuid4()) as other:
        await wait_until_followed(other)
        for _ in range(2):
            with bus.listening(tenant_id) as one:
                await wait_until_followed(one)
                assert bus.is_following(tenant_id)
            assert not bus.is_following(tenant_id)
            await eventually(is_left)


async def test_listeners_are_woken_after_a_connection_is_lost(bus: ChangeBus, redis: Redis) -> None:
    tenant_id = uuid4()
    with bus.listening(tenant_id) as one:
        await wait_until_followed(one)
        await redis.client_kill_filter(_type="pubsub")
        await wait_until_followed(one)
        await publish(redis, tenant_id, GRAPH)
        assert await one.woken(MAX_WAIT_SECONDS)


async def test_a_redis_that_answers_no_more_is_not_followed(
    settings: Settings, valkey: LocalValkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.valkey.change_bus.SILENCE_SECONDS", 0.1)
    own, tenant_id = settings.model_copy(update={"redis_url": valkey.url}), uuid4()
    async with connect_redis(own) as redis, connect_redis(own, connections=1) as of_bus:
        bus = ChangeBus(of_bus)
        async with bus.running():
            with bus.listening(tenant_id) as one:
                await wait_until_followed(one)
                assert valkey.pid is not None
                os.kill(valkey.pid, signal.SIGSTOP)
                try:
                    await until(lambda: not bus.is_following(tenant_id))
                finally:
                    os.kill(valkey.pid, signal.SIGCONT)
                await wait_until_followed(one)
                await publish(redis, tenant_id, GRAPH)
                assert await one.woken(MAX_WAIT_SECONDS)


async def test_the_bus_pauses_without_listeners_and_resumes(bus: ChangeBus, redis: Redis) -> None:
    for _ in range(2):
        tenant_id = uuid4()
        with bus.listening(tenant_id) as one:
            await wait_until_followed(one)
            await publish(redis, tenant_id, GRAPH)
            assert await one.woken(MAX_WAIT_SECONDS)


@pytest.mark.proves("security: change-entries")
async def test_an_invalid_entry_wakes_nobody_and_stops_nothing(bus: ChangeBus, redis: Redis) -> None:
    tenant_id = uuid4()
    with bus.listening(tenant_id) as one:
        await wait_until_followed(one)
        for data in (b"too short", b"x" * 24, b""):
            await redis.publish(channel_of(tenant_id), data)
        await publish(redis, tenant_id, GRAPH)
        assert await one.woken(MAX_WAIT_SECONDS)


async def test_concurrent_writes_of_one_graph_are_published_together(redis: Redis) -> None:
    tenant_id, publisher = uuid4(), ChangePublisher(redis)
    async with redis.pubsub(ignore_subscribe_messages=True) as pubsub:
        await pubsub.subscribe(channel_of(tenant_id))
        for revision in range(1, 100):
            publisher.publish(tenant_id, {GRAPH: revision})
        publisher.publish(tenant_id, {OTHER: 1})
        await publisher.aclose()
        messages = [message async for message in _first(pubsub, 2)]
    changes = [ChangeMessage.decode(message["data"]) for message in messages]
    assert {change.graph_id for change in changes if change is not None} == {GRAPH, OTHER}


async def _first(pubsub: PubSub, count: int) -> AsyncIterator[dict[str, Any]]:
    """The first messages; no others follow them for a moment."""
    async with asyncio.timeout(MAX_WAIT_SECONDS):
        while count:
            message = await pubsub.get_message(timeout=MAX_WAIT_SECONDS)
            if message is not None:
                count -= 1
                yield message
    assert await pubsub.get_message(timeout=0.01) is None


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
