"""Counts of one gateway, for the time in which Redis is away: a share of each limit, as a token bucket."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cachetools import LRUCache

from recollect.platform.rate_limits.model import RateDecision, RateLimit, Standing

REMEMBERED = 10_000
"""Subjects that a gateway counts for; of more, those that asked last."""

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class _Bucket:
    """Requests that a subject had left at a time."""

    left: float
    at: float


class TokenBuckets:
    """Of each limit its `share` of the quota, which comes back evenly."""

    def __init__(self, share: float, clock: Clock) -> None:
        self._share = share
        self._clock = clock
        self._buckets: LRUCache[str, _Bucket] = LRUCache(REMEMBERED)

    def ask(self, limits: Sequence[RateLimit], *, take: bool) -> RateDecision:
        """What is left of these limits here; with `take`, after the request was counted for all of them or none."""
        smaller = [replace(limit, quota=max(int(limit.quota * self._share), 1)) for limit in limits]
        left = [self._left(limit) for limit in smaller]
        reached = next((each for each in map(_standing, smaller, left) if not each.remaining), None)
        if take and reached is None:
            left = [each - 1 for each in left]
            now = self._clock()
            self._buckets.update({limit.subject: _Bucket(each, now) for limit, each in zip(smaller, left, strict=True)})
        return RateDecision(list(map(_standing, smaller, left)), reached)

    def __len__(self) -> int:
        """Subjects that are remembered."""
        return len(self._buckets)

    def _left(self, limit: RateLimit) -> float:
        bucket = self._buckets.get(limit.subject)
        if bucket is None:
            return float(limit.quota)
        back = (self._clock() - bucket.at) * limit.quota / limit.seconds
        return min(bucket.left + back, float(limit.quota))


def _standing(limit: RateLimit, left: float) -> Standing:
    whole = int(left)
    reset = (whole + 1 - left) * limit.seconds / limit.quota if whole < limit.quota else 0.0
    return Standing(limit, whole, reset)
