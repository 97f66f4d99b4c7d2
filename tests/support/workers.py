"""Workers as processes, which tests stop and kill, and work for them."""

import asyncio
import json
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from recollect.caller import Caller
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Query
from recollect.postgres.tenant_database import TenantDatabase
from recollect.settings import Settings
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding
from tests.support.forks import fork_logging
from tests.support.timeouts import MAX_WAIT_SECONDS


class WorkerProcess:
    """`python -m recollect_workers`, or another worker module, and its growing log."""

    def __init__(self, settings: Settings, log: Path, module: str) -> None:
        self._log = log
        log.touch()
        self._process = fork_logging(module, os.environ | environment(settings), log)

    def lines(self, event: str) -> list[dict[str, Any]]:
        """The log lines of that event."""
        lines = [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == event]

    def wait_for(self, event: str, *, times: int = 1, seconds: float = MAX_WAIT_SECONDS) -> None:
        """Wait until the event has been logged so many times."""
        deadline = time.monotonic() + seconds
        while len(self.lines(event)) < times:
            assert self.is_running(), f"the worker ended: {self._log.read_text()}"
            assert time.monotonic() < deadline, f"not logged {times}x: {event!r} in {self._log.read_text()}"
            time.sleep(0.05)

    def is_running(self) -> bool:
        return self._process.is_alive()

    def send(self, number: signal.Signals) -> None:
        """Send the signal without waiting."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal, wait for the end, and return the exit code."""
        self.send(number)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end, and return the exit code."""
        self._process.join(MAX_WAIT_SECONDS)
        assert self._process.exitcode is not None, f"the worker does not end: {self._log.read_text()}"
        return self._process.exitcode


def environment(settings: Settings) -> dict[str, str]:
    """The environment variables for another process with the same settings."""
    values = settings.model_dump(exclude_defaults=True, mode="json") | {"log_format": "json"}
    return {
        f"RECOLLECT_{name.upper()}": json.dumps(value) if isinstance(value, list | dict) else str(value)
        for name, value in values.items()
    }


@contextmanager
def working(settings: Settings, folder: Path, module: str = "recollect_workers") -> Iterator[WorkerProcess]:
    """A worker process, which is killed at the end unless the test has stopped it."""
    worker = WorkerProcess(settings, folder / f"worker-{time.monotonic_ns()}.log", module)
    try:
        yield worker
    finally:
        if worker.is_running():
            worker.stop(signal.SIGKILL)


async def killed(
    settings: Settings, folder: Path, chance: random.Random, *, seconds: float, module: str = "recollect_workers"
) -> None:
    """Start a worker, kill it at a random moment of its first `seconds`, and end its leases."""
    with working(settings, folder, module) as worker:
        await begun(worker)
        await asyncio.sleep(chance.uniform(0, seconds))
        worker.stop(signal.SIGKILL)
    await end_leases(settings)


async def end_leases(settings: Settings) -> None:
    """End the leases of killed workers, so that tests need not wait for their expiry."""
    async with Operator.connect(settings.migration_url, settings) as operator:
        for table in ("jobs", "passages"):
            await operator.execute(
                Query.compile(f"UPDATE {table} SET claimed_until = now() WHERE claimed_until > now()")
            )


async def begun(worker: WorkerProcess) -> None:
    """Wait until the worker has started."""
    await asyncio.to_thread(worker.wait_for, "worker started")


async def remember(db: TenantDatabase, caller: Caller, *names: str) -> None:
    """Create entities with two observations each: two passages per name."""
    async with db.transaction(caller) as tx, graphs.write_graph(tx, None, "create_entities") as revision:
        likings = ("likes coffee", "likes tea")
        await entities.create_entities(tx, revision, [NewEntity(name, "person", likings) for name in names])


async def embed_batch(context: WorkerContext, tenant_id: UUID) -> None:
    """Claim, embed and store one batch, as a worker does repeatedly."""
    run = embedding._EmbeddingSlice(context, tenant_id)
    await run._do_batch()
    await run._wait_until_stored()


async def waiting(owner: asyncpg.Connection, caller: Caller) -> int:
    """The number of passages of the caller's tenant without a vector."""
    query = "SELECT count(*) FROM passages WHERE tenant_id = $1 AND embedding_model IS NULL"
    return int(await owner.fetchval(query, caller.tenant_id))


async def embedded_within(owner: asyncpg.Connection, caller: Caller, seconds: float = MAX_WAIT_SECONDS) -> bool:
    """Whether every passage of the tenant gets its vector within that time."""
    deadline = time.monotonic() + seconds
    while await waiting(owner, caller):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True
