"""The public keys by which ID tokens are verified. A gateway caches them for a moment."""

import time
from collections.abc import Callable
from typing import Any

from recollect.accounts.oauth.signing import service as signing
from recollect.postgres.database import Database

REMEMBERED_SECONDS = 60.0
"""Less than the time for which a key is published before it signs, so that clients find the key of every token."""


class PublishedKeys:
    """All public keys, read from the database at most once in a while: anybody may request them, at any rate."""

    def __init__(self, db: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._db, self._clock = db, clock
        self._keys: list[dict[str, Any]] = []
        self._until = 0.0

    async def get(self) -> list[dict[str, Any]]:
        """The keys. Raises Unavailable."""
        if self._clock() >= self._until:
            self._keys = await signing.public_keys(self._db)
            self._until = self._clock() + (REMEMBERED_SECONDS if self._keys else 0)
        return self._keys
