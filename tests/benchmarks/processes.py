"""Processor time of processes: theirs, their children's, and that of children that ended.

The kernel counts it for each process (psutil reads it, on Linux from /proc), so it depends neither on the clock nor on
other work of the machine. Its unit is a hundredth of a second: measure many calls and divide.
"""

import os
from collections.abc import Callable
from typing import TypeVar

import psutil

_T = TypeVar("_T")


def processor_seconds(pid: int) -> float:
    """The processor time of a process and of all processes that it started."""
    process = psutil.Process(pid)
    return sum(_seconds(one) for one in (process, *process.children(recursive=True)))


class LoginSessions:
    """The sessions of a login at a PostgreSQL server, recognized by the titles of their processes.

    A pool closes a session that was idle for long. Its time still counts for the login, as far as it was seen;
    otherwise it would count for the server.
    """

    def __init__(self, postmaster_pid: int, login: str) -> None:
        self._postmaster = psutil.Process(postmaster_pid)
        self._title = f"postgres: {login} "
        self._seen: dict[psutil.Process, float] = {}

    def seconds(self) -> float:
        """The processor time of all sessions that existed at any call of this method."""
        for child in self._postmaster.children():
            if _title(child).startswith(self._title):
                self._seen[child] = max(_seconds(child), self._seen.get(child, 0.0))
        return sum(self._seen.values())


def other_seconds() -> float:
    """The processor time of this machine without this process and those that it started."""
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
    """Read a value of a listed process, which may have ended since; then its time is in that of its parent."""
    try:
        return ask()
    except psutil.NoSuchProcess:
        return otherwise
