"""Background tasks continue after the answer was sent, so that it reveals nothing of them, not even by its duration.

They are few and short. A gateway that stops waits for them for a moment, and then cancels them.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

MAX_RUNNING = 100
"""At most this many background tasks run at once; further ones are dropped."""

log = structlog.get_logger(__name__)


class BackgroundTasks:
    """The background tasks of a gateway."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def begin(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Start a task that the request does not wait for. A failure is logged, and so is a task that is dropped."""
        if len(self._running) >= MAX_RUNNING:
            log.warning("errand dropped", errand=name)
            return
        task = asyncio.create_task(self._run(name, work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def settle(self, seconds: float) -> None:
        """Wait for the running tasks, for `seconds` at most, and cancel the others."""
        if not self._running:
            return
        _, unfinished = await asyncio.wait(self._running, timeout=seconds)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)

    async def _run(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception as error:
            log.error("errand failed", errand=name, exc_info=error)
