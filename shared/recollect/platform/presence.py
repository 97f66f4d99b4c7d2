"""Presence: workers are told, by way of Redis, whose calls gateways have served a moment ago. Best effort.

What a worker does in bulk rests beside such calls, of tenants of its own cell: calls of another cell's have another
PostgreSQL. Nothing depends on it: where Redis is away, nobody is known to call. A tenant whose calls queue is not told
of: who floods is nobody to make room for.
"""

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from recollect.settings.cells import HOME

TELL_SECONDS = 0.5
"""How often a gateway tells of calls at most, whatever it serves."""

PRESENT_SECONDS = 2
"""How long a tenant counts as one that calls, after that was told; by the clock of Redis, in whole seconds."""

LOOK_SECONDS = 0.25
"""How long what Redis said is taken for true; also how long it is waited for."""

AWAY_SECONDS = 1.0
"""How long Redis is not asked again after it did not answer."""

MOST = 2
"""Tenants of a cell that are told of, and asked for, at a time: of two, one is another than whom is worked for."""

_KEY = "recollect:present"

_TELL = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[i]) end
redis.call('EXPIRE', KEYS[1], ARGV[1])
"""

_LOOK = "return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. redis.call('TIME')[1], '+inf', 'LIMIT', 0, ARGV[1])"

log = structlog.get_logger(__name__)


def key_of(cell: str) -> str:
    """Where it is told who calls of the tenants of a cell."""
    return _KEY if cell == HOME else f"{_KEY}:{cell}"


class PresenceTeller:
    """Tells of a gateway's calls, in the background: every TELL_SECONDS, and not where nobody calls.

    One round trip for each cell whose tenants call. `cell_of`: where a tenant is; of whom it does not know, nothing is
    told.
    """

    def __init__(
        self,
        redis: Redis,
        cell_of: Callable[[UUID], str | None] = lambda _: HOME,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._script, self._cell_of, self._clock = redis.register_script(_TELL), cell_of, clock
        self._noted = dict[str, dict[UUID, float]]()
        self._again_at = 0.0
        self._telling: asyncio.Task[None] | None = None

    def note(self, tenant_id: UUID) -> None:
        """A call of this tenant is at work, and none of its calls waits. Returns at once and never raises."""
        if (cell := self._cell_of(tenant_id)) is None:
            return
        now = self._clock()
        lately = {tenant: at for tenant, at in self._noted.get(cell, {}).items() if now - at < PRESENT_SECONDS}
        if len(lately) < MOST:
            lately[tenant_id] = now
        self._noted[cell] = lately
        if now < self._again_at or (self._telling is not None and not self._telling.done()):
            return
        self._again_at = now + TELL_SECONDS
        noted, self._noted = self._noted, {}
        self._telling = asyncio.create_task(self._tell(noted, now))

    async def aclose(self) -> None:
        """Wait for what is on its way."""
        if self._telling is not None:
            await self._telling

    async def _tell(self, noted: dict[str, dict[UUID, float]], now: float) -> None:
        try:
            async with asyncio.timeout(TELL_SECONDS):
                for cell, lately in noted.items():
                    tenants = [tenant.bytes for tenant, at in lately.items() if now - at < PRESENT_SECONDS]
                    if tenants:
                        await self._script(keys=[key_of(cell)], args=[PRESENT_SECONDS, *tenants])
        except (RedisError, OSError, TimeoutError) as error:
            log.debug("workers not told who calls", reason=type(error).__name__)


class Presence:
    """Of which tenants of a cell all gateways have served calls a moment ago, for a worker of that cell."""

    def __init__(self, redis: Redis, cell: str = HOME, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._script, self._cell, self._clock = redis.register_script(_LOOK), cell, clock
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
                self._tenants = frozenset(await self._script(keys=[key_of(self._cell)], args=[MOST]))
        except (RedisError, OSError, TimeoutError) as error:
            self._tenants, lasts = frozenset(), AWAY_SECONDS
            log.debug("not known who calls", reason=type(error).__name__)
        self._holds_until = self._clock() + lasts
