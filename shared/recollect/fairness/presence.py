"""Presence: gateways report to workers, through Redis, which tenants have called a moment ago. Best effort.

A worker's bulk work rests while tenants of its own cell call; calls of other cells use another PostgreSQL. Nothing
depends on it: while Redis is unreachable, no tenant counts as calling. Tenants whose calls queue are not reported: no
room is made for a tenant that floods.
"""

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from recollect.settings.cells import HOME
from recollect.valkey.scripts import Script

REPORT_SECONDS = 0.5
"""The shortest time between two reports of a gateway, however much it serves."""

PRESENT_SECONDS = 2
"""How long after a report a tenant counts as calling; by the clock of Redis, in whole seconds."""

READ_SECONDS = 0.25
"""How long an answer of Redis is used; also how long a worker waits for one."""

RETRY_SECONDS = 1.0
"""How long Redis is not asked again after it did not answer."""

MAX_CALLING_TENANTS = 2
"""Tenants of a cell that are reported, and looked up, at a time: of two, at least one is not the worker's tenant."""

_KEY = "recollect:present"

_REPORT = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[i]) end
redis.call('EXPIRE', KEYS[1], ARGV[1])
"""

_READ = "return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. redis.call('TIME')[1], '+inf', 'LIMIT', 0, ARGV[1])"

log = structlog.get_logger(__name__)


def key_of(cell: str) -> str:
    """The key of the tenants of a cell that call."""
    return _KEY if cell == HOME else f"{_KEY}:{cell}"


class PresenceReporter:
    """Reports a gateway's calls in the background: every REPORT_SECONDS, and only if there are any.

    It takes one round trip for each cell whose tenants call. `cell_of`: the cell of a tenant; a tenant whose cell is
    not known is not reported.
    """

    def __init__(
        self,
        redis: Redis,
        cell_of: Callable[[UUID], str | None] = lambda _: HOME,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._script, self._cell_of, self._clock = Script(redis, _REPORT), cell_of, clock
        self._pending = dict[str, dict[UUID, float]]()
        self._next_at = 0.0
        self._sending: asyncio.Task[None] | None = None

    def note(self, tenant_id: UUID) -> None:
        """Note that a call of this tenant is at work, and none of its calls waits. Returns at once and never raises."""
        if (cell := self._cell_of(tenant_id)) is None:
            return
        now = self._clock()
        recent = {tenant: at for tenant, at in self._pending.get(cell, {}).items() if now - at < PRESENT_SECONDS}
        if len(recent) < MAX_CALLING_TENANTS:
            recent[tenant_id] = now
        self._pending[cell] = recent
        if now < self._next_at or (self._sending is not None and not self._sending.done()):
            return
        self._next_at = now + REPORT_SECONDS
        calls_by_cell, self._pending = self._pending, {}
        self._sending = asyncio.create_task(self._send(calls_by_cell, now))

    async def aclose(self) -> None:
        """Wait for the report that is on its way."""
        if self._sending is not None:
            await self._sending

    async def _send(self, calls_by_cell: dict[str, dict[UUID, float]], now: float) -> None:
        try:
            async with asyncio.timeout(REPORT_SECONDS):
                for cell, calls in calls_by_cell.items():
                    tenants = [tenant.bytes for tenant, at in calls.items() if now - at < PRESENT_SECONDS]
                    if tenants:
                        await self._script(keys=[key_of(cell)], args=[PRESENT_SECONDS, *tenants])
        except (RedisError, OSError, TimeoutError) as error:
            log.debug("presence not reported", reason=type(error).__name__)


class Presence:
    """The tenants of a cell whose calls any gateway has served a moment ago, for a worker of that cell."""

    def __init__(self, redis: Redis, cell: str = HOME, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._script, self._cell, self._clock = Script(redis, _READ), cell, clock
        self._tenants = frozenset[bytes]()
        self._valid_until = 0.0

    async def is_other_tenant_calling(self, tenant_id: UUID) -> bool:
        """Whether another tenant calls, as far as is known. Never raises."""
        if self._clock() >= self._valid_until:
            await self._read()
        return bool(self._tenants - {tenant_id.bytes})

    async def _read(self) -> None:
        valid_seconds = READ_SECONDS
        try:
            async with asyncio.timeout(READ_SECONDS):
                self._tenants = frozenset(await self._script(keys=[key_of(self._cell)], args=[MAX_CALLING_TENANTS]))
        except (RedisError, OSError, TimeoutError) as error:
            self._tenants, valid_seconds = frozenset(), RETRY_SECONDS
            log.debug("presence not read", reason=type(error).__name__)
        self._valid_until = self._clock() + valid_seconds
