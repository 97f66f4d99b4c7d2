"""Fair queueing: few calls are at work in a process at once, and whose call is next is decided by tenant.

An event loop takes what is ready in the order in which it came, so that a call that waits for the database eight times
stands eight times behind whatever else is at work. Here few are at work, each in a *slot*; the others wait without
costing anything. A free slot goes to the tenant that has the fewest, then to the one that was served least: start-time
fair queueing (Goyal, Vin and Cheng 1996), by the time that slots were held. A tenant that comes back does not catch up
on what it did not ask for meanwhile.

- A tenant that is alone gets every slot. Beside others that asked lately it gets few, also while they ask for nothing:
  else their next call would find all of its.
- A tenant that has less than that needs not wait for slots that another has beyond its own.
- A call of a tenant whose calls queue gives way, between its steps, to those of tenants whose calls do not.
- A slot is held for so long at most (`slots.py`). Whoever is at work for longer goes on without one, and is bounded by
  what it waits for: its tenant's connections, or a thread. So nobody waits for ever.
"""

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

LATELY_SECONDS = 5.0
"""How long a tenant counts as one beside whom others get few slots, after it asked for something."""

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
        self._slots, self._beside, self.clock = slots, min(beside, slots), clock
        self._lately: OrderedDict[Hashable, _Tenant] = OrderedDict()
        self._busy: dict[Hashable, _Tenant] = {}
        self._virtual_time = 0.0
        self._again: asyncio.TimerHandle | None = None
        self._expected = Counter[Hashable]()
        self._giving_way = set[Waiter]()

    def __len__(self) -> int:
        """How many tenants hold slots, wait, or asked lately."""
        now = self.clock()
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
        if not known.held:
            self._look_again()  # Who gives way may have what this tenant waits for.
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():  # It was granted, and nobody is there to hold it.
                self.give_back(tenant, 0.0)
            elif waiter in known.waiting:
                known.waiting.remove(waiter)
                self._forget_idle(tenant, known)
            raise

    def give_back(self, tenant: Hashable, seconds: float, *, rested: float = 0.0) -> None:
        """A slot that was worked in for so long is free; `rested`: how much of its rest its call has had."""
        known = self._note_asked(tenant)
        known.held -= 1
        known.service += max(seconds, LEAST_SERVICE)
        if known.waiting:
            known.rests_until = self.clock() + min(max(RESTS * seconds - rested, 0.0), REST_SECONDS)
        self._forget_idle(tenant, known)
        self._look_again()
        self.grant()

    @contextmanager
    def expecting(self, tenant: Hashable) -> Iterator[None]:
        """Have others give way to a call of this tenant before it asks for a slot: inside, it is being admitted."""
        self._expected[tenant] += 1
        try:
            yield
        finally:
            self._expected[tenant] -= 1
            if not self._expected[tenant]:
                del self._expected[tenant]
            self._look_again()

    def gives_way(self, tenant: Hashable) -> bool:
        """Whether calls of the tenant queue while one of another is at work, or expected, whose calls do not.

        Not where yet another has no slot and waits for one: that would only wait for longer.
        """
        if not self.waiting(tenant) or self._starves(tenant):
            return False
        if any(each.held and not each.waiting for each in self._busy.values()):
            return True
        return any(each != tenant and not self.waiting(each) for each in self._expected)

    def may_have_to_give_way(self, tenant: Hashable) -> bool:
        """Whether calls of the tenant queue, and another asked lately whose calls do not: its next may come."""
        if not self.waiting(tenant) or len(self) <= 1:
            return False
        return any(other != tenant and not known.waiting for other, known in self._lately.items())

    def _starves(self, tenant: Hashable) -> bool:
        """Whether another tenant waits that has no slot and does not rest: all are taken."""
        now = self.clock()
        return any(
            other != tenant and known.waiting and not known.held and not self._rests(known, now)
            for other, known in self._busy.items()
        )

    async def wait_for_way(self, tenant: Hashable, seconds: float) -> None:
        """Return when the tenant need not give way, or the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.gives_way(tenant):
                    waiter: Waiter = asyncio.get_running_loop().create_future()
                    self._giving_way.add(waiter)
                    try:
                        await waiter
                    finally:
                        self._giving_way.discard(waiter)

    def _look_again(self) -> None:
        """Have those who give way look whether they still need to."""
        for waiter in self._giving_way:
            if not waiter.done():
                waiter.set_result(None)

    def _note_asked(self, tenant: Hashable) -> _Tenant:
        known = self._lately.setdefault(tenant, _Tenant())
        known.asked_at = self.clock()
        self._lately.move_to_end(tenant)
        return known

    def _forget_idle(self, tenant: Hashable, known: _Tenant) -> None:
        if not known.is_busy:
            self._busy.pop(tenant, None)

    def _rests(self, tenant: _Tenant, now: float) -> bool:
        """Whether it rests, for others none of whose calls wait and that are served, or asked a moment ago."""
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
        now = self.clock()  # One moment for both: who rests in the first is thought of again by the second.
        self._grant_free(now)
        rests = [each.rests_until for each in self._busy.values() if each.waiting and self._rests(each, now)]
        if rests and self._again is None:
            # Loops keep time by milliseconds: what came a little too early would not come again.
            seconds = min(min(rests) - now, GAP_SECONDS) + 0.001
            self._again = asyncio.get_running_loop().call_later(seconds, self._grant_again)

    def _grant_again(self) -> None:
        self._again = None
        self.grant()

    def _grant_free(self, now: float) -> None:
        most = self._slots if len(self) <= 1 else self._beside
        # What one holds beyond that, from when it was alone, is no reason for others to wait.
        taken = sum(min(each.held, most) for each in self._busy.values())
        while taken < self._slots:
            able = [
                each for each in self._busy.values() if each.waiting and each.held < most and not self._rests(each, now)
            ]
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
