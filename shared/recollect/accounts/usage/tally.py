"""What one process has counted and not written down yet.

Counting is a look-up and an addition in memory: a call never waits for it. What is here when the process is killed is
lost, which is what it counted since its last flush. All of it happens on one event loop, so that nothing is locked.
"""

import time
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from recollect.accounts.usage.model import HOUR_SECONDS, Counter, Counts, Kind, TenantUsage
from recollect.platform.metrics import record_uncounted

MAX_ENTRIES = 20_000
"""Counters and keys that are held at most, of all tenants: some megabytes. Only a database that is away for long, or
thousands of tenants at once, fill it; what has no place then is not counted, and told by a metric."""


class UsageTally:
    """Counts by tenant, of calls and of the use of keys."""

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        self._tenants: dict[UUID, TenantUsage] = {}
        self._entries = 0
        self._max_entries = max_entries
        record_uncounted(0)  # The first that is missing is an increase only from a count that was there.

    def count(self, tenant_id: UUID, kind: Kind, name: str, counts: Counts) -> None:
        """Add to what this hour has of a tenant; `name` is a word of the code, never a text of a caller."""
        counter = Counter(int(time.time()) // HOUR_SECONDS, kind, name)
        self._add(self._of(tenant_id), counter, counts)

    def note_key(self, tenant_id: UUID, key_id: UUID, at: datetime) -> None:
        """An API key was used."""
        self._note(self._of(tenant_id), key_id, at)

    def tenants(self) -> list[UUID]:
        """Those of whom something is to be written down, in the order in which they came."""
        return list(self._tenants)

    def take(self, tenant_id: UUID) -> TenantUsage:
        """What there is of a tenant, which is here no more."""
        usage = self._tenants.pop(tenant_id, TenantUsage({}, {}))
        self._entries -= len(usage.counted) + len(usage.keys)
        return usage

    def give_back(self, tenant_id: UUID, usage: TenantUsage) -> None:
        """What could not be written down, to be tried again after the others'."""
        newer = self.take(tenant_id)
        both = self._of(tenant_id)
        for counter, counts in _pairs(usage, newer):
            self._add(both, counter, counts)
        for key_id, at in (*usage.keys.items(), *newer.keys.items()):
            self._note(both, key_id, at)

    def _of(self, tenant_id: UUID) -> TenantUsage:
        return self._tenants.setdefault(tenant_id, TenantUsage({}, {}))

    def _add(self, usage: TenantUsage, counter: Counter, counts: Counts) -> None:
        if (known := usage.counted.get(counter)) is not None:
            usage.counted[counter] = known + counts
        elif self._has_place():
            usage.counted[counter] = counts
        else:
            record_uncounted(counts.calls)

    def _note(self, usage: TenantUsage, key_id: UUID, at: datetime) -> None:
        if key_id in usage.keys or self._has_place():
            usage.keys[key_id] = at

    def _has_place(self) -> bool:
        has_place = self._entries < self._max_entries
        self._entries += has_place
        return has_place


def _pairs(*usages: TenantUsage) -> Iterable[tuple[Counter, Counts]]:
    for usage in usages:
        yield from usage.counted.items()
