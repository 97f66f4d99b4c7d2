"""Turns: each tenant that has something due gets one in every round, until nothing is due."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from uuid import UUID


class Turns:
    """The turns of one sweep that are under way, at most `at_once`."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._under_way: dict[asyncio.Task[None], UUID] = {}
        self.ended = 0

    def __bool__(self) -> bool:
        return bool(self._under_way)

    def has(self, tenant_id: UUID) -> bool:
        """Whether a turn of this tenant is under way."""
        return tenant_id in self._under_way.values()

    async def wait_for_room(self) -> None:
        """Wait until one more turn may begin."""
        while len(self._under_way) >= self._at_once:
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)

    def begin(self, tenant_id: UUID, turn: Coroutine[Any, Any, None]) -> None:
        """Run a turn beside the others. It must not raise."""
        task = asyncio.create_task(turn)
        self._under_way[task] = tenant_id
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        self.ended += 1

    async def wait_for_change(self, *events: asyncio.Event) -> None:
        """Wait until a turn has ended or one of the events is set."""
        signals = [asyncio.create_task(event.wait()) for event in events]
        try:
            await asyncio.wait({*self._under_way, *signals}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for signal in signals:
                signal.cancel()

    def cancel(self) -> None:
        """Cancel the turns that are under way."""
        for task in self._under_way:
            task.cancel()

    async def wait_until_ended(self) -> None:
        """Wait until no turn is under way."""
        await asyncio.gather(*self._under_way, return_exceptions=True)


async def take_turns(
    turns: Turns, start_round: Callable[[], Awaitable[bool]], *, due: asyncio.Event, stopping: asyncio.Event
) -> None:
    """Begin rounds until nothing is due and no turn is under way, or `stopping` is set.

    `start_round` finds due work and begins its turns; True if there was any. `due` is set when there may be more.
    """
    try:
        while not stopping.is_set():
            due.clear()
            ended_before = turns.ended
            # A turn that ended during the round may have left work that the round did not see.
            if await start_round() or turns.ended > ended_before:
                continue
            if not turns:
                return
            await turns.wait_for_change(due, stopping)
    except asyncio.CancelledError:
        turns.cancel()
        raise
    finally:
        await turns.wait_until_ended()
