"""The counts of one process that are not stored yet.

Counting is a look-up and an addition in memory: a call never waits for it. A process that is killed loses its counts
since the last flush. Everything runs on one event loop, so that no locks are needed.
"""

import time
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from recollect.accounts.usage.model import HOUR_SECONDS, Counter, Counts, Kind, TenantUsage
from recollect.telemetry.metrics import record_uncounted

MAX_ENTRIES = 20_000
"""Counters and keys of all tenants, at most: some megabytes. Only a database that is unavailable for long, or thousands
of tenants at once, fill the tally. A metric counts the calls that are then left out."""


class UsageTally:
    """Counts by tenant, of calls and of the use of keys."""

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        self._tenants: dict[UUID, TenantUsage] = {}
        self._entries = 0
        self._max_entries = max_entries
        record_uncounted(0)  # So that the first loss is an increase of the metric.

    def count(self, tenant_id: UUID, kind: Kind, name: str, counts: Counts) -> None:
        """Add to the counts of a tenant for this hour; `name` is a word of the code, never text of a caller."""
        counter = Counter(int(time.time()) // HOUR_SECONDS, kind, name)
        self._add(self._of(tenant_id), counter, counts)

    def note_key(self, tenant_id: UUID, key_id: UUID, at: datetime) -> None:
        """Note that an API key was used."""
        self._note(self._of(tenant_id), key_id, at)

    def tenants(self) -> list[UUID]:
        """The tenants with counts to store, in the order in which they came."""
        return list(self._tenants)

    def take(self, tenant_id: UUID) -> TenantUsage:
        """Remove and return the counts of a tenant."""
        usage = self._tenants.pop(tenant_id, TenantUsage({}, {}))
        self._entries -= len(usage.counted) + len(usage.keys)
        return usage

    def give_back(self, tenant_id: UUID, usage: TenantUsage) -> None:
        """Put back counts that could not be stored, to be tried again after those of other tenants."""
        newer = self.take(tenant_id)
        merged = self._of(tenant_id)
        for counter, counts in _pairs(usage, newer):
            self._add(merged, counter, counts)
        for key_id, at in (*usage.keys.items(), *newer.keys.items()):
            self._note(merged, key_id, at)

    def _of(self, tenant_id: UUID) -> TenantUsage:
        return self._tenants.setdefault(tenant_id, TenantUsage({}, {}))

    def _add(self, usage: TenantUsage, counter: Counter, counts: Counts) -> None:
        if (known := usage.counted.get(counter)) is not None:
            usage.counted[counter] = known + counts
        elif self._has_capacity():
            usage.counted[counter] = counts
        else:
            record_uncounted(counts.calls)

    def _note(self, usage: TenantUsage, key_id: UUID, at: datetime) -> None:
        if key_id in usage.keys or self._has_capacity():
            usage.keys[key_id] = at

    def _has_capacity(self) -> bool:
        has_capacity = self._entries < self._max_entries
        self._entries += has_capacity
        return has_capacity


def _pairs(*usages: TenantUsage) -> Iterable[tuple[Counter, Counts]]:
    for usage in usages:
        yield from usage.counted.items()
