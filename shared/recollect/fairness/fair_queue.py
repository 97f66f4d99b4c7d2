"""Fair queueing: few calls are at work in a process at once, and whose call is next is decided by tenant.

An event loop runs ready callbacks in the order in which they came, so that a call that waits for the database eight
times stands eight times behind all other calls at work. Here few calls are at work, each in a *slot*; the others wait
at no cost. A free slot goes to the tenant that has the fewest, then to the one that was served least: start-time
fair queueing (Goyal, Vin and Cheng 1996), by the time that slots were held. A tenant that calls again later does not
catch up on slots that it did not ask for.

- A tenant that is alone gets every slot. If other tenants asked lately it gets few, even while they ask for nothing:
  otherwise their next call would find all slots taken.
- A tenant that has less than its part does not wait for slots that another tenant has beyond its own part.
- A call of a tenant whose calls queue gives way, between its steps, to calls of tenants whose calls do not queue.
- A call holds a slot for a limited time (`slots.py`), and works on without one after that, bounded by the resources
  that it waits for: its tenant's connections, or a thread. So no call waits for ever.
"""

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

LATELY_SECONDS = 5.0
"""How long after its last request a tenant counts as present, so that others get few slots."""

RESTS = 2.0
"""How long a tenant whose calls queue rests after each of them while other tenants' calls do not queue, as a multiple
of the time that the call took."""

REST_SECONDS = 1.0
"""The longest rest."""

GAP_SECONDS = 0.1
"""How long after their last request other tenants are still rested for."""

MIN_SERVICE = 0.0001
"""Seconds that each slot counts for at least, so that every grant moves the queue on."""

Waiter = asyncio.Future[None]


@dataclass(slots=True)
class _Tenant:
    """State of one tenant. `service`: seconds in slots, as virtual time; `asked_at`: the time of its last request."""

    service: float = 0.0
    asked_at: float = 0.0
    rests_until: float = 0.0
    in_use: int = 0
    waiting: deque[Waiter] = field(default_factory=deque)

    @property
    def is_busy(self) -> bool:
        return bool(self.in_use or self.waiting)


class FairQueue:
    """Gives slots to tenants.

    `slots`: how many there are in all. `compute_slots`: the most of one tenant while others are present. Tenants that
    have not asked for LATELY_SECONDS are forgotten.
    """

    def __init__(self, slots: int, compute_slots: int = 1, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._slots, self._compute_slots, self.clock = slots, min(compute_slots, slots), clock
        self._recent: OrderedDict[Hashable, _Tenant] = OrderedDict()
        self._busy: dict[Hashable, _Tenant] = {}
        self._virtual_time = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._expected = Counter[Hashable]()
        self._preempted = set[Waiter]()

    def __len__(self) -> int:
        """How many tenants hold slots, wait, or asked lately."""
        now = self.clock()
        while self._recent:
            tenant, state = next(iter(self._recent.items()))
            if now - state.asked_at <= LATELY_SECONDS:
                break
            if state.is_busy:
                self._note_asked(tenant)
            else:
                del self._recent[tenant]
        return len(self._recent)

    def slots_of(self, tenant: Hashable) -> int:
        """How many slots the tenant has."""
        state = self._busy.get(tenant)
        return state.in_use if state else 0

    def waiting(self, tenant: Hashable) -> int:
        """How many of the tenant's calls wait."""
        state = self._busy.get(tenant)
        return len(state.waiting) if state else 0

    async def take(self, tenant: Hashable, *, first: bool = False) -> None:
        """Wait for a slot; `first`: before the waiting calls of the same tenant."""
        state = self._note_asked(tenant)
        if not state.is_busy:
            state.service = max(state.service, self._virtual_time)
            self._busy[tenant] = state
        waiter: Waiter = asyncio.get_running_loop().create_future()
        state.waiting.insert(0 if first else len(state.waiting), waiter)
        self.grant()
        if not state.in_use:
            self._recheck()  # Calls that give way may hold what this tenant waits for.
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():  # The slot was granted, and its call has left.
                self.give_back(tenant, 0.0)
            elif waiter in state.waiting:
                state.waiting.remove(waiter)
                self._forget_idle(tenant, state)
            raise

    def give_back(self, tenant: Hashable, seconds: float, *, rested: float = 0.0) -> None:
        """Free a slot that was used for `seconds`; `rested`: the part of the rest that the call has already had."""
        state = self._note_asked(tenant)
        state.in_use -= 1
        state.service += max(seconds, MIN_SERVICE)
        if state.waiting:
            state.rests_until = self.clock() + min(max(RESTS * seconds - rested, 0.0), REST_SECONDS)
        self._forget_idle(tenant, state)
        self._recheck()
        self.grant()

    @contextmanager
    def expecting(self, tenant: Hashable) -> Iterator[None]:
        """Have others give way to a call of this tenant before it asks for a slot: while it is being admitted."""
        self._expected[tenant] += 1
        try:
            yield
        finally:
            self._expected[tenant] -= 1
            if not self._expected[tenant]:
                del self._expected[tenant]
            self._recheck()

    def is_preemptible(self, tenant: Hashable) -> bool:
        """Whether calls of the tenant queue while another tenant, whose calls do not, has one at work or expected.

        False where a third tenant has no slot and waits for one: it would only wait longer.
        """
        if not self.waiting(tenant) or self._is_other_starved(tenant):
            return False
        if any(state.in_use and not state.waiting for state in self._busy.values()):
            return True
        return any(other != tenant and not self.waiting(other) for other in self._expected)

    def may_be_preempted(self, tenant: Hashable) -> bool:
        """Whether calls of the tenant queue, and another tenant, whose calls do not, asked lately and may ask again."""
        if not self.waiting(tenant) or len(self) <= 1:
            return False
        return any(other != tenant and not state.waiting for other, state in self._recent.items())

    def _is_other_starved(self, tenant: Hashable) -> bool:
        """Whether another tenant that does not rest waits without a slot: all are taken."""
        now = self.clock()
        return any(
            other != tenant and state.waiting and not state.in_use and not self._rests(state, now)
            for other, state in self._busy.items()
        )

    async def wait_while_preempted(self, tenant: Hashable, seconds: float) -> None:
        """Wait until the tenant need not give way any more, or the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.is_preemptible(tenant):
                    waiter: Waiter = asyncio.get_running_loop().create_future()
                    self._preempted.add(waiter)
                    try:
                        await waiter
                    finally:
                        self._preempted.discard(waiter)

    def _recheck(self) -> None:
        """Have calls that give way check whether they still need to."""
        for waiter in self._preempted:
            if not waiter.done():
                waiter.set_result(None)

    def _note_asked(self, tenant: Hashable) -> _Tenant:
        state = self._recent.setdefault(tenant, _Tenant())
        state.asked_at = self.clock()
        self._recent.move_to_end(tenant)
        return state

    def _forget_idle(self, tenant: Hashable, state: _Tenant) -> None:
        if not state.is_busy:
            self._busy.pop(tenant, None)

    def _rests(self, tenant: _Tenant, now: float) -> bool:
        """Whether the tenant rests for others without waiting calls that are being served, or asked a moment ago."""
        if now >= tenant.rests_until:
            return False
        for state in reversed(self._recent.values()):
            if now - state.asked_at >= GAP_SECONDS:
                break
            if state is not tenant and not state.waiting:
                return True
        return any(state is not tenant and state.in_use and not state.waiting for state in self._busy.values())

    def grant(self) -> None:
        """Give free slots to tenants that may have them, and set a timer for those that rest."""
        now = self.clock()  # One moment for both: a tenant that rests for the first has the timer of the second.
        self._grant_free(now)
        rests = [state.rests_until for state in self._busy.values() if state.waiting and self._rests(state, now)]
        if rests and self._timer is None:
            # Event loops round to milliseconds: a timer that fired a little too early would not be set again.
            seconds = min(min(rests) - now, GAP_SECONDS) + 0.001
            self._timer = asyncio.get_running_loop().call_later(seconds, self._grant_again)

    def _grant_again(self) -> None:
        self._timer = None
        self.grant()

    def _grant_free(self, now: float) -> None:
        limit = self._slots if len(self) <= 1 else self._compute_slots
        # Slots that a tenant holds beyond the limit, from when it was alone, are no reason for others to wait.
        taken = sum(min(state.in_use, limit) for state in self._busy.values())
        while taken < self._slots:
            candidates = [
                state
                for state in self._busy.values()
                if state.waiting and state.in_use < limit and not self._rests(state, now)
            ]
            if not candidates:
                return
            chosen = min(candidates, key=lambda state: (state.in_use, state.service))
            waiter = chosen.waiting.popleft()
            if waiter.cancelled():  # Its call has left; `take` cleans up after it.
                continue
            self._virtual_time = max(self._virtual_time, chosen.service)
            chosen.in_use += 1
            taken += 1
            waiter.set_result(None)
