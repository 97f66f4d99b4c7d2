"""Credentials that do not hold: remembered and throttled, so that who makes keys up does not ask the database.

Three memories, each bounded:

- Keys that held lately are asked for whatever their address did: many clients share one behind a NAT. Each gateway
  knows those that it saw.
- Keys that are unknown, revoked or over are refused again by this gateway without asking, for a moment. That a key is
  made meanwhile which somebody had tried before cannot happen: it has 190 random bits.
- Each address has a number of failures in a minute, at all gateways together. Without any left, a key that is not known
  to hold is not asked for (429).
"""

import time
from collections.abc import Callable
from contextlib import suppress

from cachetools import LRUCache, TTLCache

from recollect.errors import ErrorCode, TooManyRequests
from recollect.platform.rate_limits.limiter import RateLimiter
from recollect.platform.rate_limits.model import RateLimit, RateLimited

REMEMBERED_KEYS = 10_000
"""Keys that held, and keys that did not, which a gateway remembers."""

VOID_SECONDS = 2.0
"""How long a key that does not hold is refused without asking."""


class FailedKeys:
    """What one gateway knows of keys that did and did not hold. Keys are told by their hashes.

    `limit_of` says how many failures an address has.
    """

    def __init__(
        self,
        limiter: RateLimiter,
        limit_of: Callable[[str], RateLimit],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limiter = limiter
        self._limit_of = limit_of
        self._held: LRUCache[bytes, bool] = LRUCache(REMEMBERED_KEYS)
        self._void: TTLCache[bytes, bool] = TTLCache(REMEMBERED_KEYS, VOID_SECONDS, timer=clock)

    def is_void(self, key: bytes) -> bool:
        """Whether the key did not hold a moment ago."""
        return key in self._void

    async def require_within_rate(self, key: bytes, site: str) -> None:
        """Raise TooManyRequests where as many keys of the address failed as may, and this one is not known to hold."""
        if key in self._held:
            return
        try:
            await self._limiter.look(self._limit_of(site))
        except RateLimited as reached:
            raise TooManyRequests(
                "Too many keys from this address were not accepted. Try again later.",
                code=ErrorCode.TOO_MANY_FAILURES,
                seconds=reached.seconds,
            ) from None

    def note_held(self, key: bytes) -> None:
        """The key holds."""
        self._held[key] = True

    async def note_failed(self, key: bytes, site: str, *, void: bool) -> None:
        """The key does not hold; `void` is one that never will again."""
        self._held.pop(key, None)
        if void:
            self._void[key] = True
        with suppress(RateLimited):  # Who asked beside it took the last.
            await self._limiter.take(self._limit_of(site))
