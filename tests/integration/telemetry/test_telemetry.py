"""What the SQL and Redis instrumentations export."""

import os
import subprocess
import sys

import pytest

from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from tests.support.otlp import collecting
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.support.workers import environment

SECRET = "text-of-a-memory"

FAILING_STATEMENTS = f"""
import asyncio, asyncpg
from contextlib import suppress
from recollect.valkey.client import connect_redis
from recollect.telemetry.tracing import configure_tracing
from recollect.settings import Settings

async def main(settings):
    connection = await asyncpg.connect(settings.database_url)
    await connection.execute("CREATE TEMP TABLE seen (name text PRIMARY KEY)")
    for _ in range(2):
        with suppress(asyncpg.UniqueViolationError):
            await connection.execute("INSERT INTO seen VALUES ($1)", "{SECRET}")
    with suppress(asyncpg.DataError):
        await connection.fetch("SELECT $1::integer", "{SECRET}")
    async with connect_redis(settings) as redis:
        await redis.set("{SECRET}", "{SECRET}")
        async with redis.pipeline() as pipe:
            pipe.get("{SECRET}").incr("{SECRET}")
            with suppress(Exception):
                await pipe.execute()
        await redis.delete("{SECRET}")
    await connection.close()

settings = Settings()
shutdown = configure_tracing(settings, "recollect-test")
asyncio.run(main(settings))
shutdown()
"""


@pytest.mark.proves("security: traces")
def test_exported_statements_contain_no_values(settings: Settings, postgres: LocalPostgres) -> None:
    """By a login that may create a table, which the application's may not."""
    with collecting() as collector:
        traced = settings.model_copy(update={"otlp_endpoint": collector.endpoint, "database_url": postgres.url()})
        command = [sys.executable, "-W", "error", "-c", FAILING_STATEMENTS]
        subprocess.run(command, env=os.environ | environment(traced), check=True, timeout=MAX_WAIT_SECONDS)
        insert, select, set_ = collector.named("INSERT"), collector.named("SELECT"), collector.named("SET")
    statements = {item.value.string_value for span in (insert, set_) for item in span.attributes}
    assert {"INSERT INTO seen VALUES ($1)", "SET ? ?"} <= statements
    failures = [event for span in collector.spans for event in span.events]
    assert {item.key for event in failures for item in event.attributes} == {"exception.type", "exception.escaped"}
    assert len(failures) == 3
    assert select.status.code == select.status.STATUS_CODE_ERROR
    assert SECRET.encode() not in collector.raw
