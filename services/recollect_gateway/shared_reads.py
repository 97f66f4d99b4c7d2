"""What many streams ask for at once is read once: listeners of one write, who may see the same and are equally far.

A read serves whoever wanted it before it began, since it sees all that was committed until then. Who wants it later, as
one that was woken meanwhile, has it read anew.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from cachetools import TTLCache

T = TypeVar("T")

MAX_READS = 64
"""Reads that are kept, at most, each of one page of a log. Who finds theirs gone reads again."""

KEEP_SECONDS = 30.0
"""How long a read is kept, at most: the turn of the last of those who wanted it has come by then."""


@dataclass(frozen=True, eq=False, slots=True)
class _Read:
    """A read, and the moment at which it began. `found`: a tuple of what, or () if it failed."""

    began: int
    found: asyncio.Future[tuple[Any, ...]]


class SharedReads:
    """The reads of this process. Moments are numbers that only rise: no clock says what was first."""

    def __init__(self) -> None:
        self._reads: TTLCache[Hashable, _Read] = TTLCache(MAX_READS, KEEP_SECONDS)
        self._last = 0

    def now(self) -> int:
        """This moment, after all that there were."""
        self._last += 1
        return self._last

    async def read(self, key: Hashable, wanted: int, ask: Callable[[], Awaitable[T]]) -> T:
        """What a read finds that began after `wanted`: one that somebody else began, or else our own.

        `key` says all that the answer depends on: whose it is, what they may see, and what is asked. Of a read that
        fails or is broken off nothing is shared: whoever waits for it asks again.
        """
        while (read := self._reads.get(key)) is not None and read.began > wanted:
            for found in await asyncio.shield(read.found):
                answer: T = found
                return answer
        return await self._begin(key, ask)

    async def _begin(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        read = _Read(self.now(), asyncio.get_running_loop().create_future())
        self._reads[key] = read
        try:
            found = await ask()
        except BaseException:
            if self._reads.get(key) is read:
                del self._reads[key]
            read.found.set_result(())
            raise
        read.found.set_result((found,))
        return found
