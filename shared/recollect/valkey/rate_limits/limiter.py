"""The rate limiter: it counts in Redis, and in this process while Redis is unreachable."""

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

from recollect.telemetry import metrics
from recollect.valkey.rate_limits.model import LimitState, RateDecision, RateLimit, RateLimited
from recollect.valkey.rate_limits.process_counters import REMEMBERED, Clock, TokenBuckets
from recollect.valkey.rate_limits.redis_counters import SharedWindows

REST_SECONDS = 1.0
"""The pause between two tries of Redis after it was found unreachable."""

REFUSE_SECONDS = 1.0
"""The longest time for which a subject that reached its limit is refused without counting."""

_UNREACHABLE = (RedisError, OSError, TimeoutError)

_PROBE = RateLimit("probe", "recollect:rate:probe", quota=1_000_000)

log = structlog.get_logger(__name__)


class RateLimiter:
    """Counts requests. No caller gets an error while Redis is unreachable, or waits for it longer than `wait_seconds`.

    While Redis is unreachable, this process counts by itself, with a `local_share` of each limit, and tries Redis again
    in the background until it is back, even without requests, so that metrics stay true. Requests beyond a limit are
    cheap: the limit is remembered here as reached, for as long as that is certain.
    """

    def __init__(self, redis: Redis, *, wait_seconds: float, local_share: float, clock: Clock = time.monotonic) -> None:
        self._shared = SharedWindows(redis)
        self._local = TokenBuckets(local_share, clock)
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._refused: LRUCache[RateLimit, tuple[float, LimitState]] = LRUCache(REMEMBERED)
        self._is_unreachable = False
        self._probing: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        metrics.record_redis_unreachable(unreachable=False)

    async def take(self, *limits: RateLimit) -> RateDecision:
        """Count a request for all of these limits, or for none: raises RateLimited where one of them is reached."""
        return await self._ask(limits, take=True)

    async def peek(self, *limits: RateLimit) -> RateDecision:
        """The same without counting the request."""
        return await self._ask(limits, take=False)

    def raise_if_recently_refused(self, *limits: RateLimit) -> None:
        """Raise RateLimited where one of these limits was reached a moment ago, and certainly still is."""
        now = self._clock()
        for limit in limits:
            at, state = self._refused.get(limit, (0.0, None))
            if state is not None and now < at + min(state.reset, REFUSE_SECONDS):
                metrics.record_refused_request(limit.policy)
                current = replace(state, reset=at + state.reset - now)
                raise RateLimited(current, (current,))

    async def aclose(self) -> None:
        """Stop trying Redis, where it is unreachable. A try that is under way ends by its own time limit."""
        self._closing.set()
        if self._probing is not None:
            await self._probing

    async def _ask(self, limits: tuple[RateLimit, ...], *, take: bool) -> RateDecision:
        if not limits:
            return RateDecision(())
        self.raise_if_recently_refused(*limits)
        decision = await self._ask_redis(limits, take=take) or self._local.ask(limits, take=take)
        if decision.reached is not None:
            metrics.record_refused_request(decision.reached.limit.policy)
            [reached] = [limit for limit in limits if limit.subject == decision.reached.limit.subject]
            self._refused[reached] = self._clock(), decision.reached
            raise RateLimited(decision.reached, decision.states)
        return decision

    async def _ask_redis(self, limits: tuple[RateLimit, ...], *, take: bool) -> RateDecision | None:
        """The decision by the counts in Redis; None while it is unreachable."""
        if self._is_unreachable:
            return None
        try:
            return await self._in_time(limits, take=take)
        except _UNREACHABLE as error:
            self._note_unreachable(error)
            return None

    async def _in_time(self, limits: Sequence[RateLimit], *, take: bool) -> RateDecision:
        async with asyncio.timeout(self._wait_seconds):
            return await self._shared.ask(limits, take=take)

    def _note_unreachable(self, error: Exception) -> None:
        if not self._is_unreachable:
            self._is_unreachable = True
            metrics.record_redis_unreachable(unreachable=True)
            log.warning("cannot use Redis, rate limits are counted in this gateway alone", reason=type(error).__name__)
            # In a context of its own: it outlives the request that found Redis unavailable, and is no part of its
            # trace.
            self._probing = asyncio.create_task(self._probe_until_back(), context=Context())

    async def _probe_until_back(self) -> None:
        """Count a probe in Redis until it succeeds: a Redis that accepts no writes counts as unreachable, too."""
        with suppress_instrumentation():
            while self._is_unreachable:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), REST_SECONDS)
                    return
                with suppress(*_UNREACHABLE):
                    await self._in_time([_PROBE], take=True)
                    self._is_unreachable = False
        metrics.record_redis_unreachable(unreachable=False)
        log.info("rate limits are counted in Redis again")
