"""Errands: work that goes on beside the answer, so that the answer reveals nothing of it, not by its duration either.

They are few and short. A gateway that stops waits for those under way for a moment, and then leaves them.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

MOST = 100
"""Errands that a gateway has under way at most; one more is not begun."""

log = structlog.get_logger(__name__)


class Errands:
    """The errands that are under way."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[None]] = set()

    def begin(self, name: str, errand: Callable[[], Awaitable[None]]) -> None:
        """Do an errand beside the request. A failure is logged, and so is an errand left because there are too many."""
        if len(self._under_way) >= MOST:
            log.warning("errand dropped", errand=name)
            return
        task = asyncio.create_task(self._run(name, errand))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def settle(self, seconds: float) -> None:
        """Wait for those under way, for `seconds` at most, and leave the others."""
        if not self._under_way:
            return
        _, left = await asyncio.wait(self._under_way, timeout=seconds)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _run(self, name: str, errand: Callable[[], Awaitable[None]]) -> None:
        try:
            await errand()
        except Exception as error:
            log.error("errand failed", errand=name, exc_info=error)
