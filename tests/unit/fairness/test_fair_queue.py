"""Slots go to the tenant that was served least; a tenant alone has all slots, and no call waits for ever."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.fairness import fair_queue, slots
from recollect.fairness.fair_queue import GAP_SECONDS, LATELY_SECONDS, FairQueue
from recollect.fairness.slots import Slot, acquire_slot, released_slot
from tests.support.gateway import eventually, until


@dataclass(slots=True)
class Calls:
    """Calls of several tenants in one queue, with a clock that the test moves."""

    slots: int = 4
    beside: int = 1
    now: float = 1000.0
    at_work: dict[str, str] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    ends: dict[str, asyncio.Event] = field(default_factory=dict)
    queue: FairQueue = field(init=False)

    def __post_init__(self) -> None:
        self.queue = FairQueue(self.slots, self.beside, clock=lambda: self.now)

    async def ask(self, *names: str) -> None:
        """Begin calls such as `a1`, whose tenant is the first letter."""
        for name in names:
            self.ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._work(name))
        await _settled()

    async def end(self, name: str, *, after: float = 0.0) -> None:
        """End a call that is at work."""
        self.now += after
        self.ends[name].set()
        await _settled()

    async def leave(self, name: str) -> None:
        """Cancel a call."""
        self.tasks[name].cancel()
        await _settled()

    async def pass_time(self, seconds: float) -> None:
        """Move the clock while nothing else happens."""
        self.now += seconds
        self.queue.grant()
        await _settled()

    def moved(self, seconds: float) -> float:
        """Move the clock and return its time."""
        self.now += seconds
        return self.now

    async def drain(self) -> None:
        """End calls until none is left."""
        while any(not task.done() for task in self.tasks.values()):
            for name in list(self.at_work):
                await self.end(name, after=0.01)
            await self.pass_time(GAP_SECONDS)

    async def _work(self, name: str) -> None:
        async with acquire_slot(self.queue, name[0], wait_seconds=1000):
            self.at_work[name] = name[0]
            self.order.append(name)
            try:
                await self.ends[name].wait()
            finally:
                del self.at_work[name]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here depends on the speed of the machine: a call keeps its slot until it ends, and none gives way."""
    monkeypatch.setattr(slots, "SLOT_SECONDS", 1000.0)
    monkeypatch.setattr(slots, "MAX_PREEMPTED_SECONDS", 0.0)


async def _settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def _of(tenant: str, count: int) -> list[str]:
    return [f"{tenant}{number}" for number in range(count)]


async def test_a_tenant_alone_has_every_slot_and_no_more() -> None:
    calls = Calls(slots=4)
    await calls.ask(*_of("a", 10))
    assert list(calls.at_work) == ["a0", "a1", "a2", "a3"]
    await calls.end("a1")
    assert list(calls.at_work) == ["a0", "a2", "a3", "a4"]
    await calls.drain()
    assert calls.order == _of("a", 10), "its calls are served in the order in which they came"


@pytest.mark.parametrize("step", [0.001 * number for number in range(1, 40)])
async def test_a_call_is_granted_although_its_rest_ends_while_the_queue_looks(step: float) -> None:
    """However much time passes between two readings of the clock: no other call arrives that would wake the queue."""
    calls = Calls(slots=1)
    calls.queue.clock = lambda: calls.moved(step)
    await calls.ask("b0")
    await calls.end("b0")
    await calls.ask("a0", "a1")
    await calls.end("a0", after=0.01)
    await until(lambda: "a1" in calls.at_work)
    await calls.drain()


@pytest.mark.proves("security: fair-calls")
async def test_a_call_does_not_wait_for_sixteen_calls_of_another_tenant() -> None:
    calls = Calls(slots=4)
    await calls.ask(*_of("a", 16))
    await calls.ask("b0")
    assert "b0" in calls.at_work, "what a tenant took while it was alone is no reason to wait"
    for name in ("a0", "a1", "a2"):
        await calls.end(name)
    assert list(calls.at_work) == ["a3", "b0"], "beside another it has one, and gets no more until it has less"
    await calls.end("b0")
    await calls.end("a3")
    await calls.drain()


async def test_a_tenant_has_few_slots_until_other_tenants_have_been_gone_for_a_while() -> None:
    calls = Calls(slots=4, beside=2)
    await calls.ask("b0")
    await calls.ask(*_of("a", 8))
    assert sorted(calls.at_work) == ["a0", "a1", "b0"]
    await calls.end("b0")
    await calls.pass_time(LATELY_SECONDS)
    assert sorted(calls.at_work) == ["a0", "a1"], "it may come back any moment"
    await calls.pass_time(LATELY_SECONDS)
    assert sorted(calls.at_work) == ["a0", "a1", "a2", "a3"]
    await calls.drain()


async def test_the_tenant_that_was_served_least_is_next() -> None:
    calls = Calls(slots=1)
    await calls.ask("a0", "a1", "a2", "a3", "b0", "b1", "c0")
    await calls.end("a0", after=3)
    assert list(calls.at_work) == ["b0"]
    await calls.end("b0", after=1)
    await calls.pass_time(GAP_SECONDS)
    assert list(calls.at_work) == ["c0"]
    await calls.end("c0", after=2)
    await calls.pass_time(GAP_SECONDS)
    assert list(calls.at_work) == ["b1"], "b had one second, a three"
    await calls.drain()


async def test_a_tenant_that_was_away_does_not_catch_up() -> None:
    calls = Calls(slots=1)
    await calls.ask("a0", *_of("b", 3))
    await calls.end("a0", after=1)
    for number in range(2):
        await calls.pass_time(GAP_SECONDS)
        await calls.end(f"b{number}", after=LATELY_SECONDS * 2)
    await calls.ask(*_of("a", 5)[1:])
    await calls.drain()
    assert calls.order.index("b2") < calls.order.index("a3"), "it waits for its turn, and not for all of the other's"


async def test_a_tenant_with_queued_calls_rests_beside_one_without() -> None:
    calls = Calls(slots=4)
    await calls.ask("b0")
    await calls.ask(*_of("a", 16))
    await calls.end("a0", after=0.1)
    assert list(calls.at_work) == ["b0"]
    await calls.pass_time(0.1)
    assert list(calls.at_work) == ["b0"], "it rests for twice as long as it worked"
    await calls.pass_time(0.11)
    assert list(calls.at_work) == ["b0", "a1"]
    await calls.end("b0")
    await calls.end("a1", after=1.0)
    assert list(calls.at_work) == ["a2"], "nobody rests for who is not there"
    await calls.drain()


async def test_a_tenant_continues_by_itself_after_its_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queue, "GAP_SECONDS", 1000.0)
    queue, order = FairQueue(4), list[str]()

    async def ask(name: str) -> None:
        async with acquire_slot(queue, name[0], wait_seconds=1000):
            order.append(name)
            await asyncio.sleep(0.01)

    async with acquire_slot(queue, "b", wait_seconds=1000):
        await asyncio.gather(*map(ask, ("a0", "a1", "a2")))
    assert order == ["a0", "a1", "a2"]


async def test_a_tenant_alone_does_not_rest() -> None:
    calls = Calls(slots=1)
    await calls.ask("a0")
    await calls.end("a0")
    await calls.ask("a1", "a2", "a3")
    await calls.end("a1", after=0.05)
    assert list(calls.at_work) == ["a2"], "a moment ago its own calls did not queue, either"
    await calls.drain()


async def test_a_call_that_is_cancelled_while_it_waits_leaves_nothing_behind() -> None:
    calls = Calls(slots=1)
    await calls.ask("a0", "a1", "b0")
    await calls.leave("a1")
    await calls.leave("b0")
    assert calls.queue.waiting("a") == calls.queue.waiting("b") == 0
    await calls.leave("a0")
    assert calls.queue.slots_of("a") == 0
    await calls.ask("c0")
    assert list(calls.at_work) == ["c0"]
    await calls.drain()
    await calls.pass_time(LATELY_SECONDS * 2)
    assert len(calls.queue) == 0


async def test_a_call_that_is_cancelled_as_it_gets_a_slot_passes_it_on() -> None:
    calls = Calls(slots=1)
    await calls.ask("a0", "a1", "a2")
    calls.ends["a0"].set()
    await asyncio.sleep(0)  # a0 has ended, and a1 has been granted what it has not heard of.
    calls.tasks["a1"].cancel()
    await _settled()
    assert list(calls.at_work) == ["a2"]
    await calls.drain()


async def test_a_wait_is_bounded_and_leaves_nothing_behind() -> None:
    queue = FairQueue(1)
    async with acquire_slot(queue, "a", wait_seconds=1000):
        with pytest.raises(TimeoutError):
            async with acquire_slot(queue, "a", wait_seconds=0.01):
                raise AssertionError("there is no slot")
        assert (queue.slots_of("a"), queue.waiting("a")) == (1, 0)
    assert queue.slots_of("a") == 0


async def test_a_long_call_goes_on_without_a_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "SLOT_SECONDS", 0.01)
    calls = Calls(slots=1)
    await calls.ask("a0", "a1")

    async def both_are_at_work() -> bool:
        return list(calls.at_work) == ["a0", "a1"]

    await eventually(both_are_at_work)
    await calls.end("a0")
    await calls.end("a1")
    assert calls.queue.slots_of("a") == 0


async def test_a_call_that_waits_releases_its_slot_and_then_goes_first() -> None:
    queue, order, back = FairQueue(1), list[str](), asyncio.Event()

    async def ask(name: str) -> None:
        async with acquire_slot(queue, "a", wait_seconds=1000):
            order.append(name)
            if name == "first":
                async with released_slot():
                    await back.wait()
                    assert queue.slots_of("a") == 1, "another has it meanwhile"
                order.append("first again")
            elif name == "second":
                back.set()
                await _settled()

    await asyncio.gather(*map(ask, ("first", "second", "third")))
    assert order == ["first", "second", "first again", "third"]
    async with released_slot():  # Where no call is at hand, as in a worker.
        assert queue.slots_of("a") == 0


async def test_a_call_that_is_cancelled_without_its_slot_takes_none_again() -> None:
    queue, gone = FairQueue(1), asyncio.Event()

    async def ask() -> None:
        async with acquire_slot(queue, "a", wait_seconds=1000), released_slot():
            gone.set()
            await asyncio.Event().wait()

    asking = asyncio.create_task(ask())
    await gone.wait()
    async with acquire_slot(queue, "a", wait_seconds=1000):
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert queue.slots_of("a") == 1
    assert (queue.slots_of("a"), queue.waiting("a")) == (0, 0)


async def test_a_slot_is_released_once() -> None:
    queue = FairQueue(2)
    async with AsyncExitStack() as stack:
        slot: Slot = await stack.enter_async_context(acquire_slot(queue, "a", wait_seconds=1000))
        for _ in range(2):
            slot.give_back()
            assert queue.slots_of("a") == 0
        await slot.take()
        await slot.take()
        assert queue.slots_of("a") == 1
        slot.end()
        await slot.take()
        assert queue.slots_of("a") == 0
    assert queue.slots_of("a") == 0


async def test_a_call_that_is_over_keeps_no_slot_that_it_waited_for() -> None:
    queue, ended = FairQueue(1), asyncio.Event()
    async with AsyncExitStack() as stack:
        slot: Slot = await stack.enter_async_context(acquire_slot(queue, "a", wait_seconds=1000))
        slot.give_back()

        async def other() -> None:
            async with acquire_slot(queue, "a", wait_seconds=1000):
                await ended.wait()

        working = asyncio.create_task(other())
        await _settled()
        waiting = asyncio.create_task(slot.take())
        await _settled()
    ended.set()
    await asyncio.gather(working, waiting)
    assert (queue.slots_of("a"), queue.waiting("a")) == (0, 0)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from("abc")),
        st.tuples(st.just("end"), st.integers(0, 20)),
        st.tuples(st.just("leave"), st.integers(0, 20)),
        st.tuples(st.just("pass"), st.sampled_from([0.01, 0.3, LATELY_SECONDS * 1.1])),
    ),
    max_size=40,
)


@given(STEPS, st.integers(1, 4), st.integers(1, 4))
def test_no_tenant_exceeds_its_slots_and_every_call_is_served(
    steps: list[tuple[str, str | int | float]], slots: int, beside: int
) -> None:
    asyncio.run(_try(steps, slots, beside))


async def _try(steps: list[tuple[str, str | int | float]], slots: int, beside: int) -> None:
    calls = Calls(slots, beside)
    left = set[str]()
    for number, (what, which) in enumerate(steps):
        if what == "ask":
            await calls.ask(f"{which}{number}")
        elif what == "pass":
            await calls.pass_time(float(which))
        elif what == "end" and calls.at_work:
            await calls.end(list(calls.at_work)[int(which) % len(calls.at_work)], after=0.01)
        elif what == "leave" and calls.tasks:
            name = list(calls.tasks)[int(which) % len(calls.tasks)]
            left |= {name} if not calls.tasks[name].done() and name not in calls.at_work else set()
            await calls.leave(name)
        _check(calls)
    await calls.drain()
    assert set(calls.order) == calls.tasks.keys() - left
    for tenant in "abc":
        served = [int(name[1:]) for name in calls.order if name[0] == tenant]
        assert served == sorted(served), "a tenant's calls are served in the order in which they came"
        assert (calls.queue.slots_of(tenant), calls.queue.waiting(tenant)) == (0, 0)


def _check(calls: Calls) -> None:
    held = {tenant: list(calls.at_work.values()).count(tenant) for tenant in "abc"}
    for tenant, count in held.items():
        assert count == calls.queue.slots_of(tenant) <= calls.slots
    most = calls.slots if len(calls.queue) <= 1 else min(calls.beside, calls.slots)
    beyond = sum(max(0, count - most) for count in held.values())
    assert sum(held.values()) - beyond <= calls.slots


@given(st.lists(st.tuples(st.floats(0.001, 0.5), st.floats(0.001, 0.5)), min_size=5, max_size=30))
def test_two_busy_tenants_differ_by_at_most_one_call(lengths: list[tuple[float, float]]) -> None:
    asyncio.run(_share(lengths))


async def _share(lengths: list[tuple[float, float]]) -> None:
    calls = Calls(slots=1)
    await calls.ask(*(f"{tenant}{number}" for number in range(len(lengths)) for tenant in "ab"))
    served = {"a": 0.0, "b": 0.0}
    while calls.queue.waiting("a") and calls.queue.waiting("b"):
        (name,) = calls.at_work
        seconds = lengths[int(name[1:])]["ab".index(name[0])]
        served[name[0]] += seconds
        await calls.end(name, after=seconds)
        await calls.pass_time(GAP_SECONDS)
        assert abs(served["a"] - served["b"]) <= 2 * 0.5 + 0.001
    await calls.drain()
