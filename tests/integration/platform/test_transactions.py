"""Transactions whose caller leaves at a bad moment."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from recollect.caller import Caller
from recollect.platform import db as platform_db
from recollect.platform.db import Database
from recollect.platform.sql import Query
from recollect.settings import Settings
from tests.support.gateway import eventually

LOCK = 471_108
"""An advisory lock of this test's own."""


@pytest.fixture
async def one_connection(settings: Settings) -> AsyncIterator[Database]:
    """A pool of one: whatever a transaction leaves behind the next one meets."""
    narrow = settings.model_copy(update={"database_pool_size": 1})
    async with Database.connect(settings.database_url, settings=narrow) as db:
        yield db


async def test_one_that_is_cancelled_while_it_begins_leaves_none_open(
    one_connection: Database, caller: Caller, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has begun, its answer is not there yet: asyncpg raises an alarm where that goes back to the pool."""
    alarms: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: alarms.append(context["message"]))
    begin = platform_db._begin
    monkeypatch.setattr(platform_db, "_begin", lambda *told: begin(*told) + f"; SELECT pg_advisory_lock({LOCK})")

    async def call() -> None:
        async with one_connection.transaction(caller):
            raise AssertionError("it has not begun")

    async def waits() -> bool:
        waiting = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted)"
        return bool(await owner.fetchval(waiting, LOCK))

    await owner.execute(f"SELECT pg_advisory_lock({LOCK})")
    calling = asyncio.create_task(call())
    await eventually(waits)
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)
    monkeypatch.undo()
    async with one_connection.transaction(caller, read_only=True) as tx:
        assert await tx.fetchval(Query.compile("SELECT 1")) == 1
    asyncio.get_running_loop().set_exception_handler(None)
    assert alarms == []
