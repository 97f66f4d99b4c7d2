"""Credentials that do not hold: remembered and throttled, so that who makes keys up does not ask the database.

Three memories, each bounded, of one gateway:

- Keys that held lately are asked for whatever their address did: many clients share one behind a NAT.
- Keys that are unknown, revoked or over are refused again without asking, for a moment. That a key is made meanwhile
  which somebody had tried before cannot happen: it has 190 random bits.
- Each address has a number of failures, which come back with time. Without any left, a key that is not known to hold
  is not asked for (429).
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from cachetools import LRUCache, TTLCache

from recollect.errors import TooManyFailures

REMEMBERED_KEYS = 10_000
"""Keys that held, and keys that did not, which a gateway remembers."""

REMEMBERED_SITES = 10_000
"""Addresses whose failures a gateway remembers."""

VOID_SECONDS = 2.0
"""How long a key that does not hold is refused without asking."""

_WINDOW_SECONDS = 60.0

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class _Allowance:
    """Failures that an address had left at a time."""

    left: float
    at: float


class FailedKeys:
    """What one gateway knows of keys that did and did not hold. Keys are told by their hashes."""

    def __init__(self, per_minute: int, clock: Clock = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._held: LRUCache[bytes, bool] = LRUCache(REMEMBERED_KEYS)
        self._void: TTLCache[bytes, bool] = TTLCache(REMEMBERED_KEYS, VOID_SECONDS, timer=clock)
        self._sites: TTLCache[str, _Allowance] = TTLCache(REMEMBERED_SITES, _WINDOW_SECONDS, timer=clock)

    def is_void(self, key: bytes) -> bool:
        """Whether the key did not hold a moment ago."""
        return key in self._void

    def require_allowance(self, key: bytes, site: str) -> None:
        """Raise TooManyFailures where the address has no failure left, and the key is not known to hold."""
        if key in self._held:
            return
        left = self._left(site)
        if left < 1:
            raise TooManyFailures(
                "Too many keys from this address were not accepted. Try again later.",
                seconds=math.ceil((1 - left) * _WINDOW_SECONDS / self._per_minute),
            )

    def note_held(self, key: bytes) -> None:
        """The key holds."""
        self._held[key] = True

    def note_failed(self, key: bytes, site: str, *, void: bool) -> None:
        """The key does not hold; `void` is one that never will again."""
        self._held.pop(key, None)
        if void:
            self._void[key] = True
        self._sites[site] = _Allowance(max(self._left(site) - 1, 0.0), self._clock())

    def _left(self, site: str) -> float:
        allowance = self._sites.get(site)
        if allowance is None:
            return float(self._per_minute)
        back = (self._clock() - allowance.at) * self._per_minute / _WINDOW_SECONDS
        return min(allowance.left + back, float(self._per_minute))
