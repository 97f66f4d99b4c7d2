"""Credentials that do not hold: remembered and throttled, so that clients that make keys up do not load the database.

A credential that was issued here and has expired, or was revoked, is nobody's guess: it is remembered, and not counted.
Else the ordinary expiries of many people who share an address would lock it.

Three memories, each bounded:

- Keys that were valid lately are looked up whatever their address did: many clients share one address behind a NAT.
  Each gateway knows those that it saw.
- Keys that are unknown, revoked or expired are refused again by this gateway without a look-up, for a moment. No key is
  made meanwhile that somebody had tried before: a key has 190 random bits.
- Each address has a number of failures in a minute, at all gateways together. Without any left, a key that is not known
  to hold is not looked up (429).
"""

import time
from collections.abc import Callable
from contextlib import suppress

from cachetools import LRUCache, TTLCache

from recollect.errors import ErrorCode, TooManyRequests, Unauthenticated
from recollect.valkey.rate_limits.limiter import RateLimiter
from recollect.valkey.rate_limits.model import RateLimit, RateLimited

REMEMBERED_KEYS = 10_000
"""Valid and invalid keys that a gateway remembers."""

KNOWN_INVALID_SECONDS = 2.0
"""How long a key that does not hold is refused without a look-up."""


class FailedKeys:
    """What one gateway knows of keys that did and did not hold. Keys are known by their hashes.

    `limit_of` gives the limit of failures of an address.
    """

    def __init__(
        self,
        limiter: RateLimiter,
        limit_of: Callable[[str], RateLimit],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limiter = limiter
        self._limit_of = limit_of
        self._valid: LRUCache[bytes, bool] = LRUCache(REMEMBERED_KEYS)
        self._void: TTLCache[bytes, Unauthenticated | None] = TTLCache(
            REMEMBERED_KEYS, KNOWN_INVALID_SECONDS, timer=clock
        )

    def is_known_invalid(self, key: bytes) -> bool:
        """Whether the key did not hold a moment ago."""
        return key in self._void

    def raise_if_known_invalid(self, key: bytes) -> None:
        """Raise the error of a moment ago where the key did not hold then."""
        if (error := self._void.get(key)) is not None:
            raise type(error)(error.message)

    async def require_within_rate(self, key: bytes, site: str) -> None:
        """Raise TooManyRequests where the address has no failures left, unless this key is known to hold."""
        if key in self._valid:
            return
        try:
            await self._limiter.peek(self._limit_of(site))
        except RateLimited as error:
            raise TooManyRequests(
                "Too many keys from this address were refused. Try again later.",
                code=ErrorCode.TOO_MANY_FAILURES,
                seconds=error.seconds,
            ) from None

    def note_valid(self, key: bytes) -> None:
        """The key holds."""
        self._valid[key] = True

    def note_ended(self, key: bytes, error: Unauthenticated | None) -> None:
        """The key was issued and does not hold; `error`: it never will again, for this reason."""
        self._valid.pop(key, None)
        if error is not None:
            self._void[key] = error

    async def note_failed(self, key: bytes, site: str, *, void: bool, error: Unauthenticated | None = None) -> None:
        """The key does not hold, and may be made up; `void`: it never will again, for the reason of `error`."""
        self._valid.pop(key, None)
        if void:
            self._void[key] = error
        with suppress(RateLimited):  # A concurrent request took the last.
            await self._limiter.take(self._limit_of(site))
