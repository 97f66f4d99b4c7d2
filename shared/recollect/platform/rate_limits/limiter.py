"""The way to rate limits: counts in Redis, and in this process while Redis is away."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import replace

import structlog
from cachetools import LRUCache
from opentelemetry.instrumentation.utils import suppress_instrumentation
from redis.asyncio import Redis
from redis.exceptions import RedisError

from recollect.platform import metrics
from recollect.platform.rate_limits.local import REMEMBERED, Clock, TokenBuckets
from recollect.platform.rate_limits.model import RateDecision, RateLimit, RateLimited, Standing
from recollect.platform.rate_limits.shared import SharedWindows

REST_SECONDS = 1.0
"""How long Redis is left alone between two tries after it was found away."""

REFUSE_SECONDS = 1.0
"""How long a subject is refused without asking anything, at most, after it was found to have nothing left."""

_AWAY = (RedisError, OSError, TimeoutError)

_PROBE = RateLimit("probe", "recollect:rate:probe", quota=1_000_000)

log = structlog.get_logger(__name__)


class RateLimiter:
    """Counts requests. No caller meets an error because Redis is away, or waits for it longer than `wait_seconds`.

    While Redis is away, this process counts by itself, a `local_share` of each limit, and tries Redis again in the
    background until it is back, whether requests come meanwhile or not: what metrics tell of it holds. Who has nothing
    left costs nothing: that is remembered here, for as long as it is sure to hold.
    """

    def __init__(self, redis: Redis, *, wait_seconds: float, local_share: float, clock: Clock = time.monotonic) -> None:
        self._shared = SharedWindows(redis)
        self._local = TokenBuckets(local_share, clock)
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._refused: LRUCache[RateLimit, tuple[float, Standing]] = LRUCache(REMEMBERED)
        self._is_away = False
        self._probing: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        metrics.record_redis_away(away=False)

    async def take(self, *limits: RateLimit) -> RateDecision:
        """Count a request for all of these limits, or for none: raises RateLimited where one of them is reached."""
        return await self._ask(limits, take=True)

    async def look(self, *limits: RateLimit) -> RateDecision:
        """The same without counting."""
        return await self._ask(limits, take=False)

    def require_unrefused(self, *limits: RateLimit) -> None:
        """Raise RateLimited where one of these limits was reached a moment ago, and surely is so still."""
        now = self._clock()
        for limit in limits:
            at, standing = self._refused.get(limit, (0.0, None))
            if standing is not None and now < at + min(standing.reset, REFUSE_SECONDS):
                metrics.record_refused_request(limit.policy)
                told = replace(standing, reset=at + standing.reset - now)
                raise RateLimited(told, (told,))

    async def aclose(self) -> None:
        """Try Redis no more, where it is away. A try that is under way ends by itself, as soon as one always does."""
        self._closing.set()
        if self._probing is not None:
            await self._probing

    async def _ask(self, limits: tuple[RateLimit, ...], *, take: bool) -> RateDecision:
        if not limits:
            return RateDecision(())
        self.require_unrefused(*limits)
        answer = await self._ask_redis(limits, take=take) or self._local.ask(limits, take=take)
        if answer.reached is not None:
            metrics.record_refused_request(answer.reached.limit.policy)
            [limit] = [each for each in limits if each.subject == answer.reached.limit.subject]
            self._refused[limit] = self._clock(), answer.reached
            raise RateLimited(answer.reached, answer.standings)
        return answer

    async def _ask_redis(self, limits: tuple[RateLimit, ...], *, take: bool) -> RateDecision | None:
        """What Redis says; None while it is away."""
        if self._is_away:
            return None
        try:
            return await self._in_time(limits, take=take)
        except _AWAY as error:
            self._note_away(error)
            return None

    async def _in_time(self, limits: Sequence[RateLimit], *, take: bool) -> RateDecision:
        async with asyncio.timeout(self._wait_seconds):
            return await self._shared.ask(limits, take=take)

    def _note_away(self, error: Exception) -> None:
        if not self._is_away:
            self._is_away = True
            metrics.record_redis_away(away=True)
            log.warning("requests are counted without Redis, by this gateway alone", reason=type(error).__name__)
            # In a context of its own: it outlives the request that found Redis away, and is no part of its trace.
            self._probing = asyncio.create_task(self._probe_until_back(), context=Context())

    async def _probe_until_back(self) -> None:
        """Count something in Redis: one that answers, but does not take anything, is away as well."""
        with suppress_instrumentation():
            while self._is_away:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), REST_SECONDS)
                    return
                with suppress(*_AWAY):
                    await self._in_time([_PROBE], take=True)
                    self._is_away = False
        metrics.record_redis_away(away=False)
        log.info("requests are counted in Redis again")
