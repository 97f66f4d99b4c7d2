"""Errands: what goes on once its answer is sent, so that the answer tells nothing of it, not by its time either.

They are few and short. Of a gateway that stops, those under way are waited for a moment and then left.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

MOST = 100
"""Errands of a gateway that are under way; one more is not begun."""

log = structlog.get_logger(__name__)


class Errands:
    """Those that are under way."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[None]] = set()

    def begin(self, name: str, errand: Callable[[], Awaitable[None]]) -> None:
        """Do it beside what comes next. What fails is logged, and so is what is left because too many are under way."""
        if len(self._under_way) >= MOST:
            log.warning("errand left", errand=name)
            return
        task = asyncio.create_task(self._done(name, errand))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def settle(self, seconds: float) -> None:
        """Wait for those under way, so long at most, and leave the others."""
        if not self._under_way:
            return
        _, left = await asyncio.wait(self._under_way, timeout=seconds)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _done(self, name: str, errand: Callable[[], Awaitable[None]]) -> None:
        try:
            await errand()
        except Exception as error:
            log.error("errand failed", errand=name, exc_info=error)
