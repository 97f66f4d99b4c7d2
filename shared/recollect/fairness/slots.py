"""The slot of a call: held while the call is at work, given back while it waits for something outside this process.

Between its steps a call gives way (`yield_to_others`): while calls of its tenant wait for slots, it waits for calls of
tenants whose calls do not. A step is the work between two round trips to PostgreSQL, and cannot be interrupted. A call
gives way where it holds nothing that others need: as its turn begins, before it takes a connection, before each
statement of a transaction that only reads, before each turn of a computation, and before its answer; and not inside a
transaction that writes, which holds a graph's lock.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

from recollect.fairness import fair_queue
from recollect.fairness.fair_queue import FairQueue

SLOT_SECONDS = 1.0
"""How long a slot is held at most."""

MAX_PREEMPTED_SECONDS = 0.5
"""How long a call gives way at once; and in each of its turns, in addition to RESTS times as long as it has worked in
that turn. It holds its resources, such as a connection, that much longer."""


class Slot:
    """The slot of one call, which it may give back and take again. `clock`: the queue's."""

    def __init__(self, queue: FairQueue, tenant: Hashable, clock: Callable[[], float]) -> None:
        self._queue, self._tenant, self._clock = queue, tenant, clock
        self._since: float | None = None
        self._began = self._waited = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._is_taking = self._is_over = self._is_at_work = False

    async def take(self, *, first: bool = False) -> None:
        """Wait for the slot; `first`: before other calls of the tenant. A call that has it or is over does not wait."""
        if self._goes_on:
            return
        self._is_taking = True
        try:
            await self._queue.take(self._tenant, first=first)
        finally:
            self._is_taking = False
        self._since = self._began = self._clock()
        self._waited, self._is_at_work = 0.0, True
        self._start_timer()
        if self._is_over:  # The call ended while one of its tasks waited.
            self.give_back()

    async def yield_to_others(self) -> None:
        """Wait for calls that go before this one, where it is at work, until its time for giving way is up.

        Each step of work adds to that time, so that during a stream of other calls it rests after each step, and goes
        on. The wait counts neither as service of the tenant nor as time for which the slot is held. A call that has
        worked for longer than SLOT_SECONDS gives way, too.
        """
        if not self._is_at_work or not self._queue.is_preemptible(self._tenant):
            return
        remaining = min(MAX_PREEMPTED_SECONDS + fair_queue.RESTS * self._worked - self._waited, MAX_PREEMPTED_SECONDS)
        if remaining <= 0:
            return
        began = self._clock()
        self._stop_timer()
        try:
            await self._queue.wait_while_preempted(self._tenant, remaining)
        finally:
            self._waited += self._clock() - began
            self._start_timer()

    @property
    def takes_short_steps(self) -> bool:
        """Whether this call should take short steps: one to which it gives way may come, and wait for a step's end."""
        return self._is_at_work and self._queue.may_be_preempted(self._tenant)

    @property
    def _worked(self) -> float:
        """Seconds that the call has worked in this turn."""
        return max(self._clock() - self._began - self._waited, 0.0)

    def _start_timer(self) -> None:
        """Have the slot freed after SLOT_SECONDS of work, where this call has it."""
        self._stop_timer()
        if self._since is not None:
            remaining = max(SLOT_SECONDS - self._worked, 0.0)
            self._timer = asyncio.get_running_loop().call_later(remaining, self._free)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def _goes_on(self) -> bool:
        return self._since is not None or self._is_taking or self._is_over

    def give_back(self) -> None:
        """Free the slot for others, where this call has it: the call is not at work for a while."""
        self._is_at_work = False
        self._free()

    def _free(self) -> None:
        if self._since is None:
            return
        self._since = None
        self._stop_timer()
        self._queue.give_back(self._tenant, self._worked, rested=max(self._waited - MAX_PREEMPTED_SECONDS, 0.0))

    def end(self) -> None:
        """Give the slot back for good: the rest of the call needs none."""
        self._is_over = True
        self.give_back()


_SLOT: ContextVar[Slot | None] = ContextVar("slot", default=None)
"""The slot of the current call; None outside of calls."""


@asynccontextmanager
async def acquire_slot(queue: FairQueue, tenant: Hashable, *, wait_seconds: float) -> AsyncIterator[Slot]:
    """Hold a slot; raises TimeoutError where none is granted within that time."""
    slot = Slot(queue, tenant, queue.clock)
    token = _SLOT.set(slot)
    try:
        async with asyncio.timeout(wait_seconds):
            await slot.take()
        await slot.yield_to_others()
        yield slot
    finally:
        _SLOT.reset(token)
        slot.end()


@asynccontextmanager
async def released_slot() -> AsyncIterator[None]:
    """Give back the slot of the current call while the block waits for something outside this process.

    The call then gets a slot before the other calls of its tenant.
    """
    slot = _SLOT.get()
    if slot is None:
        yield
        return
    slot.give_back()
    try:
        yield
    except asyncio.CancelledError:
        slot.end()
        raise
    except BaseException:
        await slot.take(first=True)
        raise
    await slot.take(first=True)


@contextmanager
def without_preemption() -> Iterator[None]:
    """Keep the current call from giving way inside the block, whose work is timed and must not include such waits."""
    token = _SLOT.set(None)
    try:
        yield
    finally:
        _SLOT.reset(token)


async def yield_to_others() -> None:
    """Have the current call, which is between two steps and holds no lock, wait for calls that go before it."""
    slot = _SLOT.get()
    if slot is not None:
        await slot.yield_to_others()


def takes_short_steps() -> bool:
    """Whether the current call should take short steps, since calls to which it gives way may arrive during one."""
    slot = _SLOT.get()
    return slot is not None and slot.takes_short_steps
