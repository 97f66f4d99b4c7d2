"""Presence: workers are told, by way of Redis, whose calls gateways have served a moment ago. Best effort.

What a worker does in bulk rests beside such calls. Nothing depends on it: where Redis is away, nobody is known to call.
A tenant whose calls queue is not told of: who floods is nobody to make room for.
"""

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

TELL_SECONDS = 0.5
"""How often a gateway tells of calls at most, whatever it serves."""

PRESENT_SECONDS = 2
"""How long a tenant counts as one that calls, after that was told; by the clock of Redis, in whole seconds."""

LOOK_SECONDS = 0.25
"""How long what Redis said is taken for true; also how long it is waited for."""

AWAY_SECONDS = 1.0
"""How long Redis is not asked again after it did not answer."""

MOST = 2
"""Tenants that are told of, and asked for, at a time: of two, one is another than the one that is worked for."""

_KEY = "recollect:present"

_TELL = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[i]) end
redis.call('EXPIRE', KEYS[1], ARGV[1])
"""

_LOOK = "return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. redis.call('TIME')[1], '+inf', 'LIMIT', 0, ARGV[1])"

log = structlog.get_logger(__name__)


class PresenceTeller:
    """Tells of a gateway's calls, in the background: one round trip every TELL_SECONDS, and none where nobody calls."""

    def __init__(self, redis: Redis, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._script, self._clock = redis.register_script(_TELL), clock
        self._noted = dict[UUID, float]()
        self._again_at = 0.0
        self._telling: asyncio.Task[None] | None = None

    def note(self, tenant_id: UUID) -> None:
        """A call of this tenant is at work, and none of its calls waits. Returns at once and never raises."""
        now = self._clock()
        self._noted = {tenant: at for tenant, at in self._noted.items() if now - at < PRESENT_SECONDS}
        if len(self._noted) < MOST:
            self._noted[tenant_id] = now
        if now < self._again_at or (self._telling is not None and not self._telling.done()):
            return
        self._again_at = now + TELL_SECONDS
        noted, self._noted = self._noted, {}
        self._telling = asyncio.create_task(self._tell([tenant.bytes for tenant in noted]))

    async def aclose(self) -> None:
        """Wait for what is on its way."""
        if self._telling is not None:
            await self._telling

    async def _tell(self, tenants: list[bytes]) -> None:
        try:
            async with asyncio.timeout(TELL_SECONDS):
                await self._script(keys=[_KEY], args=[PRESENT_SECONDS, *tenants])
        except (RedisError, OSError, TimeoutError) as error:
            log.debug("workers not told who calls", reason=type(error).__name__)


class Presence:
    """Whose calls all gateways have served a moment ago, for a worker."""

    def __init__(self, redis: Redis, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._script, self._clock = redis.register_script(_LOOK), clock
        self._tenants = frozenset[bytes]()
        self._holds_until = 0.0

    async def any_but(self, tenant_id: UUID) -> bool:
        """Whether another tenant calls, as far as is known. Never raises."""
        if self._clock() >= self._holds_until:
            await self._look()
        return bool(self._tenants - {tenant_id.bytes})

    async def _look(self) -> None:
        lasts = LOOK_SECONDS
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                self._tenants = frozenset(await self._script(keys=[_KEY], args=[MOST]))
        except (RedisError, OSError, TimeoutError) as error:
            self._tenants, lasts = frozenset(), AWAY_SECONDS
            log.debug("not known who calls", reason=type(error).__name__)
        self._holds_until = self._clock() + lasts
