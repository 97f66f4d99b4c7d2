"""The pace of a worker's bulk work: while other tenants call, it rests after each part.

A worker with a backlog keeps a core and PostgreSQL busy all the time, and no gateway's queue knows of it. It does not
know when calls begin and end, so it leaves a share of all time to them: parts are short, and the rest after each is a
multiple of the part's duration by the clock, so that it is longer on a busy machine.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from uuid import UUID

from recollect.fairness.presence import Presence

REST_SECONDS = 2.0
"""The longest rest."""


class Pace:
    """The pace of a worker. `share`: the share of time that bulk work takes while other tenants call; 1: all of it."""

    def __init__(
        self,
        presence: Presence,
        share: float,
        stopping: asyncio.Event,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._presence, self._stopping, self._clock = presence, stopping, clock
        self._rest_ratio = 1 / share - 1

    async def is_slow(self, tenant_id: UUID) -> bool:
        """Whether work for this tenant has to rest, because another tenant calls."""
        return self._rest_ratio > 0 and await self._presence.is_other_tenant_calling(tenant_id)

    @asynccontextmanager
    async def part(self, tenant_id: UUID) -> AsyncIterator[None]:
        """Do a part of a tenant's bulk work in the block; while others call, rest after it, even if it failed."""
        began = self._clock()
        try:
            yield
        finally:
            await self._rest(tenant_id, self._clock() - began)

    async def _rest(self, tenant_id: UUID, seconds: float) -> None:
        if self._stopping.is_set() or not await self.is_slow(tenant_id):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(min(self._rest_ratio * seconds, REST_SECONDS)):
                await self._stopping.wait()
