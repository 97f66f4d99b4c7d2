"""What waits."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backlog:
    """One queue: `passages` without a vector, `jobs` that are due, or `deliveries` of webhooks that are.

    `waiting`: how many, counted up to a bound. `oldest_seconds`: how long the oldest has waited; 0 where none does.
    """

    queue: str
    waiting: int
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class MovesAtStep:
    """Moves of tenants at one step, by its name: how many, and for how long the oldest has been there."""

    step: str
    moves: int
    oldest_seconds: float
