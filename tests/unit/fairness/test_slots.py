"""A call of a tenant with queued calls gives way between its steps, for a bounded time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest

from recollect.fairness import fair_queue, slots
from recollect.fairness.fair_queue import FairQueue
from recollect.fairness.slots import Slot, acquire_slot, takes_short_steps, yield_to_others
from tests.support.gateway import eventually

TURNS = 20
"""In so many turns of the event loop, every task that can continue does so."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every time limit long, so that nothing depends on how fast the machine is."""
    monkeypatch.setattr(fair_queue, "LATELY_SECONDS", 1000.0)
    monkeypatch.setattr(fair_queue, "RESTS", 0.0)
    monkeypatch.setattr(slots, "SLOT_SECONDS", 1000.0)
    monkeypatch.setattr(slots, "MAX_PREEMPTED_SECONDS", 1000.0)


@pytest.fixture
async def queue() -> FairQueue:
    """A queue with four slots, of which each tenant has at most one, because `other` called lately."""
    queue = FairQueue(4)
    async with acquire_slot(queue, "other", wait_seconds=1000):
        return queue


@asynccontextmanager
async def flooding(queue: FairQueue, tenant: str = "flood") -> AsyncIterator[Slot]:
    """The slot of a call at work whose tenant has two more calls that wait."""
    async with AsyncExitStack() as stack:
        slot = await stack.enter_async_context(acquire_slot(queue, tenant, wait_seconds=1000))
        waiting = [asyncio.create_task(queue.take(tenant)) for _ in range(2)]
        await _settled()
        try:
            yield slot
        finally:
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)


async def _settled() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def test_a_call_of_a_flood_waits_while_a_call_of_another_tenant_is_at_work(queue: FairQueue) -> None:
    async with flooding(queue) as slot:
        async with acquire_slot(queue, "other", wait_seconds=1000):
            step = asyncio.create_task(slot.yield_to_others())
            await _settled()
            assert not step.done()
        await step


async def test_a_long_call_without_a_slot_gives_way_too(queue: FairQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "SLOT_SECONDS", 0.0)
    async with flooding(queue) as slot:
        await eventually(lambda: _waits_alone(queue))  # Its slot is another's.
        monkeypatch.setattr(slots, "SLOT_SECONDS", 1000.0)
        async with acquire_slot(queue, "other", wait_seconds=1000):
            step = asyncio.create_task(slot.yield_to_others())
            await _settled()
            assert not step.done()
        await step
        slot.give_back()
        await slot.yield_to_others()  # It is not at work.


async def _waits_alone(queue: FairQueue) -> bool:
    return queue.waiting("flood") == 1


async def test_a_call_of_a_flood_waits_while_a_call_of_another_tenant_is_admitted(queue: FairQueue) -> None:
    async with flooding(queue) as slot:
        with queue.expecting("other"), queue.expecting("other"):
            step = asyncio.create_task(slot.yield_to_others())
            await _settled()
            assert not step.done()
        await step
        with queue.expecting("flood"):
            await slot.yield_to_others()


async def test_a_call_of_a_tenant_without_queued_calls_does_not_give_way(queue: FairQueue) -> None:
    async with (
        acquire_slot(queue, "one", wait_seconds=1000) as one,
        acquire_slot(queue, "other", wait_seconds=1000) as other,
    ):
        await one.yield_to_others()
        await other.yield_to_others()
    await yield_to_others()  # What works for no call.


async def test_two_floods_do_not_give_way_to_each_other(queue: FairQueue) -> None:
    async with flooding(queue) as one, flooding(queue, "second") as second:
        await one.yield_to_others()
        await second.yield_to_others()


async def test_a_call_of_a_flood_takes_short_steps_while_others_may_come(
    queue: FairQueue,
) -> None:
    assert not takes_short_steps()  # What works for no call.
    async with acquire_slot(queue, "one", wait_seconds=1000):
        assert not takes_short_steps()  # None of its calls wait.
    async with flooding(queue) as slot:
        assert slot.takes_short_steps
        assert takes_short_steps()
        seconds = queue.clock()
        queue.clock = lambda: seconds + 2000.0
        assert not takes_short_steps()  # It is alone: nobody asked lately.
        queue.clock = lambda: seconds
        slot.give_back()
        assert not takes_short_steps()  # It is not at work.


async def test_a_call_of_a_flood_takes_no_short_steps_beside_only_another_flood() -> None:
    queue = FairQueue(2)  # With more the first of them would have all that it asks for.
    async with flooding(queue, "second"), flooding(queue) as slot:
        assert queue.waiting("second")
        assert not slot.takes_short_steps


async def test_a_call_of_a_flood_gives_way_before_it_begins(queue: FairQueue) -> None:
    begun = list[int]()

    async def call(number: int) -> None:
        async with acquire_slot(queue, "flood", wait_seconds=1000):
            begun.append(number)

    async with acquire_slot(queue, "other", wait_seconds=1000):
        async with acquire_slot(queue, "flood", wait_seconds=1000):
            calls = [asyncio.create_task(call(number)) for number in range(3)]
            await _settled()
        await _settled()
        assert (queue.slots_of("flood"), queue.waiting("flood"), begun) == (1, 2, [])
    await asyncio.gather(*calls)
    assert begun == [0, 1, 2]
    assert (queue.slots_of("flood"), queue.waiting("flood")) == (0, 0)


async def test_a_call_that_is_cancelled_while_it_gives_way_leaves_nothing_behind(queue: FairQueue) -> None:
    async with flooding(queue) as slot, acquire_slot(queue, "other", wait_seconds=1000):
        step = asyncio.create_task(slot.yield_to_others())
        await _settled()
        step.cancel()
        await asyncio.gather(step, return_exceptions=True)
        assert not queue._preempted
    assert (queue.slots_of("flood"), queue.waiting("flood")) == (0, 0)


async def test_the_time_for_which_a_call_gives_way_is_bounded(
    queue: FairQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with acquire_slot(queue, "other", wait_seconds=1000), flooding(queue) as slot:
        monkeypatch.setattr(slots, "MAX_PREEMPTED_SECONDS", 0.01)
        await slot.yield_to_others()
        monkeypatch.setattr(slots, "MAX_PREEMPTED_SECONDS", 0.005)  # A timer may fire a moment too early.
        monkeypatch.setattr(queue, "wait_while_preempted", None)
        await slot.yield_to_others()  # Its time is up: it does not wait again.
        monkeypatch.undo()


@dataclass(slots=True)
class Clock:
    """A clock that the test moves."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that a call waits each time it gives way; the clock moves by them at once."""
    seconds_of_waits = list[float]()

    async def wait(queue: FairQueue, _: str, seconds: float) -> None:
        seconds_of_waits.append(seconds)
        queue.clock.now += seconds  # type: ignore[attr-defined]

    monkeypatch.setattr(slots, "MAX_PREEMPTED_SECONDS", 0.5)
    monkeypatch.setattr(fair_queue, "RESTS", 2.0)
    monkeypatch.setattr(FairQueue, "wait_while_preempted", wait)
    return seconds_of_waits


async def test_beside_endless_calls_a_call_rests_in_proportion_to_each_step(
    waits: list[float],
) -> None:
    clock = Clock()
    queue = FairQueue(4, clock=clock)
    async with acquire_slot(queue, "other", wait_seconds=1000), flooding(queue) as slot:
        await slot.yield_to_others()
        assert waits == [0.5]
        for seconds in (0.1, 0.0, 0.01, 0.2, 1.0):
            clock.now += seconds
            await slot.yield_to_others()
        assert waits[1:] == pytest.approx([0.2, 0.02, 0.4, 0.5]), "twice as long as the step, and never longer at once"
        slot.give_back()
        assert queue._busy["flood"].rests_until - clock.now == pytest.approx(min(2 * 1.31 - 1.12, 1.0))


async def test_the_slot_time_of_a_call_stands_still_while_it_gives_way(
    queue: FairQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with flooding(queue) as slot:
        async with acquire_slot(queue, "other", wait_seconds=1000):
            step = asyncio.create_task(slot.yield_to_others())
            await _settled()
            assert not step.done()
            assert slot._timer is None
            monkeypatch.setattr(slots, "SLOT_SECONDS", 0.0)
        await step
        await eventually(lambda: _waits_alone(queue))  # It goes on running then.


async def test_a_call_goes_on_where_another_tenant_waits_for_its_slot() -> None:
    clock = Clock()
    queue = FairQueue(2, clock=clock)
    for tenant in ("other", "third"):
        async with acquire_slot(queue, tenant, wait_seconds=1000):
            """Because both made calls lately, each has one slot at most."""
    async with flooding(queue) as slot, acquire_slot(queue, "other", wait_seconds=1000):
        clock.now += 1.0  # It was served more than the third, which is next for that.
        step = asyncio.create_task(slot.yield_to_others())
        await _settled()
        assert not step.done()
        third = asyncio.create_task(queue.take("third"))
        await step
        slot.end()
        await third
        queue.give_back("third", 0.0)
