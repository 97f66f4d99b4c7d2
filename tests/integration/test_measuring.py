"""What the benchmarks rest on that needs servers: when a filled graph may be measured, that nothing waits in vain."""

import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from rich.progress import Progress

from recollect.caller import Caller
from recollect.platform.db import Database
from recollect.settings import Settings
from recollect_local.command import CommandServer
from recollect_local.server import Server
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding
from tests.benchmarks.settling import settle
from tests.jobs import employed
from tests.workers import remember


@pytest.fixture
async def worker(settings: Settings, db: Database) -> AsyncIterator[WorkerContext]:
    async with employed(settings, db) as context:
        yield context


@pytest.fixture
def ended(tmp_path: Path) -> Server:
    """A worker that ended by itself, with its last words."""
    command = [sys.executable, "-c", "print('out of luck')"]
    server = CommandServer("worker", command, log=tmp_path / "worker.log", environment={})
    server.start()
    while server.is_running():
        time.sleep(0.01)
    return server


async def test_words_are_counted_of_all_that_is_there(
    db: Database, caller: Caller, owner: asyncpg.Connection, worker: WorkerContext, ended: Server
) -> None:
    """Whenever the worker counted them: three more of forty are too few for it to count again."""
    counted = "SELECT memories_counted FROM graph_indexes WHERE tenant_id = $1"
    for names in (range(40), range(40, 43)):
        await remember(db, caller, *(f"person {number}" for number in names))
        await embedding.embed_passages(worker, caller.tenant_id, {})
    assert await owner.fetchval(counted, caller.tenant_id) == 3 * 40
    await settle(db, caller, ended, Progress(disable=True), "settling")
    assert await owner.fetchval(counted, caller.tenant_id) == 3 * 43


async def test_what_lacks_its_neighbours_alone_is_waited_for_as_long_as_the_worker_runs(
    db: Database, caller: Caller, owner: asyncpg.Connection, worker: WorkerContext, ended: Server
) -> None:
    await remember(db, caller, "Ada")
    await embedding.embed_passages(worker, caller.tenant_id, {})
    await owner.execute("UPDATE passages SET settled = false WHERE tenant_id = $1", caller.tenant_id)
    with pytest.raises(RuntimeError, match="worker ended; its log: out of luck"):
        await settle(db, caller, ended, Progress(disable=True), "settling")
    await embedding.embed_passages(worker, caller.tenant_id, {})
    await settle(db, caller, ended, Progress(disable=True), "settling")
