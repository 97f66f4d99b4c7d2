"""Reads that streams share: one write wakes many listeners, and those that may see the same and are equally far read
the same.

A read serves every stream that asked before it began, since it sees all that was committed until then. A stream that
asks later, such as one that was woken since, has a new read.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from cachetools import TTLCache

T = TypeVar("T")

MAX_READS = 64
"""Reads that are kept, at most, each of one page of a log. A stream whose read is gone reads again."""

KEEP_SECONDS = 30.0
"""How long a read is kept, at most: the turn of the last stream that asked for it has come by then."""


@dataclass(frozen=True, eq=False, slots=True)
class _Read:
    """A read, and the moment at which it began. `result`: a tuple of one value, or () if it failed."""

    began_at: int
    result: asyncio.Future[tuple[Any, ...]]


class SharedReads:
    """The reads of this process. Moments are numbers that only rise: a clock would not show which came first."""

    def __init__(self) -> None:
        self._reads: TTLCache[Hashable, _Read] = TTLCache(MAX_READS, KEEP_SECONDS)
        self._last = 0

    def now(self) -> int:
        """This moment: later than all before it."""
        self._last += 1
        return self._last

    async def read(self, key: Hashable, requested_at: int, query: Callable[[], Awaitable[T]]) -> T:
        """The result of a read that began after `requested_at`: one that another stream began, or else our own.

        `key` holds all that the result depends on: the tenant, what its callers may see, and what is read. A read that
        fails or is cancelled is not shared: each stream that waits for it reads again.
        """
        while (read := self._reads.get(key)) is not None and read.began_at > requested_at:
            for value in await asyncio.shield(read.result):
                result: T = value
                return result
        return await self._begin(key, query)

    async def _begin(self, key: Hashable, query: Callable[[], Awaitable[T]]) -> T:
        read = _Read(self.now(), asyncio.get_running_loop().create_future())
        self._reads[key] = read
        try:
            value = await query()
        except BaseException:
            if self._reads.get(key) is read:
                del self._reads[key]
            read.result.set_result(())
            raise
        read.result.set_result((value,))
        return value
