"""The change bus: a listener is woken when a graph of its tenant is written, and not for other tenants."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from uuid import UUID, uuid4

import pytest
from redis.asyncio import Redis

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.valkey import change_bus
from recollect.valkey.change_bus import ChangeBus, Listener
from recollect.valkey.change_channel import ChangePublisher, channel_of, decode_change
from recollect.valkey.client import connect_redis
from recollect_local.valkey import LocalValkey
from tests.support.gateway import eventually, until
from tests.support.timeouts import MAX_WAIT_SECONDS

GRAPH, OTHER = uuid4(), uuid4()

Condition = Callable[[], bool]


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalValkey]:
    """A Valkey that may be stopped and started."""
    server = LocalValkey(tmp_path_factory.mktemp("valkey"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def own(settings: Settings, valkey: LocalValkey) -> Settings:
    """Settings with that Valkey, running whatever the previous test did with it."""
    valkey.start()
    return settings.model_copy(update={"redis_url": valkey.url})


@pytest.fixture
async def redis(own: Settings) -> AsyncIterator[Redis]:
    async with connect_redis(own) as redis:
        yield redis


@pytest.fixture
async def bus(own: Settings) -> AsyncIterator[ChangeBus]:
    bus = ChangeBus(own)
    async with asyncio.timeout(MAX_WAIT_SECONDS), bus.running():
        yield bus


async def publish(redis: Redis, tenant_id: UUID, graph_id: UUID) -> None:
    publisher = ChangePublisher(redis)
    publisher.publish(tenant_id, [graph_id])
    await publisher.aclose()


async def wait_until_followed(listener: Listener) -> None:
    """Wait until Redis has confirmed the subscription, for which the listener is woken."""
    assert await listener.woken(MAX_WAIT_SECONDS)


async def subscribers(redis: Redis, tenant_id: UUID) -> int:
    """How many connections are subscribed to the tenant's channel."""
    [(_, number)] = await redis.pubsub_numsub(channel_of(tenant_id))
    return int(number)


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


@pytest.mark.proves("security: change-messages")
async def test_a_listener_is_not_woken_for_another_tenant(bus: ChangeBus, redis: Redis) -> None:
    tenant_id, stranger = uuid4(), uuid4()
    with bus.listening(tenant_id) as one, bus.listening(stranger) as other:
        await wait_until_followed(one)
        await wait_until_followed(other)
        await publish(redis, stranger, GRAPH)
        assert await other.woken(MAX_WAIT_SECONDS)
        assert not await one.woken(0)


class TestSubscriptions:
    """A tenant's channel is subscribed as long as the tenant has listeners."""

    @pytest.mark.proves("security: change-messages")
    async def test_a_tenant_without_listeners_is_not_subscribed(self, bus: ChangeBus, redis: Redis) -> None:
        tenant_id, stranger = uuid4(), uuid4()
        with bus.listening(tenant_id) as one:
            await wait_until_followed(one)
            assert await subscribers(redis, stranger) == 0
            assert (bus.is_following(tenant_id), bus.is_following(stranger)) == (True, False)

    async def test_it_ends_with_the_last_listener(self, bus: ChangeBus, redis: Redis) -> None:
        tenant_id = uuid4()
        with bus.listening(tenant_id) as last:
            with bus.listening(tenant_id) as first:
                await wait_until_followed(first)
            await wait_until_followed(last)
            await publish(redis, tenant_id, GRAPH)
            assert await last.woken(MAX_WAIT_SECONDS)
            assert await subscribers(redis, tenant_id) == 1

        async def has_ended() -> bool:
            return not await subscribers(redis, tenant_id) and not bus.is_following(tenant_id)

        await eventually(has_ended)

    async def test_a_listener_that_comes_when_the_last_one_leaves_is_woken(self, bus: ChangeBus, redis: Redis) -> None:
        for rests in range(20):
            tenant_id = uuid4()
            with bus.listening(tenant_id) as one:
                await wait_until_followed(one)
            for _ in range(rests):  # The next one comes at another moment of the unsubscribing each time.
                await asyncio.sleep(0)
            with bus.listening(tenant_id) as next_one:
                await publish(redis, tenant_id, GRAPH)
                assert await next_one.woken(MAX_WAIT_SECONDS)

    async def test_thousands_of_tenants_are_followed(self, bus: ChangeBus, redis: Redis) -> None:
        with ExitStack() as stack:
            listeners = []
            for number in range(3_000):
                listeners.append(stack.enter_context(bus.listening(uuid4())))
                if number % 100 == 0:
                    await asyncio.sleep(0)
            for listener in listeners:
                await wait_until_followed(listener)
            await publish(redis, listeners[-1].tenant_id, GRAPH)
            assert await listeners[-1].woken(MAX_WAIT_SECONDS)
            assert not any([await listener.woken(0) for listener in listeners])


class TestOrder:
    """Whoever listens looks at what is stored after the subscription was confirmed, so that nothing is missed."""

    async def test_what_is_written_before_the_confirmation_is_looked_at_after_it(
        self, own: Settings, redis: Redis
    ) -> None:
        bus, tenant_id = ChangeBus(own), uuid4()
        with bus.listening(tenant_id) as one:
            await publish(redis, tenant_id, GRAPH)  # Nobody is subscribed: this message is lost.
            assert not await one.woken(0)
            async with bus.running():
                assert await one.woken(MAX_WAIT_SECONDS)
                assert bus.is_following(tenant_id)
                assert not await one.woken(0)

    async def test_a_write_beside_the_subscribing_is_seen(self, bus: ChangeBus, redis: Redis) -> None:
        stored: set[UUID] = set()

        async def write(tenant_id: UUID, rests: int) -> None:
            for _ in range(rests):
                await asyncio.sleep(0)
            stored.add(tenant_id)
            await publish(redis, tenant_id, GRAPH)

        async def listen(tenant_id: UUID) -> None:
            with bus.listening(tenant_id) as one:
                while tenant_id not in stored:
                    assert await one.woken(MAX_WAIT_SECONDS)

        async with asyncio.timeout(MAX_WAIT_SECONDS), asyncio.TaskGroup() as tasks:
            for number in range(200):
                tenant_id = uuid4()
                tasks.create_task(listen(tenant_id))
                tasks.create_task(write(tenant_id, number % 40))


class RecordingListener(Listener):
    """Notes how many turns others had when it was woken."""

    __slots__ = ("others", "woken_at")

    def __init__(self, tenant_id: UUID) -> None:
        super().__init__(tenant_id, None)
        self.others, self.woken_at = 0, list[int]()

    def wake(self, graph_id: UUID | None = None) -> None:
        self.woken_at.append(self.others)
        super().wake(graph_id)


async def test_others_go_in_between_when_many_messages_come_at_once(bus: ChangeBus, redis: Redis) -> None:
    tenant_id, messages = uuid4(), 500
    listener, publisher = RecordingListener(tenant_id), ChangePublisher(redis)
    with bus.subscribed(listener):
        await wait_until_followed(listener)
        publisher.publish(tenant_id, [uuid4() for _ in range(messages)])
        while len(listener.woken_at) <= messages:
            await asyncio.sleep(0)
            listener.others += 1
    await publisher.aclose()
    assert len(set(listener.woken_at)) == messages + 1


@pytest.mark.proves("security: change-messages")
async def test_an_invalid_message_wakes_nobody_and_stops_nothing(bus: ChangeBus, redis: Redis) -> None:
    tenant_id = uuid4()
    with bus.listening(tenant_id) as one:
        await wait_until_followed(one)
        for message in (b"", b"too short", b"x" * 1_000_000):
            await redis.publish(channel_of(tenant_id), message)
        await publish(redis, tenant_id, GRAPH)
        assert await one.woken(MAX_WAIT_SECONDS)
        assert not await one.woken(0)


async def disconnect(redis: Redis, _: LocalValkey, __: Condition) -> None:
    """Cut the bus off, as Redis does with a subscriber that reads too slowly."""
    await redis.client_kill_filter(_type="pubsub")


async def restart(_: Redis, valkey: LocalValkey, __: Condition) -> None:
    await asyncio.to_thread(valkey.stop)
    await asyncio.to_thread(valkey.start)


async def freeze(_: Redis, valkey: LocalValkey, is_cut_off: Condition) -> None:
    """Let Redis answer nothing until the bus has given its connection up."""
    assert valkey.pid is not None
    os.kill(valkey.pid, signal.SIGSTOP)
    try:
        await until(is_cut_off)
    finally:
        os.kill(valkey.pid, signal.SIGCONT)


Fault = Callable[[Redis, LocalValkey, Condition], Awaitable[None]]


class TestFaults:
    """Redis goes away and comes back."""

    @pytest.mark.parametrize("fault", [disconnect, restart, freeze])
    async def test_every_listener_is_woken_again_and_followed(
        self, own: Settings, redis: Redis, valkey: LocalValkey, fault: Fault, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(change_bus, "SILENCE_SECONDS", 0.2)
        tenants = [uuid4(), uuid4()]
        bus = ChangeBus(own.model_copy(update={"redis_timeout_seconds": 0.5}))
        with bus.listening(tenants[0]) as one, bus.listening(tenants[1]) as other:
            async with asyncio.timeout(MAX_WAIT_SECONDS), bus.running():
                for listener in (one, other):
                    await wait_until_followed(listener)
                await fault(redis, valkey, lambda: not any(map(bus.is_following, tenants)))
                for listener, tenant_id in zip((one, other), tenants, strict=True):
                    assert await listener.woken(MAX_WAIT_SECONDS)
                    await publish(redis, tenant_id, GRAPH)
                    assert await listener.woken(MAX_WAIT_SECONDS)

    async def test_a_bus_that_started_without_redis_connects_later(self, own: Settings, valkey: LocalValkey) -> None:
        valkey.stop()
        bus, tenant_id = ChangeBus(own), uuid4()
        with bus.listening(tenant_id) as one:
            async with asyncio.timeout(MAX_WAIT_SECONDS), bus.running():
                assert not await one.woken(0.1)
                await asyncio.to_thread(valkey.start)
                await wait_until_followed(one)

    async def test_a_tenant_is_not_followed_while_redis_is_unreachable(
        self, bus: ChangeBus, valkey: LocalValkey
    ) -> None:
        tenant_id = uuid4()
        with bus.listening(tenant_id) as one:
            await wait_until_followed(one)
            await asyncio.to_thread(valkey.stop)

            async def is_cut_off() -> bool:
                return not bus.is_following(tenant_id)

            await eventually(is_cut_off)


class TestStopping:
    """The bus stops, whatever Redis does."""

    async def test_it_stops_at_any_moment(self, own: Settings) -> None:
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            for rests in range(60):  # It is connecting, subscribing, or waiting.
                bus = ChangeBus(own)
                with bus.listening(uuid4()):
                    async with bus.running():
                        for _ in range(rests):
                            await asyncio.sleep(0)

    async def test_it_stops_while_redis_is_unreachable(self, own: Settings, valkey: LocalValkey) -> None:
        valkey.stop()
        bus = ChangeBus(own)
        with bus.listening(uuid4()) as one:
            async with asyncio.timeout(MAX_WAIT_SECONDS), bus.running():
                assert not await one.woken(0.1)

    async def test_it_stops_while_redis_hangs(self, own: Settings, valkey: LocalValkey) -> None:
        bus = ChangeBus(own.model_copy(update={"redis_timeout_seconds": MAX_WAIT_SECONDS}))
        assert valkey.pid is not None
        try:
            with bus.listening(uuid4()) as one:
                async with asyncio.timeout(MAX_WAIT_SECONDS / 2), bus.running():
                    await wait_until_followed(one)
                    os.kill(valkey.pid, signal.SIGSTOP)
                    with bus.listening(uuid4()):
                        assert not await one.woken(0.1)
        finally:
            os.kill(valkey.pid, signal.SIGCONT)


class TestPublishing:
    """Changes are published in the background."""

    async def test_concurrent_writes_of_one_graph_are_published_together(self, redis: Redis) -> None:
        tenant_id, publisher = uuid4(), ChangePublisher(redis)
        async with asyncio.timeout(MAX_WAIT_SECONDS), redis.pubsub() as channels:
            await channels.subscribe(channel_of(tenant_id))
            await channels.get_message(timeout=None)
            for _ in range(100):
                publisher.publish(tenant_id, [GRAPH])
            publisher.publish(tenant_id, [OTHER])
            await publisher.aclose()
            messages = [(await channels.get_message(timeout=None))["data"] for _ in range(2)]
            changes = [change for message in messages if (change := decode_change(message)) is not None]
            assert {change.graph_id for change in changes} == {GRAPH, OTHER}

    async def test_a_login_needs_the_channels_of_changes_alone(self, own: Settings, redis: Redis) -> None:
        """As docs/install.md says of a login with few rights."""
        await redis.acl_setuser(
            "few", enabled=True, passwords=["+secret"], categories=["+@all"], channels=["recollect:changes:*"]
        )
        url = own.redis_url.replace("unix://", "unix://few:secret@")
        bus, tenant_id = ChangeBus(own.model_copy(update={"redis_url": url})), uuid4()
        async with asyncio.timeout(MAX_WAIT_SECONDS), bus.running(), Redis.from_url(url) as few:
            with bus.listening(tenant_id) as one:
                await wait_until_followed(one)
                await publish(few, tenant_id, GRAPH)
                assert await one.woken(MAX_WAIT_SECONDS)

    async def test_a_hanging_redis_blocks_nobody_and_the_backlog_is_limited(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            settings = Settings(redis_url=f"redis://127.0.0.1:{silent.getsockname()[1]}/0", redis_timeout_seconds=0.2)
            async with connect_redis(settings) as redis, asyncio.timeout(MAX_WAIT_SECONDS):
                publisher, before = ChangePublisher(redis), len(asyncio.all_tasks())
                for _ in range(5_000):
                    publisher.publish(uuid4(), [GRAPH])
                assert len(asyncio.all_tasks()) - before <= 1
                await publisher.aclose()

    async def test_rolled_back_writes_are_not_announced(self, settings: Settings, caller: Caller) -> None:
        told: list[object] = []
        async with Database.connect(
            settings.database_url, settings=settings, on_written=lambda tenant, written: told.append((tenant, written))
        ) as database:
            async with database.transaction(caller, commit=False) as tx:
                tx.announce(GRAPH)
            async with database.transaction(caller) as tx:
                async with tx.dry_run():
                    tx.announce(GRAPH)
                tx.announce(OTHER)
        assert told == [(caller.tenant_id, {OTHER})]
