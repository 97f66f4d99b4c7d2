"""Gateway and worker: Recollect's own processes, started by their commands."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from recollect_local.process import start_process
from recollect_local.server import Server


class CommandServer(Server):
    """A server that is started by a command and configured by its environment. It keeps no state."""

    stop_seconds = 15.0  # the gateway itself gives open requests 10

    def __init__(self, name: str, command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> None:
        super().__init__(name, log)
        self._command = list(command)
        self._environment = dict(environment)

    def start(self) -> None:
        """Start it, unless it runs, without waiting until it is up."""
        if not self.is_running():
            self._process = start_process(self._command, log=self.log, environment=self._environment)
