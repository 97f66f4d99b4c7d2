"""Initial copies of a tenant's tables: they may precede the log, and a failed copy continues or leaves nothing."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from uuid import UUID

import pytest

from recollect.accounts.tenants.model import Tenant
from recollect.errors import Conflict, Unavailable
from recollect.moves import copying, store
from recollect.moves.model import name_of
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Query
from recollect.settings.cells import HOME
from tests.support.gateway import eventually
from tests.support.memories import Agent
from tests.support.moves import AWAY, TwoCells
from tests.support.relay import relayed

FREE_ORIGINS = """SELECT coalesce(current_setting('max_active_replication_origins', true),
current_setting('max_replication_slots'))::int - (SELECT count(*) FROM pg_replication_origin)"""
SLOT_WAITS = """SELECT EXISTS (SELECT 1 FROM pg_stat_activity
WHERE query LIKE '%pg_create_logical_replication_slot%' AND wait_event_type = 'Lock')"""
COPY_WAITS = """SELECT EXISTS (SELECT 1 FROM pg_stat_activity
WHERE backend_type LIKE 'logical replication%worker' AND wait_event_type = 'Lock')"""
COPY_LINGERS = """SELECT EXISTS (SELECT 1 FROM pg_stat_activity
WHERE backend_type LIKE 'logical replication%worker' AND wait_event = 'PgSleep')"""
LINGERING = """CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN PERFORM pg_sleep(120); RETURN NEW; END$$;
CREATE TRIGGER linger BEFORE INSERT ON graphs FOR EACH ROW EXECUTE FUNCTION linger();
ALTER TABLE graphs ENABLE ALWAYS TRIGGER linger"""
COPY_HAS_SLOT = r"SELECT EXISTS (SELECT 1 FROM pg_replication_slots WHERE slot_name LIKE 'pg\_%\_sync\_%')"
ALL_COPIED = "SELECT bool_and(srsubstate IN ('s', 'r')) FROM pg_subscription_rel"


@asynccontextmanager
async def move_about_to_copy(cells: TwoCells, tenant: Tenant) -> AsyncIterator[asyncio.Task[None]]:
    """A move that has prepared both cells, and continues when the block ends: its slot waits for a transaction."""
    async with cells.bare(HOME) as busy, cells.bare(HOME) as another, busy.transaction():
        await busy.execute("SELECT pg_current_xact_id()")
        moving = asyncio.create_task(cells.move(tenant.slug))

        async def waits() -> bool:
            return moving.done() or await another.fetchval(SLOT_WAITS)

        await eventually(waits)
        if moving.done():
            await moving
        yield moving


@asynccontextmanager
async def exactly_enough_origins(cells: TwoCells, tenant: Tenant) -> AsyncIterator[None]:
    """The target has exactly as many free replication origins as a move needs: with one less, the move is refused."""

    async def needed() -> int:
        with pytest.raises(Conflict, match=r"away has \d+ free replication origins") as refused:
            await cells.move(tenant.slug)
        return int(re.findall(r"not (\d+)", refused.value.message)[0])

    async with cells.bare(AWAY) as connection:
        others = [f"other {number}" for number in range(await connection.fetchval(FREE_ORIGINS))]
        for other in others:
            await connection.execute("SELECT pg_replication_origin_create($1)", other)
            await connection.execute("SELECT pg_replication_origin_advance($1, '0/1')", other)
        try:
            for _ in range(await needed()):
                await needed()
                await connection.execute("SELECT pg_replication_origin_drop($1)", others.pop())
            yield
        finally:
            for other in others:
                await connection.execute("SELECT pg_replication_origin_drop($1)", other)


async def test_all_tables_can_be_copied_before_the_log_arrives(
    two_cells: TwoCells, agent: Agent, tenant: Tenant
) -> None:
    """PostgreSQL 15 keeps an origin for each table until the target has followed the log up to the time of its copy."""
    async with (
        relayed(two_cells.known[HOME], "recollect_move_") as relay,
        two_cells.bare(AWAY) as locking,
        two_cells.bare(AWAY) as connection,
        exactly_enough_origins(two_cells, tenant),
    ):
        cells = replace(two_cells, known=two_cells.known | {HOME: relay.cell})
        locked = locking.transaction()
        async with move_about_to_copy(cells, tenant) as moving:
            await locked.start()
            tables = await locking.fetchval("SELECT tables_of_tenants()")
            await locking.execute(f"LOCK TABLE {', '.join(tables)} IN SHARE MODE")

        async def found(question: str) -> bool:
            return moving.done() or await connection.fetchval(question)

        await eventually(partial(found, COPY_WAITS))
        relay.flowing.clear()
        await locked.rollback()
        await eventually(partial(found, ALL_COPIED))
        relay.flowing.set()
        await moving
    assert await two_cells.place(AWAY, tenant.slug) == "here"
    assert await two_cells.leftovers() == []


@pytest.fixture
async def retried_at_once(two_cells: TwoCells) -> AsyncIterator[None]:
    """PostgreSQL retries a failed copy without a pause of seconds."""
    async with two_cells.bare(HOME) as connection:
        await connection.execute("ALTER SYSTEM SET wal_retrieve_retry_interval = '50ms'")
        await connection.execute("SELECT pg_reload_conf()")
        yield
        await connection.execute("ALTER SYSTEM RESET wal_retrieve_retry_interval")
        await connection.execute("SELECT pg_reload_conf()")


@pytest.fixture
async def failed(two_cells: TwoCells, agent: Agent, tenant: Tenant, retried_at_once: None) -> None:
    """A move that failed because a row was in the way in one of the tables."""
    async with (
        move_about_to_copy(two_cells, tenant) as moving,
        two_cells.bare(HOME) as home,
        two_cells.bare(AWAY) as away,
    ):
        row = await home.fetchval("SELECT to_jsonb(g) FROM graphs g WHERE tenant_id = $1", tenant.id)
        await away.execute("INSERT INTO graphs SELECT * FROM jsonb_populate_record(NULL::graphs, $1)", row)
    with pytest.raises(Unavailable, match="away fails to store rows"):
        await moving


async def test_a_target_that_cannot_reach_the_source_fails_and_can_be_repaired(
    two_cells: TwoCells, agent: Agent, tenant: Tenant, retried_at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL counts no error of a process that fails before it follows."""
    address, subscribe = "", store.subscribe

    async def subscribe_and_lose(target: Operator, tenant_id: UUID, source: str) -> None:
        nonlocal address
        async with target.transaction():  # Nothing is followed before it commits.
            await subscribe(target, tenant_id, address := source)
            nowhere = "host=127.0.0.1 port=1 dbname=recollect"
            await target.execute(Query.compile(f"ALTER SUBSCRIPTION {name_of(tenant_id)} CONNECTION '{nowhere}'"))

    with monkeypatch.context() as lost:
        lost.setattr(copying, "UNHEARD_SECONDS", 1.0)
        lost.setattr(store, "subscribe", subscribe_and_lose)
        with pytest.raises(Unavailable, match="away has received nothing from home for 1 s"):
            await two_cells.move(tenant.slug)
    async with two_cells.bare(AWAY) as away:
        await away.execute(f"ALTER SUBSCRIPTION {name_of(tenant.id)} CONNECTION '{address}'")
    await two_cells.go_on(tenant.slug)
    assert await two_cells.place(AWAY, tenant.slug) == "here"
    assert await two_cells.leftovers() == []


async def test_a_failed_copy_continues_after_repair(two_cells: TwoCells, tenant: Tenant, failed: None) -> None:
    async with two_cells.bare(AWAY) as away:
        await away.execute("SET session_replication_role = replica")  # Rows that refer to it have been copied.
        await away.execute("DELETE FROM graphs WHERE tenant_id = $1", tenant.id)
    await two_cells.go_on(tenant.slug)
    assert await two_cells.place(AWAY, tenant.slug) == "here"
    assert await two_cells.leftovers() == []


async def test_no_slot_of_a_failed_copy_is_left_even_if_the_target_cannot_reach_the_source(
    two_cells: TwoCells, tenant: Tenant, failed: None
) -> None:
    async with two_cells.bare(AWAY) as away:
        await eventually(partial(away.fetchval, COPY_HAS_SLOT))
        nowhere = "postgresql://recollect_owner@127.0.0.1:9/recollect"
        await away.execute(f"ALTER SUBSCRIPTION {name_of(tenant.id)} CONNECTION '{nowhere}'")
    await two_cells.undo(tenant.slug)
    assert await two_cells.leftovers() == []


async def test_a_move_can_be_undone_during_a_long_copy(two_cells: TwoCells, agent: Agent, tenant: Tenant) -> None:
    async with two_cells.bare(AWAY) as away:
        await away.execute(LINGERING)
        try:
            moving = asyncio.create_task(two_cells.move(tenant.slug))
            await eventually(partial(away.fetchval, COPY_LINGERS))
            moving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await moving
            await two_cells.undo(tenant.slug)
        finally:
            await away.execute("DROP FUNCTION linger CASCADE")
    assert await two_cells.leftovers() == []
