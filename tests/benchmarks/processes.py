"""Processor time of processes: theirs, their children's, and that of children that ended.

The kernel keeps it for each process (psutil reads it, from /proc on Linux), so it does not depend on the clock or on
what else the machine does. It is told in hundredths of a second: measure many calls and divide.
"""

import os
from collections.abc import Callable
from typing import TypeVar

import psutil

_T = TypeVar("_T")


def processor_seconds(pid: int) -> float:
    """Of a process and of all that it started."""
    process = psutil.Process(pid)
    return sum(_seconds(one) for one in (process, *process.children(recursive=True)))


class LoginSessions:
    """The sessions that a PostgreSQL server has for a login, which stands in the titles of their processes.

    A pool closes a session that was idle for long. What that one took still counts as the login's, as far as it was
    seen; else it would seem to have been the server's.
    """

    def __init__(self, postmaster_pid: int, login: str) -> None:
        self._postmaster = psutil.Process(postmaster_pid)
        self._title = f"postgres: {login} "
        self._seen: dict[psutil.Process, float] = {}

    def seconds(self) -> float:
        """Of those that there were whenever this was asked."""
        for child in self._postmaster.children():
            if _title(child).startswith(self._title):
                self._seen[child] = max(_seconds(child), self._seen.get(child, 0.0))
        return sum(self._seen.values())


def other_seconds() -> float:
    """Of everything on this machine but this process and what it started."""
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0) + getattr(times, "steal", 0.0)
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # in user and nice, too
    return sum(times) - guests - idle - processor_seconds(os.getpid())


def _seconds(process: psutil.Process) -> float:
    def seconds() -> float:
        times = process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)

    return _unless_ended(seconds, 0.0)


def _title(process: psutil.Process) -> str:
    return _unless_ended(lambda: " ".join(process.cmdline()), "")


def _unless_ended(ask: Callable[[], _T], otherwise: _T) -> _T:
    """Ask a process that was listed; it may have ended since, and its parent tells its time then."""
    try:
        return ask()
    except psutil.NoSuchProcess:
        return otherwise
