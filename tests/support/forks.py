"""Processes that are forked from one that has imported the code.

To import a gateway, a worker or a command takes longer than most of the work that tests give them. The process that is
forked has only imported: it has no thread, event loop or connection.
"""

import multiprocessing
import os
import runpy
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TextIO

from recollect_cli.main import main

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "recollect_workers.main",
        "tests.support.gateway",
        "tests.support.every_command",
        "tests.support.loaded_words",
    ]
)


def fork_logging(module: str, variables: Mapping[str, str], log: Path) -> BaseProcess:
    """Start `python -m` that module, with only those variables, and with its errors and its log appended to `log`."""
    process = _FORKS.Process(target=_become_logging, args=(module, dict(variables), log), daemon=True)
    process.start()
    return process


class ForkedProcess:
    """A process that was forked, with those of `Popen`'s methods that tests of fleets use."""

    def __init__(self, process: BaseProcess) -> None:
        self._process = process

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        """Wait for its end, and return the exit code."""
        self._process.join(timeout)
        assert self._process.exitcode is not None, "the process does not end"
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Send the signal, if it still runs."""
        if self._process.is_alive():
            assert self._process.pid is not None
            with suppress(ProcessLookupError):  # It ended just now, and nobody has told us yet.
                os.kill(self._process.pid, number)

    def end(self, seconds: float) -> None:
        """Ask it to end; after so long kill it."""
        self.send_signal(signal.SIGINT)
        self._process.join(seconds)
        self._process.kill()
        self._process.join()


def fork_command(
    words: tuple[str, ...], variables: Mapping[str, str], folder: Path, streams: tuple[int, int, int]
) -> BaseProcess:
    """Start `recollect` with these words, in that folder, with only those variables.

    `streams` are open files for its standard input, output and errors, which the caller closes.
    """
    lent = [
        Connection(os.dup(stream), writable=number > 0, readable=number == 0) for number, stream in enumerate(streams)
    ]
    process = _FORKS.Process(target=_become_command, args=(words, dict(variables), folder, lent), daemon=True)
    process.start()
    for connection in lent:
        connection.close()
    return process


def _become_logging(module: str, variables: dict[str, str], log: Path) -> None:
    _take_environment(variables)
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), sys.stderr.fileno())
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _become_command(words: tuple[str, ...], variables: dict[str, str], folder: Path, streams: list[Connection]) -> None:
    _take_environment(variables)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # What is started in the background would ignore Ctrl-C.
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdin, sys.stdout, sys.stderr = _text_streams()
    sys.argv = ["recollect", *words]
    main()


def _take_environment(variables: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


def _text_streams() -> tuple[TextIO, TextIO, TextIO]:
    """Standard input, output and errors, as Python makes them at its start."""
    given = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
    shown = open(1, "w", encoding="utf-8", buffering=1 if os.isatty(1) else -1, closefd=False)  # noqa: SIM115
    told = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    return given, shown, told
