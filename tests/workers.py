"""Workers as processes, for tests that stop and kill them, and work for workers."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from recollect.caller import Caller
from recollect.entities import service as entities
from recollect.entities.model import NewEntity
from recollect.graphs import service as graphs
from recollect.platform.db import Database
from recollect.settings import Settings
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding

ROOT = Path(__file__).parents[1]


class WorkerProcess:
    """`python -m recollect_workers`, or another module that is a worker; its log is read as it grows."""

    def __init__(self, settings: Settings, log: Path, module: str) -> None:
        self._log = log
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module], env=os.environ | environment(settings), stderr=stderr, cwd=ROOT
            )

    def lines(self, event: str) -> list[dict[str, Any]]:
        """The log lines of that event."""
        lines = [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == event]

    def wait_for(self, event: str, *, times: int = 1, seconds: float = 15) -> None:
        """Return when the event has been logged so many times."""
        deadline = time.monotonic() + seconds
        while len(self.lines(event)) < times:
            assert self.is_running(), f"the worker ended: {self._log.read_text()}"
            assert time.monotonic() < deadline, f"not logged {times}x: {event!r} in {self._log.read_text()}"
            time.sleep(0.05)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send the signal, and do not wait."""
        self._process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal; the exit code."""
        self._process.send_signal(number)
        return self._process.wait(15)


def environment(settings: Settings) -> dict[str, str]:
    """The variables that make another process read the same settings."""
    values = settings.model_dump(exclude_defaults=True, mode="json") | {"log_format": "json"}
    return {f"RECOLLECT_{name.upper()}": str(value) for name, value in values.items()}


@contextmanager
def working(settings: Settings, folder: Path, module: str = "recollect_workers") -> Iterator[WorkerProcess]:
    """A worker process, which is killed at the end unless the test has ended it."""
    worker = WorkerProcess(settings, folder / f"worker-{time.monotonic_ns()}.log", module)
    try:
        yield worker
    finally:
        if worker.is_running():
            worker.stop(signal.SIGKILL)


async def begun(worker: WorkerProcess) -> None:
    """Return when it has started."""
    await asyncio.to_thread(worker.wait_for, "worker started", seconds=60)


async def remember(db: Database, caller: Caller, *names: str) -> None:
    """Make entities with two observations each: two passages a name."""
    async with db.transaction(caller) as tx, graphs.write_graph(tx, None, "create_entities") as revision:
        likings = ("likes coffee", "likes tea")
        await entities.create_entities(tx, revision, [NewEntity(name, "person", likings) for name in names])


async def embed_batch(context: WorkerContext, tenant_id: UUID) -> None:
    """Claim, embed and store one batch, as a worker's run does again and again."""
    run = embedding._Run(context, tenant_id)
    await run._batch()
    await run._stored()


async def waiting(owner: asyncpg.Connection, caller: Caller) -> int:
    """Passages of the caller's tenant that have no vector."""
    query = "SELECT count(*) FROM passages WHERE tenant_id = $1 AND embedding IS NULL"
    return int(await owner.fetchval(query, caller.tenant_id))


async def embedded_within(owner: asyncpg.Connection, caller: Caller, seconds: float) -> bool:
    """Whether every passage of the tenant gets its vector in that time."""
    deadline = time.monotonic() + seconds
    while await waiting(owner, caller):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True
