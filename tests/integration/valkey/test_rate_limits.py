"""Rate limits on a real Valkey: exact for all gateways together, and enforced without it."""

import asyncio
import itertools
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
import structlog
from redis.asyncio import Redis

from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.rate_limits.limiter import RateLimiter
from recollect.valkey.rate_limits.model import RateLimit, RateLimited
from recollect_local.valkey import LocalValkey
from tests.support.gateway import eventually
from tests.support.measured import Measured
from tests.support.timeouts import MAX_WAIT_SECONDS

QUOTA = 20
DAY = 86_400
_subjects = (f"test:rate:{{{number}}}" for number in itertools.count(1))


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalValkey]:
    """A Valkey that may be flushed, stopped and started."""
    server = LocalValkey(tmp_path_factory.mktemp("valkey"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def running(valkey: LocalValkey) -> LocalValkey:
    """The same Valkey, running whatever the previous test did with it."""
    valkey.start()
    return valkey


@pytest.fixture
async def redis(settings: Settings, running: LocalValkey) -> AsyncIterator[Redis]:
    """A client of it."""
    client = connect_redis(settings.model_copy(update={"redis_url": running.url}))
    yield client
    await client.aclose()


@pytest.fixture
async def two(settings: Settings, running: LocalValkey) -> AsyncIterator[list[RateLimiter]]:
    """Two limiters that share counts, as two gateways do."""
    patient = {"redis_url": running.url, "redis_timeout_seconds": MAX_WAIT_SECONDS}
    async with AsyncExitStack() as stack:
        limiters = []
        for _ in range(2):
            client = connect_redis(settings.model_copy(update=patient))
            stack.push_async_callback(client.aclose)
            limiters.append(RateLimiter(client, wait_seconds=MAX_WAIT_SECONDS, local_share=0.25))
            stack.push_async_callback(limiters[-1].aclose)
        yield limiters


@pytest.fixture
def limit() -> RateLimit:
    """A limit that no other test uses."""
    return RateLimit("tenant", next(_subjects), QUOTA)


async def passed(limiter: RateLimiter, *limits: RateLimit) -> bool:
    try:
        await limiter.take(*limits)
    except RateLimited:
        return False
    return True


async def flood(limiters: list[RateLimiter], count: int, *limits: RateLimit) -> int:
    """The number of requests that are let through of so many at once, sent to each limiter in turn."""
    asked = itertools.islice(itertools.cycle(limiters), count)
    return sum(await asyncio.gather(*(passed(limiter, *limits) for limiter in asked)))


class TestWithRedis:
    async def test_all_gateways_together_let_exactly_the_quota_pass(
        self, two: list[RateLimiter], limit: RateLimit
    ) -> None:
        assert await flood(two, QUOTA - 1, limit) == QUOTA - 1
        assert (await two[0].peek(limit)).states[0].remaining == 1
        assert await flood(two, 3 * QUOTA, limit) == 1
        for limiter in two:
            with pytest.raises(RateLimited) as refused:
                await limiter.take(limit)
            assert 1 <= refused.value.seconds <= limit.seconds + 1

    async def test_a_request_counts_towards_all_of_its_limits_or_none(
        self, two: list[RateLimiter], limit: RateLimit
    ) -> None:
        narrow = RateLimit("key", f"{limit.subject}:key", quota=5)
        other = RateLimit("key", f"{limit.subject}:other", quota=1_000)
        assert await flood(two, 3 * QUOTA, narrow, limit) == narrow.quota
        assert (await two[0].peek(limit)).states[0].remaining == QUOTA - narrow.quota
        assert await flood(two, 3 * QUOTA, other, limit) == QUOTA - narrow.quota
        assert (await two[0].peek(other)).states[0].remaining == other.quota - (QUOTA - narrow.quota)

    async def test_requests_pass_again_after_a_window(self, two: list[RateLimiter], limit: RateLimit) -> None:
        """With a window of one second: some pass when it is over, and never more than the quota in one window."""
        short = RateLimit("tenant", limit.subject, quota=3, seconds=1)
        assert await flood(two, 9, short) <= 2 * short.quota

        async def come_back() -> bool:
            return await passed(two[0], short)

        await eventually(come_back)

    async def test_requests_of_the_previous_window_count_less_and_less(
        self, two: list[RateLimiter], redis: Redis, limit: RateLimit
    ) -> None:
        """Half of the previous window's time is left, so just under half of its requests count."""
        day = replace(limit, seconds=DAY)
        await redis.set(f"{day.subject}:before", 10, ex=DAY // 2)
        await redis.set(day.subject, 3, ex=3 * DAY // 2)
        assert (await two[0].peek(day)).states[0].remaining == QUOTA - 3 - 4
        assert await flood(two, 3 * QUOTA, day) == QUOTA - 3 - 4

    async def test_a_window_that_is_over_becomes_the_previous_one(
        self, two: list[RateLimiter], redis: Redis, limit: RateLimit
    ) -> None:
        day = replace(limit, seconds=DAY)
        await redis.set(f"{day.subject}:before", QUOTA, ex=60)
        await redis.set(day.subject, 12, ex=DAY // 2)
        assert await flood(two, 3 * QUOTA, day) == QUOTA - 5
        assert await redis.get(f"{day.subject}:before") == b"12"
        assert DAY < await redis.ttl(day.subject) <= 3 * DAY // 2

    async def test_stored_counts_are_small_and_expire(
        self, two: list[RateLimiter], redis: Redis, limit: RateLimit
    ) -> None:
        for _ in range(3):
            await flood(two, 4 * QUOTA, limit)
        keys = [key async for key in redis.scan_iter(f"{limit.subject}*")]
        assert len(keys) <= 2
        for key in keys:
            assert 0 < await redis.ttl(key) <= 2 * limit.seconds
            assert await redis.memory_usage(key) < 200

    async def test_scripts_are_reloaded_and_a_flush_starts_a_new_window(
        self, two: list[RateLimiter], redis: Redis, limit: RateLimit
    ) -> None:
        assert await flood(two, 3 * QUOTA, limit) == QUOTA
        await redis.script_flush()
        await redis.flushall()

        async def begun() -> bool:
            return await passed(two[0], limit)

        await eventually(begun)  # A subject that was just refused is not looked up at once.
        await eventually(lambda: passed(two[1], limit))
        assert await flood(two, 3 * QUOTA, limit) == QUOTA - 2

    async def test_a_subject_without_quota_costs_no_request_to_redis(self, redis: Redis, limit: RateLimit) -> None:
        now = 0.0
        limiter = RateLimiter(redis, wait_seconds=MAX_WAIT_SECONDS, local_share=1.0, clock=lambda: now)
        assert await flood([limiter], QUOTA, limit) == QUOTA
        assert not await passed(limiter, limit)
        before = await script_calls(redis)
        for _ in range(100):
            assert not await passed(limiter, limit)
        assert await script_calls(redis) == before
        now = 2.0
        assert not await passed(limiter, limit)
        assert await script_calls(redis) == before + 1


async def script_calls(redis: Redis) -> int:
    stats = await redis.info("commandstats")
    return int(stats["cmdstat_evalsha"]["calls"])


class TestWithoutRedis:
    @pytest.fixture
    async def limiter(self, settings: Settings, running: LocalValkey) -> AsyncIterator[RateLimiter]:
        client = connect_redis(settings.model_copy(update={"redis_url": running.url}))
        limiter = RateLimiter(client, wait_seconds=1.0, local_share=0.25)
        yield limiter
        await limiter.aclose()
        await client.aclose()

    async def test_each_gateway_grants_a_share_until_redis_is_back(
        self, limiter: RateLimiter, running: LocalValkey, limit: RateLimit
    ) -> None:
        await limiter.take(limit)
        with structlog.testing.capture_logs() as logs:
            running.stop()
            assert await flood([limiter], 3 * QUOTA, limit) == QUOTA // 4
            states = (await limiter.peek(RateLimit("key", "another", 100))).states
            assert states[0].limit.quota == 25
            running.start()
            await eventually(lambda: shared_again(limiter))
        said = [line["event"] for line in logs]
        assert said == [
            "cannot use Redis, rate limits are counted in this gateway alone",
            "rate limits are counted in Redis again",
        ]
        assert await flood([limiter], 3 * QUOTA, limit) == QUOTA  # Valkey was killed, so the window is new.

    async def test_metrics_report_the_absence_until_redis_is_back(
        self, measured: Measured, settings: Settings, running: LocalValkey, limit: RateLimit
    ) -> None:
        def told() -> tuple[int, int]:
            [(_, away)], [(_, fallbacks)] = measured.of("recollect.redis.away"), measured.of("recollect.rate.fallbacks")
            return away.value, fallbacks.value

        async def is_back() -> bool:
            return told() == (0, 1)

        client = connect_redis(settings.model_copy(update={"redis_url": running.url}))
        limiter = RateLimiter(client, wait_seconds=1.0, local_share=0.25)
        try:
            assert told() == (0, 0), "the first absence is an increase only from a count that was there"
            running.stop()
            for _ in range(3):
                await limiter.peek(limit)
                assert told() == (1, 1)
            running.start()
            await eventually(is_back)
        finally:
            await limiter.aclose()
            await client.aclose()

    async def test_a_gateway_that_ends_without_redis_leaves_no_task(
        self, limiter: RateLimiter, running: LocalValkey, limit: RateLimit
    ) -> None:
        running.stop()
        before = asyncio.all_tasks()
        await limiter.peek(limit)
        assert len(asyncio.all_tasks() - before) == 1
        await limiter.aclose()
        assert asyncio.all_tasks() - before == set()

    async def test_a_hanging_redis_counts_as_away(
        self, limiter: RateLimiter, running: LocalValkey, limit: RateLimit
    ) -> None:
        await limiter.take(limit)
        assert running.pid is not None
        os.kill(running.pid, signal.SIGSTOP)
        try:
            assert await flood([limiter], 3 * QUOTA, limit) == QUOTA // 4
        finally:
            os.kill(running.pid, signal.SIGCONT)
        await eventually(lambda: shared_again(limiter))

    async def test_a_full_redis_counts_as_away(
        self, limiter: RateLimiter, redis: Redis, running: LocalValkey, limit: RateLimit
    ) -> None:
        await limiter.take(limit)
        await redis.config_set("maxmemory", 1)
        try:
            assert await flood([limiter], 3 * QUOTA, limit) == QUOTA // 4
            assert not await shared_again(limiter)
        finally:
            await redis.config_set("maxmemory", 0)
        await eventually(lambda: shared_again(limiter))


async def shared_again(limiter: RateLimiter) -> bool:
    """Whether it grants whole limits."""
    asked = RateLimit("tenant", "test:rate:again", 1_000)
    return (await limiter.peek(asked)).states[0].limit.quota == asked.quota
