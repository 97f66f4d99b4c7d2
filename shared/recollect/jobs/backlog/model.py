"""Sizes of queues, and of moves at each step."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Backlog:
    """One queue: `passages` without a vector, due `jobs`, or due `deliveries` of webhooks.

    `waiting`: how many, counted up to a bound. `oldest_seconds`: how long the oldest has waited; 0 for an empty queue.
    """

    queue: str
    waiting: int
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class FailedWork:
    """Jobs of one kind that failed with one code, "" where there is none: how many, and when the last one did."""

    kind: str
    error_code: str
    failed: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class MovesAtStep:
    """Moves of tenants at one step, by its name: how many, and for how long the oldest has been there."""

    step: str
    moves: int
    oldest_seconds: float
