"""Starts servers, starts a crashed one again, and leaves none behind."""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from recollect.errors import Unavailable
from recollect_local.process import last_words
from recollect_local.server import Server

_CHECK_SECONDS = 0.1


@dataclass(slots=True)
class _Watched:
    """A server, how often it crashed in a row, and when it is due to start again."""

    server: Server
    started_at: float = field(default_factory=time.monotonic)
    crashes: int = 0
    restart_at: float | None = None


class Supervisor:
    """Keeps servers running while it is open; closing it stops them, last started first.

    A crashed server starts again after `first_delay_seconds`, and twice as long after each further
    crash; once one has run for `steady_seconds`, its crashes are forgotten. `echo` gets one line
    about each of these events.
    """

    def __init__(
        self,
        echo: Callable[[str], None],
        *,
        most_crashes: int = 5,
        first_delay_seconds: float = 0.5,
        steady_seconds: float = 30.0,
    ) -> None:
        self._echo = echo
        self._most_crashes = most_crashes
        self._first_delay_seconds = first_delay_seconds
        self._steady_seconds = steady_seconds
        self._watched: list[_Watched] = []
        self._stops = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._watched.clear()
        self._stops.close()

    def start(self, server: Server) -> None:
        """Start a server and keep it running from now on. Raises Unavailable if it does not start."""
        self._stops.callback(server.stop)
        server.start()
        self._watched.append(_Watched(server))

    def watch(self, until: Callable[[], bool], *, timeout_seconds: float = float("inf")) -> bool:
        """Watch the servers until `until()` is true; False if that took longer than the timeout.

        Raises Unavailable when a server crashed too often.
        """
        deadline = time.monotonic() + timeout_seconds
        while not until():
            if time.monotonic() > deadline:
                return False
            for watched in self._watched:
                self._check(watched)
            time.sleep(_CHECK_SECONDS)
        return True

    def _check(self, watched: _Watched) -> None:
        if watched.restart_at is not None:
            if time.monotonic() >= watched.restart_at:
                self._restart(watched)
        elif not watched.server.is_running():
            self._note_crash(watched)

    def _note_crash(self, watched: _Watched) -> None:
        now = time.monotonic()
        was_steady = now - watched.started_at >= self._steady_seconds
        watched.crashes = 1 if was_steady else watched.crashes + 1
        message = _describe_end(watched.server)
        if watched.crashes > self._most_crashes:
            raise Unavailable(f"{message} It crashed {watched.crashes} times in a row. Recollect stops.")
        delay = self._first_delay_seconds * 2 ** (watched.crashes - 1)
        watched.restart_at = now + delay
        self._echo(f"{message} It will be restarted in {delay:g} s.")

    def _restart(self, watched: _Watched) -> None:
        watched.restart_at = None
        watched.started_at = time.monotonic()
        with suppress(Unavailable):  # then it is not running, which the next check counts as a crash
            watched.server.start()
            self._echo(f"{watched.server.name} was restarted (process {watched.server.pid}).")


def _describe_end(server: Server) -> str:
    code = server.exit_code
    if code is None:
        how = "did not start"
    elif code < 0:
        how = f"was killed by signal {-code}"
    else:
        how = f"stopped with exit code {code}"
    return f"{server.name} {how}; last line of its log: {last_words(server.log) or '(none)'} (log: {server.log})."
