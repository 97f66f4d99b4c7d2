"""Usage is recorded beside the calls, despite failures of the database, and deleted after its retention."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import NoReturn
from uuid import UUID

import asyncpg
import pytest
import structlog.testing

from recollect.accounts.identity.model import IssuedKey, operator_caller
from recollect.accounts.usage import service as usage
from recollect.accounts.usage import store
from recollect.accounts.usage.model import Counts
from recollect.accounts.usage.tally import UsageTally
from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.errors import Unavailable
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings
from recollect_workers.jobs import cleanup
from tests.conftest import NewTenant
from tests.support.erasures import erase_now
from tests.support.gateway import NewApiKey, eventually
from tests.support.jobs import employed
from tests.support.memories import Agent
from tests.support.workers import embed_batch

CALL = Counts(calls=1, bytes_received=10)
TOTAL = "SELECT coalesce(sum(calls), 0)::int FROM usage_hourly WHERE tenant_id = $1"


@pytest.fixture
async def key(issue: NewApiKey, caller: Caller) -> IssuedKey:
    return await issue(caller)


async def total(owner: asyncpg.Connection, caller: Caller) -> int:
    calls: int = await owner.fetchval(TOTAL, caller.tenant_id)
    return calls


async def test_each_flush_adds_what_is_new(databases: Databases, caller: Caller, owner: asyncpg.Connection) -> None:
    tally = UsageTally()
    for _ in range(3):
        tally.count(caller.tenant_id, "tool", "recall", CALL)
        tally.count(caller.tenant_id, "tool", "recall", Counts(calls=1, errors=1))
        await usage.flush(databases, tally)
        await usage.flush(databases, tally)
    rows = await owner.fetch(
        "SELECT sum(calls) AS c, sum(errors) AS e, sum(bytes_received) AS b FROM usage_hourly WHERE tenant_id = $1",
        caller.tenant_id,
    )
    assert [tuple(row) for row in rows] == [(6, 3, 30)]


async def test_usage_of_a_tenant_with_locked_rows_is_written_with_the_next_flush(
    settings: Settings,
    caller: Caller,
    new_tenant: NewTenant,
    owner: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other tenants' usage is written meanwhile, and nothing is counted twice. All of it is of one hour."""
    now = time.time()
    monkeypatch.setattr("recollect.accounts.usage.tally.time", SimpleNamespace(time=lambda: now))
    other, tally = operator_caller(await new_tenant()), UsageTally()
    hasty = settings.model_copy(update={"lock_timeout_seconds": 0.1})
    async with Database.connect(settings.database_url, settings=hasty) as db:
        for each in (caller, other):
            tally.count(each.tenant_id, "tool", "recall", CALL)
        await usage.flush(Databases(db), tally)
        for each in (caller, other):
            tally.count(each.tenant_id, "tool", "recall", CALL)
        async with owner.transaction():
            await owner.execute("SELECT 1 FROM usage_hourly WHERE tenant_id = $1 FOR UPDATE", caller.tenant_id)
            await usage.flush(Databases(db), tally)
        assert (await total(owner, caller), await total(owner, other)) == (1, 2)
        await usage.flush(Databases(db), tally)
    assert (await total(owner, caller), await total(owner, other)) == (2, 2)
    assert tally.tenants() == []


async def test_usage_during_an_outage_is_counted_afterwards(
    databases: Databases, settings: Settings, caller: Caller, owner: asyncpg.Connection
) -> None:
    tally = UsageTally()
    tally.count(caller.tenant_id, "tool", "recall", CALL)
    async with Database.connect("postgresql://127.0.0.1:1/nowhere", settings=settings) as away:
        await usage.flush(Databases(away), tally)
    assert await total(owner, caller) == 0
    await usage.flush(databases, tally)
    assert await total(owner, caller) == 1


async def test_an_outage_is_not_waited_for_once_for_each_tenant(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally, asked = UsageTally(), list[UUID]()
    for number in range(10):
        tally.count(UUID(int=number), "tool", "recall", CALL)

    def away(self: Database, caller: Caller) -> NoReturn:
        asked.append(caller.tenant_id)
        raise Unavailable("The database is unavailable. Try again in a moment.")

    monkeypatch.setattr(Database, "transaction", away)
    async with Database.connect(settings.database_url, settings=settings) as db:
        await usage.flush(Databases(db), tally)
        await usage.flush(Databases(db), tally)
    assert [tenant_id.int for tenant_id in asked] == [0, 1, 2, 3, 4, 5], "the next flush begins with others"
    assert len(tally.tenants()) == 10


async def test_a_commit_without_an_answer_is_not_repeated(
    databases: Databases, caller: Caller, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have succeeded: usage is counted at most once."""
    tally = UsageTally()
    tally.count(caller.tenant_id, "tool", "recall", CALL)
    original = Database.transaction

    @asynccontextmanager
    async def unanswered(self: Database, caller: Caller) -> AsyncIterator[Transaction]:
        async with original(self, caller) as tx:
            yield tx
        raise Unavailable("The database is unavailable. Try again in a moment.")

    monkeypatch.setattr(Database, "transaction", unanswered)
    await usage.flush(databases, tally)
    monkeypatch.undo()
    await usage.flush(databases, tally)
    assert await total(owner, caller) == 1


async def test_concurrent_flushes_of_the_same_rows_add_up_without_deadlock(
    databases: Databases, caller: Caller, key: IssuedKey, owner: asyncpg.Connection
) -> None:
    tallies = [UsageTally() for _ in range(4)]
    names = [f"tool_{number}" for number in range(30)]
    for nth, tally in enumerate(tallies):
        for name in names if nth % 2 else reversed(names):
            tally.count(caller.tenant_id, "tool", name, CALL)
        tally.note_key(caller.tenant_id, key.key.id, datetime.now(UTC))
    await asyncio.gather(*(usage.flush(databases, tally) for tally in tallies))
    assert [tally.tenants() for tally in tallies] == [[]] * 4
    assert await total(owner, caller) == 120


async def test_usage_of_an_erased_tenant_is_dropped(
    databases: Databases, new_tenant: NewTenant, operator: Operator, owner: asyncpg.Connection
) -> None:
    tenant, tally = await new_tenant(), UsageTally()
    tally.count(tenant.id, "tool", "recall", CALL)
    await usage.flush(databases, tally)
    tally.count(tenant.id, "tool", "recall", CALL)
    assert (await erase_now(operator, tenant.slug))["usage_hourly"] == 1
    await usage.flush(databases, tally)
    assert tally.tenants() == []
    assert await owner.fetchval(TOTAL, tenant.id) == 0


async def test_usage_of_a_tenant_erased_during_a_flush_is_dropped_and_no_others(
    databases: Databases, caller: Caller, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    tenant, tally = await new_tenant(), UsageTally()
    for tenant_id in (tenant.id, caller.tenant_id):
        tally.count(tenant_id, "tool", "recall", CALL)
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND $1 = ANY (pg_blocking_pids(pid))"

    async def held_up() -> bool:
        return bool(await owner.fetchval(waiting, owner.get_server_pid()))

    with structlog.testing.capture_logs() as told:
        async with owner.transaction():
            await erase_now(Operator(owner), tenant.slug)
            flushing = asyncio.create_task(usage.flush(databases, tally))
            await eventually(held_up)
        await flushing
    assert [entry["log_level"] for entry in told] == ["info"]
    assert tally.tenants() == []
    assert (await total(owner, caller), await owner.fetchval(TOTAL, tenant.id)) == (1, 0)


async def test_embedded_passages_are_counted(
    settings: Settings, db: Database, caller: Caller, owner: asyncpg.Connection
) -> None:
    await Agent(db, caller).remember("tea is hot", "coffee is hot")
    async with employed(settings, db) as context:
        await embed_batch(context, caller.tenant_id)
    [row] = await owner.fetch(
        "SELECT kind, name, calls, passages FROM usage_hourly WHERE tenant_id = $1", caller.tenant_id
    )
    assert tuple(row) == ("work", "embed_passages", 1, 2)


async def test_usage_beyond_the_retention_is_deleted_in_steps(
    settings: Settings, db: Database, caller: Caller, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    other = operator_caller(await new_tenant())
    for each in (caller, other):
        await owner.execute(
            "INSERT INTO usage_hourly "
            "SELECT $1, date_trunc('hour', now(), 'UTC') - h * interval '1 day', 'tool', 'recall', 1 "
            "FROM generate_series(1, 20) AS h",
            each.tenant_id,
        )
    retention = timedelta(days=10.5)
    async with db.transaction(caller) as tx:
        assert await usage.forget_old(tx, retention=retention, limit=4)
    assert (await total(owner, caller), await total(owner, other)) == (16, 20)
    oldest = await owner.fetchval("SELECT min(hour) FROM usage_hourly WHERE tenant_id = $1", caller.tenant_id)
    assert oldest > datetime.now(UTC) - timedelta(days=17)
    brief = settings.model_copy(update={"usage_retention_days": 10.5})
    async with employed(brief, db) as context:
        await cleanup.delete_old_usage(context)
    assert (await total(owner, caller), await total(owner, other)) == (10, 10)


async def test_concurrent_deletions_take_different_rows(
    db: Database, caller: Caller, owner: asyncpg.Connection
) -> None:
    await owner.execute(
        "INSERT INTO usage_hourly SELECT $1, '2020-01-01Z'::timestamptz + h * interval '1 hour', 'tool', 'recall', 1 "
        "FROM generate_series(1, 10) AS h",
        caller.tenant_id,
    )
    async with db.transaction(caller) as one, db.transaction(caller) as other:
        gone = [await store.forget_usage(tx, retention=timedelta(days=400), limit=6) for tx in (one, other)]
    assert gone == [6, 4]
    assert await total(owner, caller) == 0
