"""Time slices: in every round, each tenant that has work due gets one, until no work is due."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from uuid import UUID


class TimeSlices:
    """The slices of one sweep that are under way, at most `at_once`."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._in_progress: dict[asyncio.Task[None], UUID] = {}
        self.ended = 0

    def __bool__(self) -> bool:
        return bool(self._in_progress)

    def has(self, tenant_id: UUID) -> bool:
        """Whether a slice of this tenant is under way."""
        return tenant_id in self._in_progress.values()

    async def wait_for_capacity(self) -> None:
        """Wait until one more slice may begin."""
        while len(self._in_progress) >= self._at_once:
            await asyncio.wait(self._in_progress, return_when=asyncio.FIRST_COMPLETED)

    def begin(self, tenant_id: UUID, work: Coroutine[Any, Any, None]) -> None:
        """Run a slice concurrently with the others. It must not raise."""
        task = asyncio.create_task(work)
        self._in_progress[task] = tenant_id
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._in_progress[task]
        self.ended += 1

    async def wait_for_change(self, *events: asyncio.Event) -> None:
        """Wait until a slice has ended or one of the events is set."""
        signals = [asyncio.create_task(event.wait()) for event in events]
        try:
            await asyncio.wait({*self._in_progress, *signals}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for signal in signals:
                signal.cancel()

    def cancel(self) -> None:
        """Cancel the slices that are under way."""
        for task in self._in_progress:
            task.cancel()

    async def wait_until_ended(self) -> None:
        """Wait until no slice is under way."""
        await asyncio.gather(*self._in_progress, return_exceptions=True)


async def run_slices(
    slices: TimeSlices, start_round: Callable[[], Awaitable[bool]], *, due: asyncio.Event, stopping: asyncio.Event
) -> None:
    """Begin rounds until nothing is due and no slice is under way, or `stopping` is set.

    `start_round` finds due work and begins its slices; True if there was any. `due` is set when there may be more.
    """
    try:
        while not stopping.is_set():
            due.clear()
            ended_before = slices.ended
            # A slice that ended during the round may have left work that the round did not see.
            if await start_round() or slices.ended > ended_before:
                continue
            if not slices:
                return
            await slices.wait_for_change(due, stopping)
    except asyncio.CancelledError:
        slices.cancel()
        raise
    finally:
        await slices.wait_until_ended()
