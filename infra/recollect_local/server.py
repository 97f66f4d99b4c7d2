"""Servers, which the supervisor starts, watches and stops: child processes with a name and a log."""

import signal
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from recollect_local.process import stop_process


class Server(ABC):
    """A server that runs as our own child process.

    A subclass starts the process in `start` and keeps it in `_process`. `stop_signal` asks it to end;
    after `stop_seconds` it is killed.
    """

    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_seconds: ClassVar[float] = 10.0

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def start(self) -> None:
        """Start it, unless it runs. Raises Unavailable if it does not come up."""

    def stop(self) -> None:
        """Stop it, if it runs. Returns when its process is gone."""
        if self._process is not None:
            stop_process(self._process, grace_seconds=self.stop_seconds, stop_signal=self.stop_signal)
            self._process = None

    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """Process id of the last start, or None after `stop`."""
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """How it ended by itself: its exit code, or minus the number of the signal that killed it."""
        return self._process.poll() if self._process else None
