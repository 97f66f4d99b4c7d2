"""The public keys that ID tokens are verified by, as a gateway remembers them for a moment."""

import time
from collections.abc import Callable
from typing import Any

from recollect.accounts.oauth.signing import service as signing
from recollect.platform.db import Database

REMEMBERED_SECONDS = 60.0
"""Less than the time for which a key is published before it signs: who asks for an unknown key finds it."""


class PublishedKeys:
    """All public keys, asked for at most once in a while: anybody may read them, as often as they like."""

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
