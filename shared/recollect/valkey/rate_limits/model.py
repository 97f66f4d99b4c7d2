"""Rate limits: what they allow, what is left of one, and the arithmetic of the windows that count them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from recollect.errors import TooManyRequests


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A limit of `quota` requests in `seconds`.

    `policy` says to clients in one word to whom it applies: key, tenant or address. `subject` is the key in Redis under
    which it is counted; it holds no secret, and in braces the part that all limits of one request share.
    """

    policy: str
    subject: str
    quota: int
    seconds: int = 60


@dataclass(frozen=True, slots=True)
class LimitState:
    """What is left of a limit: requests now (`remaining`), and after how many seconds there is one more (`reset`).

    `limit` is the one in force, which is smaller while Redis is unreachable.
    """

    limit: RateLimit
    remaining: int
    reset: float

    @property
    def reset_seconds(self) -> int:
        """`reset` rounded up to whole seconds; 0 where nothing was used."""
        return math.ceil(self.reset + _SLACK_SECONDS) if self.reset else 0


_SLACK_SECONDS = 0.002
"""Redis counts time in milliseconds, and a limit is free again only after the last of them."""


@dataclass(frozen=True, slots=True)
class RateDecision:
    """The standings of all limits of a request, and the one that was reached, if any."""

    states: Sequence[LimitState]
    reached: LimitState | None = None


class RateLimited(TooManyRequests):
    """A limit is reached. `states`: of this limit, and of the request's other limits where they are known."""

    def __init__(self, reached: LimitState, states: Sequence[LimitState]) -> None:
        limit, seconds = reached.limit, max(reached.reset_seconds, 1)
        super().__init__(
            f"All {limit.quota} requests that this {limit.policy} may send in {limit.seconds} seconds are used. "
            f"Try again in {seconds} second{'s' * (seconds > 1)}.",
            seconds=seconds,
        )
        self.states = states


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """A sliding window counter: requests of this fixed window, and those of the one before, which count less and less.

    `previous_ttl` is how long requests of the previous window still count, `current_ttl` how long those of the current
    one will, both in seconds: a window lasts its length, and its requests fade over the same time after it.
    """

    previous: int
    previous_ttl: float
    current: int
    current_ttl: float

    def state(self, limit: RateLimit) -> LimitState:
        """What is left of the limit by this window."""
        count = self._count(limit.seconds)
        reset = self._seconds_until(min(count, limit.quota) - 1, limit.seconds) if count else 0.0
        return LimitState(limit, max(limit.quota - count, 0), reset)

    def _count(self, length: int) -> int:
        return math.floor(self.previous * self.previous_ttl / length) + self.current

    def _seconds_until(self, most: int, length: int) -> float:
        """How long it takes until no more than `most` requests count, if none is sent."""
        if self.current <= most:
            return max(self.previous_ttl - length * (most - self.current + 1) / self.previous, 0.0)
        # This window has to end first; then its requests fade, too.
        return self.current_ttl - length * (most + 1) / self.current
