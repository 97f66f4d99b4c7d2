"""Listeners during faults: Redis is flushed, stopped and started, gateways stop, and readers are slow."""

import asyncio
import itertools
import random
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import httpx2
import pytest
from mcp.shared.subscriptions import ResourceUpdated
from redis.asyncio import Redis

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.valkey.change_channel import channel_of
from recollect_gateway.app import create_app
from recollect_local.valkey import LocalValkey
from tests.support.gateway import MODERN, RunningGateway, eventually, revision_of, serving
from tests.support.memories import Agent
from tests.support.ports import reserved_port
from tests.support.streams import EventReader, listening
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.support.workers import working

NEVER = 600.0
"""Seconds between checks: so long that a test receives changes only by the bus."""

_numbers = itertools.count(1)


@pytest.fixture
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalValkey]:
    server = LocalValkey(tmp_path_factory.mktemp("valkey"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def own(settings: Settings, valkey: LocalValkey) -> Settings:
    """Settings with a Redis of the test, without which listeners receive nothing."""
    return settings.model_copy(update={"redis_url": valkey.url, "stream_check_seconds": NEVER})


@pytest.fixture
def gateways(own: Settings) -> Iterator[tuple[RunningGateway, RunningGateway]]:
    with serving(own) as one, serving(own) as two:
        yield one, two


@pytest.fixture
async def agent(db: Database, caller: Caller) -> Agent:
    """The agent of an existing graph. Its writes are not announced."""
    agent = Agent(db, caller, None)
    await agent.create("first")
    return agent


async def write(http: httpx2.AsyncClient) -> None:
    """Write one revision through a gateway."""
    body = {"items": [{"text": f"this happened, and it was number {next(_numbers)}"}]}
    answer = await http.post("/v1/graphs/default/memories", json=body)
    assert answer.status_code == 200, answer.text


async def next_revision(stream: EventReader) -> int:
    async with asyncio.timeout(MAX_WAIT_SECONDS):
        return int((await stream.named()).data["revision"])


async def restart(valkey: LocalValkey) -> None:
    await asyncio.to_thread(valkey.stop)
    await asyncio.to_thread(valkey.start)


@pytest.mark.usefixtures("agent")
async def test_writes_of_a_gateway_and_a_worker_are_received_at_another_gateway(
    gateways: tuple[RunningGateway, RunningGateway], own: Settings, key: str, tmp_path: Path
) -> None:
    one, two = gateways
    async with listening(two, key) as stream, one.http(key) as http:
        await write(http)
        assert await next_revision(stream) == 2
        lines = {"Content-Type": "application/x-ndjson"}
        record = b'{"type":"entity","name":"Ann","entityType":"person","observations":["Ann sings"]}\n'
        with working(own, tmp_path):
            started = await http.post("/v1/graphs/default/imports?format=jsonl", content=record, headers=lines)
            assert started.status_code == 202, started.text
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                change = await stream.named()
        assert (change.data["revision"], change.data["operation"]) == (3, "import")


@pytest.mark.usefixtures("agent")
async def test_changes_are_received_once_and_in_order_during_faults_of_redis(
    gateways: tuple[RunningGateway, RunningGateway], key: str, valkey: LocalValkey
) -> None:
    one, two = gateways
    uri = "recollect://graphs/default"
    async with (
        one.http(key) as http,
        listening(two, key) as stream,
        two.client(key, "/mcp", revision=MODERN) as client,
        client.listen(resource_subscriptions=[uri]) as subscription,
    ):
        await write(http)
        assert await next_revision(stream) == 2
        async with Redis.from_url(valkey.url) as redis:
            await redis.flushall()
        await write(http)
        assert await next_revision(stream) == 3
        await asyncio.to_thread(valkey.stop)
        await write(http)
        await write(http)
        await asyncio.to_thread(valkey.start)
        assert [await next_revision(stream), await next_revision(stream)] == [4, 5]
        await write(http)
        assert await next_revision(stream) == 6
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            assert await anext(aiter(subscription)) == ResourceUpdated(uri)


async def test_listeners_that_reconnect_miss_nothing_during_faults_of_redis(
    gateways: tuple[RunningGateway, RunningGateway],
    key: str,
    valkey: LocalValkey,
    agent: Agent,
    db: Database,
    caller: Caller,
    seed: int,
) -> None:
    """Listeners break off and reconnect at either gateway, while Redis is flushed and restarted."""
    chance, told = random.Random(seed), [1]
    writes = 12

    async def writing() -> None:
        async with gateways[0].http(key) as one, gateways[1].http(key) as two:
            for _ in range(writes):
                await write(chance.choice((one, two)))
                await asyncio.sleep(chance.uniform(0, 0.1))

    async def troubling() -> None:
        for _ in range(3):
            await asyncio.sleep(chance.uniform(0, 0.3))
            if chance.random() < 0.5:
                await restart(valkey)
            else:
                async with Redis.from_url(valkey.url) as redis:
                    await redis.flushall()

    async def listens() -> None:
        while told[-1] < writes + 1:
            async with listening(chance.choice(gateways), key, last=told[-1]) as stream:
                for _ in range(min(chance.randint(1, 4), writes + 1 - told[-1])):
                    told.append(await next_revision(stream))

    async with asyncio.timeout(3 * MAX_WAIT_SECONDS), asyncio.TaskGroup() as tasks:
        for work in (writing, troubling, listens):
            tasks.create_task(work())
    assert told == list(range(1, writes + 2))
    assert await revision_of(db, caller) == writes + 1


@pytest.mark.proves("security: change-messages")
async def test_forged_messages_in_the_channel_of_changes_mislead_no_listener(
    gateways: tuple[RunningGateway, RunningGateway], key: str, valkey: LocalValkey, agent: Agent, caller: Caller
) -> None:
    """Others who can write to Redis can make listeners read, but not deceive them."""
    one, two = gateways
    async with listening(two, key) as stream, one.http(key) as http, Redis.from_url(valkey.url) as redis:
        await redis.acl_setuser("default", enabled=True, reset_channels=True)
        await write(http)  # Redis refuses what is to be published, and has cut the listeners off.
        await redis.acl_setuser("default", enabled=True, channels=["*"])
        for message in (b"x" * 24, b"\xff" * 24, b"another thing"):
            await redis.publish(channel_of(caller.tenant_id), message)
        await write(http)
        assert [await next_revision(stream), await next_revision(stream)] == [2, 3]


class TestSlowReaders:
    CHANGES = 2_500

    @pytest.fixture
    async def long_log(self, agent: Agent, owner: asyncpg.Connection, caller: Caller) -> int:
        """Write a log of 10 MB, more than the systems in between buffer; returns its newest revision."""
        await owner.execute(
            "INSERT INTO changes SELECT tenant_id, graph_id, revision + n, at, actor, 'test', "
            "(SELECT array_agg(gen_random_uuid()) FROM generate_series(1, 100 + n - n)), '{}' "
            "FROM changes, generate_series(1, $2) AS n WHERE tenant_id = $1",
            caller.tenant_id,
            self.CHANGES,
        )
        await owner.execute(
            "UPDATE graph_heads SET revision = revision + $2 WHERE tenant_id = $1", caller.tenant_id, self.CHANGES
        )
        return self.CHANGES + 1

    @pytest.mark.proves("security: stream-bounds")
    async def test_a_slow_reader_is_cut_off_and_can_continue(self, settings: Settings, key: str, long_log: int) -> None:
        app = create_app(settings.model_copy(update={"answer_seconds": 0.5}))
        with serving(settings.model_copy(update={"answer_seconds": 0.5}), app) as gateway:
            read = await self._taken_late(gateway, key, app)
            assert read.startswith(b"HTTP/1.1 200")
            whole = read[: read.rindex(b"\n\n", 0, read.rindex(b"\r\n")) + 2]
            last = max(int(line.rpartition(b"-")[2]) for line in whole.splitlines() if line.startswith(b"id: "))
            assert 1 < last < long_log
            async with listening(gateway, key, last=last) as stream:
                assert await stream.changes(long_log) == list(range(last + 1, long_log + 1))

    async def _taken_late(self, gateway: RunningGateway, key: str, app: Any) -> bytes:
        """The bytes that a client gets that reads nothing until it was cut off."""
        address, loop = urlsplit(gateway.url), asyncio.get_running_loop()
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await loop.sock_connect(client, (str(address.hostname), address.port))
            request = (
                "GET /v1/graphs/default/changes?after_revision=0 HTTP/1.1\r\nHost: localhost:1\r\n"
                f"Authorization: Bearer {key}\r\nAccept: text/event-stream\r\n\r\n"
            )
            await loop.sock_sendall(client, request.encode())
            await eventually(lambda: has(app, 1))
            await eventually(lambda: has(app, 0))
            read = b""
            try:
                while part := await loop.sock_recv(client, 65536):
                    read += part
            except ConnectionResetError:
                pass
            return read


async def has(app: Any, streams: int) -> bool:
    """Whether the gateway has so many streams open."""
    return len(app.state.streams) == streams


@pytest.mark.usefixtures("agent")
async def test_a_gateway_that_is_stopped_ends_its_streams(settings: Settings, key: str, tmp_path: Path) -> None:
    with (
        reserved_port() as port,
        working(settings.model_copy(update={"port": port}), tmp_path, "recollect_gateway") as process,
    ):
        gateway = RunningGateway(f"http://127.0.0.1:{port}")
        async with gateway.http() as http:
            await eventually(lambda: serves(http))
        async with listening(gateway, key) as stream:
            process.send(signal.SIGTERM)
            assert (await stream.named("end")).data == {"reason": "draining"}
            assert await stream.next() is None
        assert await asyncio.to_thread(process.wait) == 0


async def serves(http: httpx2.AsyncClient) -> bool:
    try:
        return (await http.get("/health/ready")).status_code == 200
    except httpx2.TransportError:
        return False
