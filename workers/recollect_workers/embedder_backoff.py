"""How long a worker waits before it asks a failed embedder again."""

import asyncio
import random
import time
from uuid import UUID

from recollect.embedding import EmbeddingFailed

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
        """Note that the embedder is unavailable; the seconds to wait. A failure during a wait is the same failure."""
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
        """Note that the embedder answered, so that the next wait is short again."""
        self._failures = 0

    def batch(self, tenant_id: UUID, most: int) -> int:
        """How many passages of a tenant to embed at once."""
        return min(self._batches.get(tenant_id, most), most)

    def shrink(self, tenant_id: UUID, size: int) -> None:
        """Halve the batch size, since the failing texts of a batch of `size` were not found in time."""
        self._batches[tenant_id] = max(1, size // 2)

    def grow(self, tenant_id: UUID, most: int) -> None:
        """Double the batch size after a batch that succeeded."""
        if tenant_id in self._batches:
            self._batches[tenant_id] *= 2
            if self._batches[tenant_id] >= most:
                del self._batches[tenant_id]
