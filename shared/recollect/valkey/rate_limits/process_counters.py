"""Counts of one gateway while Redis is unreachable: a share of each limit, as a token bucket."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cachetools import LRUCache

from recollect.valkey.rate_limits.model import LimitState, RateDecision, RateLimit

REMEMBERED = 10_000
"""Subjects that a gateway counts for; beyond that, the least recent are forgotten."""

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class _Bucket:
    """Requests that a subject had left at a time."""

    tokens: float
    at: float


class TokenBuckets:
    """Token buckets of `share` of each limit's quota, refilled evenly."""

    def __init__(self, share: float, clock: Clock) -> None:
        self._share = share
        self._clock = clock
        self._buckets: LRUCache[str, _Bucket] = LRUCache(REMEMBERED)

    def ask(self, limits: Sequence[RateLimit], *, take: bool) -> RateDecision:
        """What is left of these limits here; with `take`, after the request was counted for all of them or none."""
        local_limits = [replace(limit, quota=max(int(limit.quota * self._share), 1)) for limit in limits]
        tokens = [self._tokens(limit) for limit in local_limits]
        states = list(map(_state, local_limits, tokens))
        reached = next((state for state in states if not state.remaining), None)
        if take and reached is None:
            tokens = [count - 1 for count in tokens]
            now = self._clock()
            self._buckets.update(
                {limit.subject: _Bucket(count, now) for limit, count in zip(local_limits, tokens, strict=True)}
            )
            states = list(map(_state, local_limits, tokens))
        return RateDecision(states, reached)

    def __len__(self) -> int:
        """How many subjects are remembered."""
        return len(self._buckets)

    def _tokens(self, limit: RateLimit) -> float:
        bucket = self._buckets.get(limit.subject)
        if bucket is None:
            return float(limit.quota)
        refill = (self._clock() - bucket.at) * limit.quota / limit.seconds
        return min(bucket.tokens + refill, float(limit.quota))


def _state(limit: RateLimit, tokens: float) -> LimitState:
    remaining = int(tokens)
    reset = (remaining + 1 - tokens) * limit.seconds / limit.quota if remaining < limit.quota else 0.0
    return LimitState(limit, remaining, reset)
