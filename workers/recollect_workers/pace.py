"""The pace of what a worker does in bulk: beside other tenants' calls it rests after each part.

A worker keeps a core and PostgreSQL busy for as long as there is a backlog, and no gateway's queue knows of it. It
cannot tell when a call begins and ends, so it leaves a share of all time to them, part by part: parts are short, and
the rest after each is as many times as long, by the clock, so that on a busy machine it is longer.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from uuid import UUID

from recollect.platform.presence import Presence

REST_SECONDS = 2.0
"""How long one rest takes at most."""


class Pace:
    """How fast a worker goes. `share`: of the time, that bulk work takes beside others' calls; 1 for all of it."""

    def __init__(
        self,
        presence: Presence,
        share: float,
        stopping: asyncio.Event,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._presence, self._stopping, self._clock = presence, stopping, clock
        self._rests = 1 / share - 1

    async def is_slow(self, tenant_id: UUID) -> bool:
        """Whether what is done for this tenant now is done beside calls of another."""
        return self._rests > 0 and await self._presence.any_but(tenant_id)

    @asynccontextmanager
    async def part(self, tenant_id: UUID) -> AsyncIterator[None]:
        """Do a part of a tenant's bulk work inside; where others call, rest after it, whatever came of it."""
        began = self._clock()
        try:
            yield
        finally:
            await self._rest(tenant_id, self._clock() - began)

    async def _rest(self, tenant_id: UUID, seconds: float) -> None:
        if self._stopping.is_set() or not await self.is_slow(tenant_id):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(min(self._rests * seconds, REST_SECONDS)):
                await self._stopping.wait()
