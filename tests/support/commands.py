"""`recollect` commands as processes, as a user types them."""

import asyncio
import os
import signal
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple, Self

from tests.support.forks import fork_command

SECONDS = 60
"""How long a command may take."""

PROXIES = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"), "http://127.0.0.1:9")
"""A proxy that does not exist: it must not be used for a gateway on this machine."""


class CommandOutput(NamedTuple):
    """The exit code and output of a command."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        """The output, not the errors."""
        return self.out.decode()


class Command:
    """A running command, with our ends of its pipes. `stdout` and `stderr` may be other files, such as a terminal."""

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        *words: str,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> None:
        (given, to), (out, shown), (err, told) = os.pipe(), os.pipe(), os.pipe()
        streams = given, shown if stdout is None else stdout, told if stderr is None else stderr
        self._process = fork_command(words, variables, folder, streams)
        for end in (given, shown, told):
            os.close(end)
        self.stdin: IO[bytes] = open(to, "wb")  # noqa: SIM115 - closed by __exit__ or communicate
        self.stdout, self.stderr = open(out, "rb"), open(err, "rb")  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it, if it still runs."""
        try:
            self.send_signal(signal.SIGKILL)
            self.wait()
        finally:
            self._close()

    def communicate(self, given: bytes = b"", seconds: float = SECONDS) -> CommandOutput:
        """Give it the input, read all of its output, and wait for its end."""
        with self, ThreadPoolExecutor(2) as readers:
            out, err = readers.submit(self.stdout.read), readers.submit(self.stderr.read)
            try:
                self._give(given)
                code = self.wait(seconds)
            finally:  # The readers wait for its end, too.
                self.send_signal(signal.SIGKILL)
            output = CommandOutput(code, out.result(), err.result().decode())
        assert "Traceback" not in output.err, output.err
        return output

    def is_running(self) -> bool:
        return self._process.is_alive()

    def wait(self, seconds: float = SECONDS) -> int:
        """Wait for its end and return the exit code, or the negative number of the signal that ended it."""
        self._process.join(seconds)
        assert self._process.exitcode is not None, "the command does not end"
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Send the signal, if the command still runs."""
        if self.is_running():
            assert self._process.pid is not None
            with suppress(ProcessLookupError):  # It ended just now, and nobody has told us yet.
                os.kill(self._process.pid, number)

    def _give(self, given: bytes) -> None:
        with suppress(BrokenPipeError):  # It has ended, or reads no input.
            self.stdin.write(given)
        with suppress(BrokenPipeError):
            self.stdin.close()

    def _close(self) -> None:
        with suppress(BrokenPipeError):
            self.stdin.close()
        self.stdout.close()
        self.stderr.close()


@dataclass(frozen=True)
class Shell:
    """A shell for commands, with these variables and none of Recollect's or pytest's from the machine."""

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def start(self, *words: str, stdout: int | None = None, stderr: int | None = None) -> Command:
        """Start the command; its output and errors go to pipes, or to these files."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("RECOLLECT_", "PYTEST_"))}
        own = {**PROXIES, "RECOLLECT_DATA_DIR": str(self.folder / "data"), **self.variables}
        return Command(self.folder, clean | own, *words, stdout=stdout, stderr=stderr)

    async def run(self, *words: str, stdin: bytes = b"") -> CommandOutput:
        """Run the command to its end, while the gateway's thread and this loop go on."""
        return await asyncio.to_thread(self.start(*words).communicate, stdin)

    def with_variables(self, **variables: str) -> "Shell":
        return Shell(self.folder, {**self.variables, **variables})
