"""Parts of the benchmarks that need servers: settling a filled graph, and waits that end with the worker."""

import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import psutil
import pytest
from rich.console import Console
from rich.progress import Progress

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Query
from recollect.settings import Settings
from recollect_local.command import CommandServer
from recollect_local.postgres import LocalPostgres
from recollect_local.server import Server
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding
from tests.benchmarks import fairness
from tests.benchmarks.cost.round_trips import counted_round_trips
from tests.benchmarks.memory import MeasuredMemory
from tests.benchmarks.processes import LoginSessions, _seconds, processor_seconds
from tests.benchmarks.settling import settle
from tests.benchmarks.stack import APP_LOGIN, Stack
from tests.benchmarks.transfer import MADE, MeasuredTransfer, measure_transfer
from tests.benchmarks.wire import LEGACY, McpConnection
from tests.support.gateway import RunningGateway
from tests.support.workers import remember


@pytest.fixture
def ended(tmp_path: Path) -> Server:
    """A worker that has ended by itself, with a last line in its log."""
    command = [sys.executable, "-c", "print('out of luck')"]
    server = CommandServer("worker", command, log=tmp_path / "worker.log", environment={})
    server.start()
    while server.is_running():
        time.sleep(0.01)
    return server


async def test_settling_counts_the_words_of_all_memories(
    db: Database, caller: Caller, owner: asyncpg.Connection, context: WorkerContext, ended: Server
) -> None:
    """The worker alone would not count again: three more than forty are too few."""
    counted = "SELECT memories_counted FROM graph_indexes WHERE tenant_id = $1"
    for names in (range(20), range(20, 40), range(40, 43)):
        await remember(db, caller, *(f"person {number}" for number in names))
        await embedding.woken(context, caller.tenant_id, {})
    assert await owner.fetchval(counted, caller.tenant_id) == 3 * 40
    await settle(db, caller, ended, Progress(disable=True), "settling")
    assert await owner.fetchval(counted, caller.tenant_id) == 3 * 43


async def test_settling_waits_for_windows_as_long_as_the_worker_runs(
    db: Database, caller: Caller, owner: asyncpg.Connection, context: WorkerContext, ended: Server
) -> None:
    await remember(db, caller, "Ada")
    await embedding.woken(context, caller.tenant_id, {})
    await owner.execute("UPDATE passages SET settled = false WHERE tenant_id = $1", caller.tenant_id)
    with pytest.raises(RuntimeError, match="worker ended; its log: out of luck"):
        await settle(db, caller, ended, Progress(disable=True), "settling")
    await embedding.woken(context, caller.tenant_id, {})
    await settle(db, caller, ended, Progress(disable=True), "settling")


class Impatient(Console):
    """A console that raises an error at its first line: then the time is up."""

    def print(self, *objects: object, **options: object) -> None:
        raise TimeoutError(*objects)


async def test_imports_measured_before_a_timeout_are_reported(
    settings: Settings, ended: Server, tmp_path: Path
) -> None:
    rows: list[MeasuredTransfer] = []
    stack = Stack(settings, settings.migration_url, ended, ended, 0, ended, ended, ended)
    with pytest.raises(TimeoutError, match="50 entities: import json"):
        await measure_transfer(stack, tmp_path, [50], rows, Impatient())
    (row,) = rows
    assert (row.doing, row.entities, row.rows) == ("import json", 50, 2 * 50 - 1)
    assert row.megabytes == (tmp_path / MADE).stat().st_size / 1e6 > 0
    assert 0 < row.resident <= row.peak


async def test_the_wait_for_vectors_ends_with_the_worker(
    gateway: RunningGateway,
    settings: Settings,
    caller: Caller,
    key: str,
    db: Database,
    owner: asyncpg.Connection,
    ended: Server,
) -> None:
    await remember(db, caller, "Ada")
    stack = Stack(settings, settings.migration_url, ended, ended, 0, ended, ended, ended)
    many = MeasuredMemory(stack, caller, key, owner)
    with pytest.raises(RuntimeError, match="worker ended"):
        await fairness._begun(many, await many.waiting(), ended)
    port = urlsplit(gateway.url).port
    assert port is not None
    async with McpConnection(port, "/mcp/x/agent", LEGACY, key) as connection:
        with pytest.raises(RuntimeError, match="worker ended"):
            await fairness._until_embedded(many, connection, ended)


async def test_statements_sent_together_are_one_round_trip(settings: Settings, servers_dir: Path) -> None:
    folder = servers_dir / "counted"
    folder.mkdir()
    async with counted_round_trips(folder, settings.database_url) as trips:
        connection = await asyncpg.connect(trips.url(APP_LOGIN))
        await connection.fetchval("SELECT 1")  # It is prepared from here on.
        before = trips.count
        await connection.execute("BEGIN; SELECT 1")
        assert await connection.fetchval("SELECT 1") == 1
        assert len(await connection.fetch("SELECT repeat('x', 100000) FROM generate_series(1, 20)")) == 20
        await connection.execute("COMMIT")
        assert trips.count - before == 5, "one each, and one to prepare the statement that is new"
        await connection.close()


async def test_processor_time_of_a_login_includes_ended_sessions_and_no_other_logins(
    postgres: LocalPostgres, owner_url: str
) -> None:
    assert postgres.pid is not None
    theirs, nobodys = LoginSessions(postgres.pid, "recollect_owner"), LoginSessions(postgres.pid, "recollect_own")
    async with Operator.connect(owner_url, Settings(database_url=owner_url)) as operator:
        before = theirs.seconds(), processor_seconds(postgres.pid)
        await operator.execute(Query("SELECT count(*) FROM generate_series(1, 3_000_000)"))
        after = theirs.seconds(), processor_seconds(postgres.pid)
        assert all(now > then for now, then in zip(after, before, strict=True))
    assert theirs.seconds() >= after[0]
    assert nobodys.seconds() == 0


def test_a_process_that_has_ended_counts_zero_seconds() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    listed = psutil.Process(child.pid)
    child.wait()
    assert _seconds(listed) == 0
