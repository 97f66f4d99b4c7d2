"""Connections that a pooler shares between transactions: settings apply within a transaction, and none remain."""

from collections.abc import AsyncIterator

import pytest

from recollect.caller import Caller
from recollect.postgres.connections import APP_ROLE, session_settings
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres

WHO = Query.compile("SELECT current_user::text")
SETTING = Query.compile("SELECT current_setting(:name)")
ROWS = Query.compile("SELECT number FROM generate_series(1, 120) AS number")
STATEMENTS = "SELECT count(*) FROM pg_prepared_statements"


@pytest.fixture
async def shared(postgres: LocalPostgres, settings: Settings) -> AsyncIterator[Database]:
    """A pool with one connection, whose login may do everything, so that only settings of each transaction restrict
    it.
    """
    pooled = settings.model_copy(update={"database_pooled": True, "database_pool_size": 1})
    async with Database.connect(postgres.url(), settings=pooled) as db:
        yield db


async def test_a_transaction_has_the_role_and_settings_of_a_session(
    shared: Database, caller: Caller, settings: Settings
) -> None:
    expected = session_settings(APP_ROLE, settings)
    async with shared.transaction(caller) as ours:
        told = {name: await ours.fetchval(SETTING, name=name) for name in expected if name != "application_name"}
    direct = settings.model_copy(update={"database_pool_size": 1})
    async with Database.connect(settings.database_url, settings=direct) as db, db.transaction(caller) as session:
        alike = {name: await session.fetchval(SETTING, name=name) for name in told}
    assert told == alike
    assert told["role"] == APP_ROLE


async def test_system_and_personal_sessions_have_the_role_too(shared: Database, caller: Caller) -> None:
    async with shared.system() as session:
        assert await session.fetchval(WHO) == APP_ROLE
    async with shared.personal(caller.tenant_id) as session:
        assert await session.fetchval(WHO) == APP_ROLE


async def test_nothing_remains_in_the_session(shared: Database, caller: Caller) -> None:
    async with shared.transaction(caller, read_only=True) as tx:
        assert [row["number"] async for row in tx.stream(ROWS)] == list(range(1, 121))
    async with shared._pool.acquire() as connection:
        assert await connection.fetchval("SELECT current_user::text") == "postgres"
        assert await connection.fetchval("SHOW statement_timeout") == "0"
        assert not await connection.fetchval("SELECT current_setting('recollect.tenant_id', true)")
        assert await connection.fetchval(STATEMENTS) == 0


async def test_an_unfinished_stream_is_closed_by_the_next(shared: Database, caller: Caller) -> None:
    for _ in range(2):
        async with shared.transaction(caller, read_only=True) as tx:
            async for row in tx.stream(ROWS):
                assert row["number"] == 1
                break
    async with shared.transaction(caller, read_only=True) as tx:
        assert len([row async for row in tx.stream(ROWS)]) == 120
