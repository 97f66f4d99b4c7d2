"""How long a worker waits before it asks a failed embedder again."""

import asyncio
import random
import time
from uuid import UUID

from recollect.platform.embedding import EmbeddingFailed

FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0
"""Waits double from the first to the longest. Half of each is random, so that workers do not all come back at once."""

LONGEST_RETRY_AFTER_SECONDS = 600.0
"""The longest pause that an embedder may ask for."""


class Backoff:
    """The wait for one embedder, shared by all that embed in this process, and the batch size of each tenant.

    While it is `waiting`, nothing is sent to the embedder; `due` is set when the wait is over.
    """

    def __init__(self) -> None:
        self.due = asyncio.Event()
        self._failures = 0
        self._until = 0.0
        self._batches: dict[UUID, int] = {}

    @property
    def waiting(self) -> bool:
        """Whether the wait is still running."""
        return self.seconds > 0

    @property
    def seconds(self) -> float:
        """Seconds that are left of the wait; 0 if the embedder may be asked."""
        return max(0.0, self._until - time.monotonic())

    def note_failure(self, failure: EmbeddingFailed) -> float:
        """The embedder is unavailable; the seconds to wait. A failure during a wait counts as the same failure."""
        if not self.waiting:
            self._failures += 1
        usual = min(FIRST_WAIT_SECONDS * 2.0 ** min(self._failures - 1, 10), LONGEST_WAIT_SECONDS)
        seconds = usual * random.uniform(0.5, 1)  # noqa: S311 - spreads load, guards nothing
        if failure.retry_after is not None:
            seconds = max(seconds, min(failure.retry_after, LONGEST_RETRY_AFTER_SECONDS))
        self._until = max(self._until, time.monotonic() + seconds)
        asyncio.get_running_loop().call_later(seconds, self.due.set)
        return seconds

    def note_success(self) -> None:
        """The embedder answered, so the next wait is short again."""
        self._failures = 0

    def batch(self, tenant_id: UUID, most: int) -> int:
        """How many passages of a tenant to embed at once."""
        return min(self._batches.get(tenant_id, most), most)

    def shrink(self, tenant_id: UUID, size: int) -> None:
        """The failing texts of such a batch were not found in time: take half as many from now on."""
        self._batches[tenant_id] = max(1, size // 2)

    def grow(self, tenant_id: UUID, most: int) -> None:
        """A batch succeeded: take twice as many again."""
        if tenant_id in self._batches:
            self._batches[tenant_id] *= 2
            if self._batches[tenant_id] >= most:
                del self._batches[tenant_id]
