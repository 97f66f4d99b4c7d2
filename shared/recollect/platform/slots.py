"""The slot of a call: held while the call is at work, given back while it waits for what is not of this process.

Between its steps a call gives way (`give_way`): while calls of its tenant wait for slots, it waits for those of other
tenants whose calls do not. A step is what a call does between two round trips to PostgreSQL, and cannot be left. It is
asked where the call holds nothing that others need: as its turn begins, before it takes a connection, before each
statement of a transaction that only reads, before each turn of a computation, and before its answer; and not inside a
transaction that writes, which holds a graph's lock.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

from recollect.platform import fair_queue
from recollect.platform.fair_queue import FairQueue

SLOT_SECONDS = 1.0
"""How long a slot is held at most."""

GIVE_WAY_SECONDS = 0.5
"""How long a call gives way at once, and in each of its turns beside RESTS times as long as it has worked in it: so
much longer it holds what it has, such as a connection."""


class Slot:
    """The slot of one call, which it may give back and take again. `clock`: the queue's."""

    def __init__(self, queue: FairQueue, tenant: Hashable, clock: Callable[[], float]) -> None:
        self._queue, self._tenant, self._clock = queue, tenant, clock
        self._since: float | None = None
        self._began = self._waited = 0.0
        self._limit: asyncio.TimerHandle | None = None
        self._is_taking = self._is_over = self._is_at_work = False

    async def take(self, *, first: bool = False) -> None:
        """Wait for the slot, `first` before others of the tenant; a call that has one, or is over, goes on."""
        if self._goes_on:
            return
        self._is_taking = True
        try:
            await self._queue.take(self._tenant, first=first)
        finally:
            self._is_taking = False
        self._since = self._began = self._clock()
        self._waited, self._is_at_work = 0.0, True
        self._hold()
        if self._is_over:  # The call ended while one of its tasks waited.
            self.give_back()

    async def give_way(self) -> None:
        """Wait for calls that go before this one, where it is at work, until its time for that is up.

        Its work brings it more of that time, so that beside calls that never end it rests after each of its steps, and
        goes on. That time counts as none of the tenant's, nor of that for which a slot is held. A call that has worked
        for longer than that gives way, too.
        """
        if not self._is_at_work or not self._queue.gives_way(self._tenant):
            return
        left = min(GIVE_WAY_SECONDS + fair_queue.RESTS * self._worked - self._waited, GIVE_WAY_SECONDS)
        if left <= 0:
            return
        began = self._clock()
        self._let_go()
        try:
            await self._queue.wait_for_way(self._tenant, left)
        finally:
            self._waited += self._clock() - began
            self._hold()

    @property
    def takes_short_steps(self) -> bool:
        """Whether a call to which this one gives way may come while it is in a step, and waits for the end of that."""
        return self._is_at_work and self._queue.may_have_to_give_way(self._tenant)

    @property
    def _worked(self) -> float:
        """Seconds that it has worked in this turn."""
        return max(self._clock() - self._began - self._waited, 0.0)

    def _hold(self) -> None:
        """Have the slot given back once it was worked in for long enough, where this call has it."""
        self._let_go()
        if self._since is not None:
            left = max(SLOT_SECONDS - self._worked, 0.0)
            self._limit = asyncio.get_running_loop().call_later(left, self._free)

    def _let_go(self) -> None:
        """Let no time run out for the slot."""
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    @property
    def _goes_on(self) -> bool:
        return self._since is not None or self._is_taking or self._is_over

    def give_back(self) -> None:
        """Let others have it, where this call has it: it is not at work for a while."""
        self._is_at_work = False
        self._free()

    def _free(self) -> None:
        if self._since is None:
            return
        self._since = None
        self._let_go()
        self._queue.give_back(self._tenant, self._worked, rested=max(self._waited - GIVE_WAY_SECONDS, 0.0))

    def end(self) -> None:
        """Give it back for good: what is left of the call needs none."""
        self._is_over = True
        self.give_back()


_SLOT: ContextVar[Slot | None] = ContextVar("slot", default=None)
"""That of the call at hand; what works for no call has none."""


@asynccontextmanager
async def held_slot(queue: FairQueue, tenant: Hashable, *, wait_seconds: float) -> AsyncIterator[Slot]:
    """Hold a slot; raises TimeoutError where none is granted within that time."""
    slot = Slot(queue, tenant, queue.clock)
    token = _SLOT.set(slot)
    try:
        async with asyncio.timeout(wait_seconds):
            await slot.take()
        await slot.give_way()
        yield slot
    finally:
        _SLOT.reset(token)
        slot.end()


@asynccontextmanager
async def elsewhere() -> AsyncIterator[None]:
    """Give the slot of the call at hand back while it waits inside for what is not of this process.

    Then it goes before the others of its tenant.
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
def giving_no_way() -> Iterator[None]:
    """Have the call at hand give way to none inside: what it does there is timed, and the time is to be its own."""
    token = _SLOT.set(None)
    try:
        yield
    finally:
        _SLOT.reset(token)


async def give_way() -> None:
    """Have the call at hand wait for those that go before it, where it is between two steps and holds no lock."""
    slot = _SLOT.get()
    if slot is not None:
        await slot.give_way()


def takes_short_steps() -> bool:
    """Whether the call at hand is to take short steps, since others to which it gives way may come meanwhile."""
    slot = _SLOT.get()
    return slot is not None and slot.takes_short_steps
