"""Callers that a gateway remembers for a few seconds, so that not every request looks its credential up.

What holds of each, so that nobody is served longer than the setting says whom the database would refuse
(docs/adr/0018-callers-are-remembered-for-seconds.md):

- It is known by the keyed hash of its secret, with the tenant and the resource that the request names.
- It is as old as the moment before it was looked up, and forgotten so many seconds after that.
- It is forgotten as soon as word comes that callers of its tenant have changed. What was looked up before that word is
  not remembered after it.
- While no such word can come, since Redis is away, nothing is remembered.
- Its own end is looked at each time. Nobody is remembered to be refused.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import UUID

from cachetools import LRUCache

from recollect.caller import Caller
from recollect.platform.caller_changes import EVERYBODY
from recollect.platform.change_bus import ChangeBus, Listener

REMEMBERED_CALLERS = 10_000
"""Credentials whose callers a gateway remembers; and tenants of whom it knows when their callers changed."""

Presented = tuple[bytes, str | None, str | None]
"""A credential as a request brings it: its keyed hash, the tenant that the address names, the resource."""


class RememberedCallers:
    """What one gateway knows of who called lately. `seconds` 0 remembers nobody.

    `is_told`: whether word of changes can come.
    """

    def __init__(
        self, seconds: float, is_told: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds, self._is_told, self._clock = seconds, is_told, clock
        self._known: LRUCache[bytes, dict[Presented, tuple[float, Caller]]] = LRUCache(REMEMBERED_CALLERS)
        self._changed: dict[UUID, float] = {}
        self._all_changed = float("-inf")

    def now(self) -> float:
        """The moment of which `keep` is to be told: before the caller is looked up."""
        return self._clock()

    def find(self, presented: Presented) -> Caller | None:
        """Who this was a moment ago, if that still counts."""
        known = self._known.get(presented[0], {}).get(presented)
        if known is None:
            return None
        asked_at, caller = known
        is_over = caller.expires_at is not None and caller.expires_at <= datetime.now(UTC)
        if is_over or not self._counts(asked_at, caller.tenant_id):
            self.drop(presented)
            return None
        return caller

    def keep(self, presented: Presented, caller: Caller, asked_at: float) -> None:
        """Remember who this is, as it was at that moment."""
        if self._counts(asked_at, caller.tenant_id):
            self._known.setdefault(presented[0], {})[presented] = asked_at, caller

    def drop(self, presented: Presented) -> None:
        """Forget a credential, such as one that was refused, wherever it was brought."""
        self._known.pop(presented[0], None)

    def forget(self, tenant_id: UUID) -> None:
        """Callers of a tenant have changed, or of EVERYBODY."""
        now = self._clock()
        if tenant_id == EVERYBODY:
            self._all_changed = now
            self._changed.clear()
            return
        if len(self._changed) >= REMEMBERED_CALLERS:
            self._changed = {each: at for each, at in self._changed.items() if now - at < self._seconds}
        if len(self._changed) >= REMEMBERED_CALLERS:
            self.forget(EVERYBODY)
        self._changed[tenant_id] = now

    def _counts(self, asked_at: float, tenant_id: UUID) -> bool:
        """Whether what was looked up at that moment may be served now."""
        changed = max(self._all_changed, self._changed.get(tenant_id, float("-inf")))
        return self._is_told() and changed < asked_at > self._clock() - self._seconds


class CallerListener(Listener):
    """Has callers be forgotten of whom a word comes. Where words may have been missed, all are."""

    __slots__ = ("_callers",)

    def __init__(self, callers: RememberedCallers) -> None:
        super().__init__(EVERYBODY, None)
        self._callers = callers

    def wake(self, graph_id: UUID | None = None) -> None:
        """A tenant's callers have changed, which stands where other entries have a graph; None: anybody's."""
        self._callers.forget(EVERYBODY if graph_id is None else graph_id)


@contextmanager
def remembered_callers(bus: ChangeBus, seconds: float) -> Iterator[RememberedCallers]:
    """Callers that are forgotten by what the bus tells, while the block lasts; `seconds` 0 asks nothing of it."""
    callers = RememberedCallers(seconds, lambda: bus.follows(EVERYBODY))
    if not seconds:
        yield callers
        return
    with bus.heard_by(CallerListener(callers)):
        yield callers
