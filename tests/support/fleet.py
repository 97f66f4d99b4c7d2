"""Gateways and workers as processes, of this tree or of an older one, which tests start and stop."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from recollect.settings import Settings
from recollect.settings.addresses.public_url import local_url
from recollect_local.process import start_process, stop_process
from tests.support.forks import ForkedProcess, fork_logging
from tests.support.ports import reserved_port
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.support.workers import environment

PARTS = ("shared", "services", "workers", "infra")
"""The folders of packages in a source tree."""

KILL_SECONDS = 60.0


class Member:
    """One process of a fleet, and its log."""

    def __init__(self, process: subprocess.Popen[bytes] | ForkedProcess, log: Path, url: str = "") -> None:
        self.process, self.log, self.url = process, log, url

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal, wait for the end, and return the exit code."""
        self.process.send_signal(number)
        return await asyncio.to_thread(self.process.wait, MAX_WAIT_SECONDS)

    def faults(self) -> list[str]:
        """The log lines about its internal errors."""
        return [line for line in self.log.read_text().splitlines() if '"level": "error"' in line or "Traceback" in line]


class Fleet:
    """Starts processes with the same settings. `tree` is the folder of their sources; None is this tree."""

    def __init__(self, settings: Settings, folder: Path, stack: ExitStack) -> None:
        self.settings, self.members = settings, list[Member]()
        self._folder, self._stack = folder, stack

    def gateway(self, tree: Path | None = None, **changed: object) -> Member:
        """Start `python -m recollect_gateway` on a free port; it may not be ready yet."""
        port = self._stack.enter_context(reserved_port())
        settings = self.settings.model_copy(update={"port": port, **changed})
        return self._start("recollect_gateway", settings, tree, local_url("127.0.0.1", port))

    def worker(self, tree: Path | None = None, **changed: object) -> Member:
        """Start `python -m recollect_workers`."""
        return self._start("recollect_workers", self.settings.model_copy(update=changed), tree)

    def _start(self, module: str, settings: Settings, tree: Path | None, url: str = "") -> Member:
        log = self._folder / f"{module}-{len(self.members)}.log"
        variables = {**os.environ, **environment(settings), **sources(tree)}
        process = self._forked(module, variables, log) if tree is None else self._run(module, variables, log)
        member = Member(process, log, url)
        self.members.append(member)
        return member

    def _run(self, module: str, variables: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
        process = start_process([sys.executable, "-m", module], log=log, environment=variables)
        self._stack.callback(stop_process, process, grace_seconds=KILL_SECONDS, stop_signal=signal.SIGINT)
        return process

    def _forked(self, module: str, variables: dict[str, str], log: Path) -> ForkedProcess:
        """A process of this tree, which need not import its code."""
        log.touch()
        process = ForkedProcess(fork_logging(module, variables, log))
        self._stack.callback(process.end, KILL_SECONDS)
        return process


@contextmanager
def fleet(settings: Settings, folder: Path) -> Iterator[Fleet]:
    """A fleet, whose processes are stopped at the end."""
    with ExitStack() as stack:
        yield Fleet(settings, folder, stack)


def sources(tree: Path | None) -> dict[str, str]:
    """The variable by which Python finds packages of an older tree before the installed ones."""
    return {"PYTHONPATH": os.pathsep.join(str(tree / part) for part in PARTS)} if tree else {}
