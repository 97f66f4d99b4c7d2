"""PostgreSQL as the one-machine stack starts it: with settings for the machine, and with a warm cache after a
restart.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from recollect_local.machine import GB, MB, Machine
from recollect_local.postgres import LocalPostgres
from recollect_local.tuning import postgres_settings
from tests.support.timeouts import MAX_WAIT_SECONDS

SMALL = Machine(2 * GB, shared_memory=64 * MB)
READ_BACK = "autoprewarm successfully prewarmed"


@pytest.fixture
def tuned(tmp_path: Path) -> Iterator[LocalPostgres]:
    server = LocalPostgres(tmp_path, settings={**postgres_settings(SMALL), "fsync": "off"})
    yield server
    server.stop()


async def ask(server: LocalPostgres, *statements: str) -> str:
    connection = await asyncpg.connect(server.url(), timeout=MAX_WAIT_SECONDS)
    try:
        return str([await connection.fetchval(statement) for statement in statements][-1])
    finally:
        await connection.close()


def test_a_small_machine_runs_and_reloads_its_cache(tuned: LocalPostgres) -> None:
    tuned.start()
    filling = "CREATE TABLE kept AS SELECT n, repeat('x', 500) AS text FROM generate_series(1, 20000) AS n"
    assert asyncio.run(ask(tuned, filling, "SHOW shared_buffers")) == "256MB"
    assert asyncio.run(ask(tuned, "SHOW max_parallel_workers_per_gather")) == "0"
    tuned.stop()
    assert READ_BACK not in tuned.log.read_text()

    tuned.start()
    give_up = time.monotonic() + MAX_WAIT_SECONDS
    while READ_BACK not in tuned.log.read_text() and time.monotonic() < give_up:
        time.sleep(0.05)
    plan = asyncio.run(ask(tuned, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(*) FROM kept"))
    buffers = json.loads(plan)[0]["Plan"]
    assert buffers["Shared Hit Blocks"] > 1_000
    assert buffers["Shared Read Blocks"] == 0
