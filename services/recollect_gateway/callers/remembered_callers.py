"""Callers that a gateway remembers for a few seconds, so that not every request looks its credential up.

A caller whom the database would refuse is served no longer than the setting says
(docs/adr/0018-callers-are-remembered-for-seconds.md), because of these rules:

- A caller is known by the keyed hash of its secret, with the tenant and the resource that the request names.
- Its age counts from the moment before it was looked up, and it is forgotten so many seconds after that.
- It is forgotten as soon as a message says that callers of its tenant have changed. A caller that was looked up before
  that message is not remembered after it.
- While no such message can come, since Redis is unreachable, nothing is remembered.
- Its own expiry is checked each time. Refusals are not remembered.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

from cachetools import LRUCache

from recollect.caller import Caller
from recollect.valkey.caller_changes import EVERYBODY
from recollect.valkey.change_bus import ChangeBus, Listener

REMEMBERED_CALLERS = 10_000
"""Credentials whose callers a gateway remembers; and tenants for which it remembers when their callers changed."""

PresentedCredential = tuple[bytes, str | None, str | None]
"""A credential as a request brings it: its keyed hash, the tenant that the address names, the resource."""


class RememberedCallers:
    """The recent callers of one gateway. `seconds` 0 remembers nobody.

    `is_listening`: whether messages about changes can come.
    """

    def __init__(
        self, seconds: float, is_listening: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds, self._is_listening, self._clock = seconds, is_listening, clock
        self._known: LRUCache[bytes, dict[PresentedCredential, tuple[float, Caller]]] = LRUCache(REMEMBERED_CALLERS)
        self._changed: dict[UUID, float] = {}
        self._all_changed = float("-inf")

    def now(self) -> float:
        """This moment, to be passed to `remember`: taken before the caller is looked up."""
        return self._clock()

    def find(self, presented: PresentedCredential) -> Caller | None:
        """The caller that had this credential a moment ago, if that still counts."""
        known = self._known.get(presented[0], {}).get(presented)
        if known is None:
            return None
        looked_up_at, caller = known
        if self._has_expired(caller, looked_up_at) or not self._counts(looked_up_at, caller.tenant_id):
            self.drop(presented)
            return None
        return caller

    def _has_expired(self, caller: Caller, looked_up_at: float) -> bool:
        """Whether a credential has expired by the clock that set its end; by our own only where that is not known."""
        if caller.expires_at is None:
            return False
        if caller.read_at is None:
            return caller.expires_at <= datetime.now(UTC)
        return caller.expires_at <= caller.read_at + timedelta(seconds=self._clock() - looked_up_at)

    def remember(self, presented: PresentedCredential, caller: Caller, looked_up_at: float) -> None:
        """Remember the caller that had this credential at that moment."""
        if self._counts(looked_up_at, caller.tenant_id):
            self._known.setdefault(presented[0], {})[presented] = looked_up_at, caller

    def drop(self, presented: PresentedCredential) -> None:
        """Forget a credential, such as one that was refused, for every tenant and resource."""
        self._known.pop(presented[0], None)

    def forget(self, tenant_id: UUID) -> None:
        """Forget the callers of a tenant, or of EVERYBODY: they have changed."""
        now = self._clock()
        if tenant_id == EVERYBODY:
            self._all_changed = now
            self._changed.clear()
            return
        if len(self._changed) >= REMEMBERED_CALLERS:
            self._changed = {tenant: at for tenant, at in self._changed.items() if now - at < self._seconds}
        if len(self._changed) >= REMEMBERED_CALLERS:
            self.forget(EVERYBODY)
        self._changed[tenant_id] = now

    def _counts(self, looked_up_at: float, tenant_id: UUID) -> bool:
        """Whether a caller of this tenant that was looked up at that moment may be served now."""
        changed_at = max(self._all_changed, self._changed.get(tenant_id, float("-inf")))
        return self._is_listening() and changed_at < looked_up_at > self._clock() - self._seconds


class CallerListener(Listener):
    """Forgets callers when a message says that they have changed; all of them where messages may have been missed."""

    __slots__ = ("_callers",)

    def __init__(self, callers: RememberedCallers) -> None:
        super().__init__(EVERYBODY, None)
        self._callers = callers

    def wake(self, graph_id: UUID | None = None) -> None:
        """Forget the callers of a tenant, whose id stands where other messages have a graph's; None: of all tenants."""
        self._callers.forget(EVERYBODY if graph_id is None else graph_id)


@contextmanager
def remembered_callers(bus: ChangeBus, seconds: float) -> Iterator[RememberedCallers]:
    """Remembered callers, forgotten by messages of the bus while the block lasts; `seconds` 0 leaves the bus alone."""
    callers = RememberedCallers(seconds, lambda: bus.is_following(EVERYBODY))
    if not seconds:
        yield callers
        return
    with bus.subscribed(CallerListener(callers)):
        yield callers
