"""How far a replica may lag, and who answered a read that it might have answered."""

import time
from collections import deque
from collections.abc import Callable
from enum import StrEnum

MARKS = 10
"""How many positions of the primary's log are remembered, at most, over the time that a replica may lag."""


class ReplicaOutcome(StrEnum):
    """Who answered a read that a replica may answer: the replica or, for the reason named, the primary."""

    REPLICA = "replica"
    BEHIND = "behind"
    LAGGING = "lagging"
    FULL = "full"
    PAUSED = "paused"
    UNREACHABLE = "away"
    PROMOTED = "promoted"
    CONFLICT = "conflict"
    LOST = "lost"
    FAILED = "failed"


class LogMarks:
    """Positions of the primary's log at moments of the last `seconds`."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._marks: deque[tuple[float, int]] = deque()

    def note(self, position: int) -> int:
        """Note the position of now, and return the one that a replica must have reached to lag `seconds` at most.

        That is the oldest position within that time; the one of now where there is no older one.
        """
        now = self._clock()
        while self._marks and self._marks[0][0] < now - self._seconds:
            self._marks.popleft()
        if not self._marks or now - self._marks[-1][0] >= self._seconds / MARKS:
            self._marks.append((now, position))
        return self._marks[0][1]
