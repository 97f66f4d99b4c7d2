"""Shares: how many at a time may hold something for one key, such as connections for a tenant."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class _Share:
    places: asyncio.Semaphore
    users: int = 0


class Shares:
    """At most `limit` holders of each key at a time; others of the same key wait, in the order in which they came.

    A key that nobody holds or waits for is forgotten.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._shares: dict[Hashable, _Share] = {}

    @asynccontextmanager
    async def held(
        self, key: Hashable, *, wait_seconds: float, limit: int | None = None, queue: int | None = None
    ) -> AsyncIterator[None]:
        """Hold a place of this key; raises TimeoutError where none is free within that time.

        `limit`: of this key, instead of that of all. `queue`: so many wait at most; one more raises it at once.
        """
        places = self.limit if limit is None else limit
        share = self._shares.setdefault(key, _Share(asyncio.Semaphore(places)))
        if queue is not None and share.users >= places + queue:
            raise TimeoutError
        share.users += 1
        try:
            async with asyncio.timeout(wait_seconds):
                await share.places.acquire()
            try:
                yield
            finally:
                share.places.release()
        finally:
            share.users -= 1
            if not share.users:
                del self._shares[key]

    def __len__(self) -> int:
        """Keys that somebody holds or waits for."""
        return len(self._shares)
