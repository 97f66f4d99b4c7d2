"""Shares: limits on how many holders of one key there are at a time, such as users of connections for a tenant."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class _Share:
    permits: asyncio.Semaphore
    users: int = 0


class Shares:
    """At most `limit` holders of each key at a time; others of the same key wait, first come, first served.

    A key without holders and waiters is forgotten.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._shares: dict[Hashable, _Share] = {}

    @asynccontextmanager
    async def acquire(
        self, key: Hashable, *, wait_seconds: float, limit: int | None = None, queue: int | None = None
    ) -> AsyncIterator[None]:
        """Hold one of this key's permits; raises TimeoutError if none is free within that time.

        `limit`: a limit for this key, instead of the common one. `queue`: how many may wait; one more raises at once.
        """
        permits = self.limit if limit is None else limit
        share = self._shares.setdefault(key, _Share(asyncio.Semaphore(permits)))
        if queue is not None and share.users >= permits + queue:
            raise TimeoutError
        share.users += 1
        try:
            async with asyncio.timeout(wait_seconds):
                await share.permits.acquire()
            try:
                yield
            finally:
                share.permits.release()
        finally:
            share.users -= 1
            if not share.users:
                del self._shares[key]

    def __len__(self) -> int:
        """How many keys have holders or waiters."""
        return len(self._shares)
