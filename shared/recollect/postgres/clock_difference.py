"""How far the clock of this process is from that of its database, which says what has ended.

Gateways and workers use their own clock for what they do by themselves: the days and hours in which usage counts, what
"yesterday" means in a question, the time in a token for others. A difference that others notice is reported
(`/health/ready`, and a line in the log).
"""

from datetime import datetime, timedelta

TOLERATED = timedelta(seconds=10)
"""A difference that is not reported: smaller than any time limit that two clocks decide."""


def difference(before: datetime, at: datetime, after: datetime) -> timedelta:
    """By how much this process is ahead, or (negative) behind, at least: none where the time of asking may explain it.

    `at`: the database's time, asked between `before` and `after` by the clock of this process.
    """
    if at < before:
        return before - at
    return min(after - at, timedelta(0))


def warning(ahead: timedelta) -> str | None:
    """What to say of a difference; None of one that is tolerated."""
    if abs(ahead) <= TOLERATED:
        return None
    side = "ahead of" if ahead > timedelta(0) else "behind"
    return (
        f"The clock of this process is {abs(ahead).total_seconds():.0f} s {side} that of the database. Set both by NTP."
    )
