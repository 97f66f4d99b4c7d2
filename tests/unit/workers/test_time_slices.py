"""The turns of tenants: which turns a sweep begins and awaits, and when it ends."""

import asyncio
from uuid import UUID, uuid4

import pytest

from recollect_workers.time_slices import TimeSlices, run_slices
from tests.support.timeouts import MAX_WAIT_SECONDS


class Queue:
    """Steps that are due; a turn takes one, and the next one of its tenant is due when it ends."""

    def __init__(self, steps: dict[UUID, int], *, at_once: int = 1) -> None:
        self.due = dict(steps)
        self.turns = TimeSlices(at_once)
        self.most = 0
        self._at_work = 0
        self.found, self.stopping = asyncio.Event(), asyncio.Event()

    async def sweep(self) -> None:
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            await run_slices(self.turns, self.start_round, due=self.found, stopping=self.stopping)

    async def start_round(self) -> bool:
        seen = [tenant for tenant, steps in self.due.items() if steps and not self.turns.has(tenant)]
        await self.end_of_look()
        for tenant in seen:
            await self.turns.wait_for_capacity()
            self.turns.begin(tenant, self.take(tenant))
        return bool(seen)

    async def end_of_look(self) -> None:
        """Wait until the result of the look arrives."""
        await asyncio.sleep(0)

    async def take(self, tenant: UUID) -> None:
        self._at_work += 1
        self.most = max(self.most, self._at_work)
        await asyncio.sleep(0)
        self._at_work -= 1
        self.due[tenant] -= 1


class SlowLook(Queue):
    async def end_of_look(self) -> None:
        """Wait until all turns that were under way have ended."""
        await self.turns.wait_until_ended()
        await asyncio.sleep(0)


@pytest.mark.parametrize("queue_type", [Queue, SlowLook])
@pytest.mark.parametrize("at_once", [1, 2, 5])
async def test_a_sweep_ends_when_nothing_is_due(queue_type: type[Queue], at_once: int) -> None:
    """Also where a turn ends and leaves more work while the sweep looks for due work."""
    queue = queue_type({uuid4(): 3 for _ in range(4)}, at_once=at_once)
    await queue.sweep()
    assert set(queue.due.values()) == {0}
    assert queue.most <= at_once


async def test_work_that_becomes_due_during_a_turn_begins_at_once() -> None:
    long, soon = uuid4(), uuid4()
    queue, ended = Queue({long: 1, soon: 0}, at_once=2), asyncio.Event()
    taking = queue.take

    async def take(tenant: UUID) -> None:
        if tenant == long:
            queue.due[soon] = 1
            queue.found.set()
            await ended.wait()
        else:
            ended.set()
        await taking(tenant)

    queue.take = take  # type: ignore[method-assign]
    await queue.sweep()
    assert set(queue.due.values()) == {0}


async def test_a_sweep_that_is_to_stop_ends_the_turns_that_it_began() -> None:
    queue = Queue({uuid4(): 5})
    taking = queue.take

    async def take(tenant: UUID) -> None:
        queue.stopping.set()
        await taking(tenant)

    queue.take = take  # type: ignore[method-assign]
    await queue.sweep()
    assert set(queue.due.values()) == {4}
    assert not queue.turns


async def test_a_cancelled_sweep_cancels_its_turns() -> None:
    queue, begun, cancelled = Queue({uuid4(): 1}), asyncio.Event(), asyncio.Event()

    taking = queue.take

    async def take(tenant: UUID) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
            await taking(tenant)
        finally:
            cancelled.set()

    queue.take = take  # type: ignore[method-assign]
    sweep = asyncio.create_task(queue.sweep())
    await begun.wait()
    sweep.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sweep
    assert cancelled.is_set()
    assert not queue.turns
