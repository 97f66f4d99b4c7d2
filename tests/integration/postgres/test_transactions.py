"""Transactions that are cancelled, suspended or fail at a bad moment, and how their statements are planned."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
from structlog.testing import capture_logs

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action
from recollect.accounts.identity.model import worker_caller
from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller
from recollect.errors import ErrorCode, TenantMoving, TenantReadOnly, TenantSuspended, Unavailable
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Query, QueryPlan
from recollect.postgres.transactions import begin_statements
from recollect.settings import Settings
from tests.support.gateway import eventually

LOCK = 471_108
"""An advisory lock for this test alone."""


@pytest.fixture
async def one_connection(settings: Settings) -> AsyncIterator[Database]:
    """A pool with one connection, so that the next transaction meets whatever one leaves behind."""
    narrow = settings.model_copy(update={"database_pool_size": 1})
    async with Database.connect(settings.database_url, settings=narrow) as db:
        yield db


async def test_a_transaction_cancelled_while_it_begins_is_closed(
    one_connection: Database, caller: Caller, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has begun it and has not answered yet. asyncpg raises an alarm if that returns to the pool."""
    alarms: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: alarms.append(context["message"]))
    waiting = f"; SELECT pg_advisory_lock({LOCK})"

    def begin_and_wait(*arguments: Any, **named: Any) -> str:
        return begin_statements(*arguments, **named) + waiting

    monkeypatch.setattr("recollect.postgres.database.begin_statements", begin_and_wait)

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


class TestPlans:
    """How repeated statements are planned."""

    ASKED = Query.compile("SELECT id FROM nodes WHERE tenant_id = :tenant_id AND id = :id")
    PLANS = Query.compile(
        "SELECT generic_plans, custom_plans FROM pg_prepared_statements "
        "WHERE starts_with(statement, 'SELECT id FROM nodes')"
    )

    async def test_statements_are_planned_with_their_values(self, one_connection: Database, caller: Caller) -> None:
        for _ in range(3):
            async with one_connection.transaction(caller, read_only=True) as tx:
                await tx.fetch(self.ASKED, id=caller.tenant_id)
        assert await self._planned(one_connection, caller) == (0, 3)

    async def test_statements_of_a_transaction_that_looks_up_are_planned_once(
        self, one_connection: Database, caller: Caller
    ) -> None:
        for _ in range(3):
            async with one_connection.transaction(caller, read_only=True, plan=QueryPlan.ONCE) as tx:
                await tx.fetch(self.ASKED, id=caller.tenant_id)
        assert await self._planned(one_connection, caller) == (3, 0)

    async def test_a_query_that_looks_up_is_planned_once(self, one_connection: Database, caller: Caller) -> None:
        async with one_connection.transaction(caller, read_only=True) as tx:
            await tx.fetch(self.ASKED, id=caller.tenant_id)
            await tx.fetch(replace(self.ASKED, plan=QueryPlan.ONCE), id=caller.tenant_id)
            await tx.fetch(self.ASKED, id=caller.tenant_id)
        assert await self._planned(one_connection, caller) == (1, 2)

    async def test_statements_after_one_that_looks_up_from_there_are_planned_once(
        self, one_connection: Database, caller: Caller
    ) -> None:
        async with one_connection.transaction(caller, read_only=True) as tx:
            await tx.fetch(self.ASKED, id=caller.tenant_id)
            await tx.fetch(replace(self.ASKED, plan=QueryPlan.ONCE_FROM_HERE), id=caller.tenant_id)
            await tx.fetch(self.ASKED, id=caller.tenant_id)
        assert await self._planned(one_connection, caller) == (2, 1)

    async def test_a_query_that_searches_is_planned_with_its_values(
        self, one_connection: Database, caller: Caller
    ) -> None:
        async with one_connection.transaction(caller, read_only=True, plan=QueryPlan.ONCE) as tx:
            await tx.fetch(self.ASKED, id=caller.tenant_id)
            await tx.fetch(replace(self.ASKED, plan=QueryPlan.WITH_VALUES), id=caller.tenant_id)
            async for _ in tx.stream(self.ASKED, id=caller.tenant_id):
                pass
        assert await self._planned(one_connection, caller) == (2, 1)

    async def test_plans_are_as_before_after_a_dry_run(self, one_connection: Database, caller: Caller) -> None:
        async with one_connection.transaction(caller) as tx:
            async with tx.dry_run():
                await tx.fetch(replace(self.ASKED, plan=QueryPlan.ONCE_FROM_HERE), id=caller.tenant_id)
            await tx.fetch(self.ASKED, id=caller.tenant_id)
        assert await self._planned(one_connection, caller) == (1, 1)

    async def _planned(self, db: Database, caller: Caller) -> tuple[int, int]:
        """How often the connection's statement ran by a generic plan, and by a custom one."""
        async with db.transaction(caller, read_only=True) as tx:
            found = await tx.fetchrow(self.PLANS)
            assert found is not None
            return found["generic_plans"], found["custom_plans"]


def as_agent(caller: Caller) -> Caller:
    """A caller whom a suspension stops."""
    return replace(caller, subject="key:0", of_service=False)


class TestSuspensions:
    @pytest.mark.proves("security: read-only-tenants")
    @pytest.mark.parametrize(("read_only", "error"), [(True, TenantReadOnly), (False, TenantSuspended)])
    async def test_an_open_transaction_cannot_commit_after_a_suspension(
        self, db: Database, caller: Caller, operator: Operator, owner: asyncpg.Connection, read_only: bool, error: Any
    ) -> None:
        async def write() -> None:
            async with db.transaction(as_agent(caller)) as tx:
                await audit.record(tx, Action.TENANT_CHANGED)
                await tenants.suspend_tenant(operator, caller.tenant, read_only=read_only)

        with pytest.raises(error):
            await write()
        count = "SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND actor = 'key:0'"
        assert await owner.fetchval(count, caller.tenant_id) == 0

    async def test_a_suspension_waits_for_a_transaction_that_is_about_to_commit(
        self, db: Database, caller: Caller, operator: Operator, owner: asyncpg.Connection
    ) -> None:
        """A lock is held between the last check and COMMIT, so that none commits after the suspension has."""
        async with owner.transaction():
            await owner.execute("SELECT lock_writes($1, false)", caller.tenant_id)
            suspending = asyncio.create_task(tenants.suspend_tenant(operator, caller.tenant, read_only=True))

            async def waits() -> bool:
                waiting = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
                return bool(await owner.fetchval(waiting))

            await eventually(waits)
            assert not suspending.done()
        assert (await suspending).status == "read_only"

    async def test_in_a_read_only_tenant_callers_read_and_service_and_operators_write(
        self, settings: Settings, caller: Caller, operator: Operator
    ) -> None:
        await tenants.suspend_tenant(operator, caller.tenant, read_only=True)
        told = settings.model_copy(update={"operator_contact": "support@example.com"})
        async with Database.connect(settings.database_url, settings=told) as db:
            for who in (caller, worker_caller(caller.tenant_id)):
                async with db.transaction(who) as tx:
                    await audit.record(tx, Action.TENANT_CHANGED)
            agent = as_agent(caller)
            with pytest.raises(TenantReadOnly, match=r"Ask support@example\.com\.$"):
                async with db.transaction(agent):
                    raise AssertionError("it has begun")
            async with db.transaction(agent, read_only=True) as tx:
                assert (await tenants.own_tenant(tx)).status == "read_only"
            async with db.transaction(agent, also_suspended=True) as tx:
                await audit.record(tx, Action.GRAPH_EXPORTED)


@pytest.mark.parametrize("place", ["leaving", "arriving", "departed"])
async def test_an_open_transaction_cannot_commit_once_its_tenant_moves(
    db: Database, caller: Caller, owner: asyncpg.Connection, place: str
) -> None:
    move = "UPDATE tenants SET place = $2 WHERE id = $1"

    async def write(meanwhile: str) -> None:
        async with db.transaction(as_agent(caller)) as tx:
            await audit.record(tx, Action.TENANT_CHANGED)
            await owner.execute(move, caller.tenant_id, meanwhile)

    await write("here")
    with pytest.raises(TenantMoving):
        await write(place)
    with pytest.raises(TenantMoving):
        await write("here")  # It does not begin.
    await owner.execute(move, caller.tenant_id, "here")
    await write("here")
    count = "SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND actor = 'key:0'"
    assert await owner.fetchval(count, caller.tenant_id) == 2


NOWHERE = Query.compile(
    "INSERT INTO changes (tenant_id, graph_id, revision, at, actor, operation, ids, counts) "
    "VALUES (:tenant_id, gen_random_uuid(), 1, now(), 'nobody', 'nothing', '{}', '{}')"
)
"""A change of a graph that does not exist."""


async def test_a_broken_reference_is_found_before_the_commit(one_connection: Database, caller: Caller) -> None:
    transaction = one_connection.transaction(caller)
    tx = await transaction.__aenter__()
    await tx.execute(NOWHERE)
    assert await tx.fetchval(Query.compile("SELECT 1")) == 1, "no statement is held up for it"
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await transaction.__aexit__(None, None, None)
    async with one_connection.transaction(caller) as tx:
        count = Query.compile("SELECT count(*) FROM changes WHERE tenant_id = :tenant_id")
        assert await tx.fetchval(count) == 0


async def test_foreign_keys_can_be_checked_at_once(one_connection: Database, caller: Caller) -> None:
    async with one_connection.transaction(caller, commit=False) as tx:
        await tx.check_foreign_keys_at_once()
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await tx.execute(NOWHERE)


@pytest.mark.parametrize(
    ("sqlstate", "told"),
    [
        ("53100", "The disk of the database is full: nothing was written. Try again later."),
        (
            "53200",
            "The database is out of memory, or of space for locks (max_locks_per_transaction). Try again later.",
        ),
    ],
)
async def test_a_server_without_disk_or_memory_is_reported_as_unavailable(
    db: Database, caller: Caller, sqlstate: str, told: str
) -> None:
    """The server's message is logged once, for operators."""
    failing = f"DO $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '{sqlstate}'; END $$"
    with capture_logs() as logs, pytest.raises(Unavailable) as raised:
        async with db.transaction(caller) as tx:
            await tx.execute(Query.compile(failing))
    assert (raised.value.code, raised.value.message) == (ErrorCode.DATABASE_UNAVAILABLE, told)
    assert [(line["event"], line["reason"]) for line in logs] == [
        ("PostgreSQL is out of disk space or memory", "No space left on device")
    ]
