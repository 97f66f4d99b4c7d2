"""Fair queueing: few calls are at work in a process at once, and whose call is next is decided by tenant.

An event loop takes what is ready in the order in which it came, so that a call that waits for the database eight times
stands eight times behind whatever else is at work. Here few are at work, each in a *slot*; the others wait without
costing anything. A free slot goes to the tenant that has the fewest, then to the one that was served least: start-time
fair queueing (Goyal, Vin and Cheng 1996), by the time that slots were held. A tenant that comes back does not catch up
on what it did not ask for meanwhile.

- A tenant that is alone gets every slot. Beside others that asked lately it gets few, also while they ask for nothing:
  else their next call would find all of its.
- A tenant that has less than that needs not wait for slots that another has beyond its own.
- A slot is held for so long at most. Whoever is at work for longer goes on without one, and is bounded by what it
  waits for: its tenant's connections, or a thread. So nobody waits for ever.
- Who waits for something outside of this process gives its slot back for that time: `elsewhere`.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

LATELY_SECONDS = 5.0
"""How long a tenant counts as one beside whom others get few slots, after it asked for something."""

SLOT_SECONDS = 1.0
"""How long a slot is held at most."""

RESTS = 2.0
"""How long a tenant whose calls queue rests after each beside others whose calls do not, in times of what it took."""

REST_SECONDS = 1.0
"""How long it rests at most."""

GAP_SECONDS = 0.1
"""How long those others may ask for nothing before nobody rests for them."""

LEAST_SERVICE = 0.0001
"""Seconds that each slot counts for at least, so that every grant moves the queue on."""

Waiter = asyncio.Future[None]


@dataclass(slots=True)
class _Tenant:
    """What a queue knows of one tenant. `service`: seconds in slots, as virtual time; `asked_at`: when it last did."""

    service: float = 0.0
    asked_at: float = 0.0
    rests_until: float = 0.0
    held: int = 0
    waiting: deque[Waiter] = field(default_factory=deque)

    @property
    def is_busy(self) -> bool:
        return bool(self.held or self.waiting)


class FairQueue:
    """Gives slots to tenants.

    `slots`: of all together. `beside`: those of one tenant while others are there. Tenants that have not asked for
    LATELY_SECONDS are forgotten.
    """

    def __init__(self, slots: int, beside: int = 1, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._slots, self._beside, self._clock = slots, min(beside, slots), clock
        self._lately: OrderedDict[Hashable, _Tenant] = OrderedDict()
        self._busy: dict[Hashable, _Tenant] = {}
        self._virtual_time = 0.0
        self._again: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def slot(self, tenant: Hashable, *, wait_seconds: float) -> AsyncIterator["Slot"]:
        """Hold a slot; raises TimeoutError where none is granted within that time."""
        slot = Slot(self, tenant, self._clock)
        async with asyncio.timeout(wait_seconds):
            await slot.take()
        token = _SLOT.set(slot)
        try:
            yield slot
        finally:
            _SLOT.reset(token)
            slot.end()

    def __len__(self) -> int:
        """How many tenants hold slots, wait, or asked lately."""
        now = self._clock()
        while self._lately:
            tenant, known = next(iter(self._lately.items()))
            if now - known.asked_at <= LATELY_SECONDS:
                break
            if known.is_busy:
                self._note_asked(tenant)
            else:
                del self._lately[tenant]
        return len(self._lately)

    def held(self, tenant: Hashable) -> int:
        """How many slots the tenant has."""
        known = self._busy.get(tenant)
        return known.held if known else 0

    def waiting(self, tenant: Hashable) -> int:
        """How many of the tenant's calls wait."""
        known = self._busy.get(tenant)
        return len(known.waiting) if known else 0

    async def take(self, tenant: Hashable, *, first: bool = False) -> None:
        """Wait for a slot: `first` before those of the same tenant that wait already."""
        known = self._note_asked(tenant)
        if not known.is_busy:
            known.service = max(known.service, self._virtual_time)
            self._busy[tenant] = known
        waiter: Waiter = asyncio.get_running_loop().create_future()
        known.waiting.insert(0 if first else len(known.waiting), waiter)
        self.grant()
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():  # It was granted, and nobody is there to hold it.
                self.give_back(tenant, 0.0)
            elif waiter in known.waiting:
                known.waiting.remove(waiter)
                self._forget_idle(tenant, known)
            raise

    def give_back(self, tenant: Hashable, seconds: float) -> None:
        """A slot that was held for so long is free."""
        known = self._note_asked(tenant)
        known.held -= 1
        known.service += max(seconds, LEAST_SERVICE)
        if known.waiting:
            known.rests_until = self._clock() + min(RESTS * seconds, REST_SECONDS)
        self._forget_idle(tenant, known)
        self.grant()

    def _note_asked(self, tenant: Hashable) -> _Tenant:
        known = self._lately.setdefault(tenant, _Tenant())
        known.asked_at = self._clock()
        self._lately.move_to_end(tenant)
        return known

    def _forget_idle(self, tenant: Hashable, known: _Tenant) -> None:
        if not known.is_busy:
            self._busy.pop(tenant, None)

    def _rests(self, tenant: _Tenant) -> bool:
        """Whether it rests, for others none of whose calls wait and that are served, or asked a moment ago."""
        now = self._clock()
        if now >= tenant.rests_until:
            return False
        for known in reversed(self._lately.values()):
            if now - known.asked_at >= GAP_SECONDS:
                break
            if known is not tenant and not known.waiting:
                return True
        return any(each is not tenant and each.held and not each.waiting for each in self._busy.values())

    def grant(self) -> None:
        """Give free slots to who may have them, and see to it that those who rest are thought of again."""
        self._grant_free()
        rests = [each.rests_until for each in self._busy.values() if each.waiting and self._rests(each)]
        if rests and self._again is None:
            # Loops keep time by milliseconds: what came a little too early would not come again.
            seconds = min(min(rests) - self._clock(), GAP_SECONDS) + 0.001
            self._again = asyncio.get_running_loop().call_later(seconds, self._grant_again)

    def _grant_again(self) -> None:
        self._again = None
        self.grant()

    def _grant_free(self) -> None:
        most = self._slots if len(self) <= 1 else self._beside
        # What one holds beyond that, from when it was alone, is no reason for others to wait.
        taken = sum(min(each.held, most) for each in self._busy.values())
        while taken < self._slots:
            able = [each for each in self._busy.values() if each.waiting and each.held < most and not self._rests(each)]
            if not able:
                return
            chosen = min(able, key=lambda each: (each.held, each.service))
            waiter = chosen.waiting.popleft()
            if waiter.cancelled():  # Its call has left, and will be told so.
                continue
            self._virtual_time = max(self._virtual_time, chosen.service)
            chosen.held += 1
            taken += 1
            waiter.set_result(None)


class Slot:
    """The slot of one call, which it may give back and take again."""

    def __init__(self, queue: FairQueue, tenant: Hashable, clock: Callable[[], float]) -> None:
        self._queue, self._tenant, self._clock = queue, tenant, clock
        self._since: float | None = None
        self._limit: asyncio.TimerHandle | None = None
        self._is_taking = self._is_over = False

    async def take(self, *, first: bool = False) -> None:
        """Wait for the slot, `first` before others of the tenant; a call that has one, or is over, goes on."""
        if self._goes_on:
            return
        self._is_taking = True
        try:
            await self._queue.take(self._tenant, first=first)
        finally:
            self._is_taking = False
        self._since = self._clock()
        self._limit = asyncio.get_running_loop().call_later(SLOT_SECONDS, self.give_back)
        if self._is_over:  # The call ended while one of its tasks waited.
            self.give_back()

    @property
    def _goes_on(self) -> bool:
        return self._since is not None or self._is_taking or self._is_over

    def give_back(self) -> None:
        """Let others have it, where this call has it."""
        if self._since is None:
            return
        held, self._since = self._clock() - self._since, None
        if self._limit is not None:
            self._limit.cancel()
        self._queue.give_back(self._tenant, held)

    def end(self) -> None:
        """Give it back for good: what is left of the call needs none."""
        self._is_over = True
        self.give_back()


_SLOT: ContextVar[Slot | None] = ContextVar("slot", default=None)
"""That of the call at hand; what works for no call has none."""


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
