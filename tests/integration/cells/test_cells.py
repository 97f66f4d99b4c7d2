"""Each tenant's transactions run in its cell, and credentials are found in any cell."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action
from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import NewKey, worker_caller
from recollect.accounts.people import service as people
from recollect.accounts.people import sessions
from recollect.accounts.people.model import Confinement, IssuedSession
from recollect.accounts.usage import service as usage
from recollect.accounts.usage.model import Counts
from recollect.accounts.usage.tally import UsageTally
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.crypto.peppers import Pepper
from recollect.errors import TenantMoving, Unauthenticated, Unavailable
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.postgres.transactions import Session, Transaction
from recollect.settings import Settings
from recollect.settings.cells import HOME, CellUrls
from tests.support.cells import OTHER, opened
from tests.support.people import BROWSER, joined
from tests.support.statements import sent_statements

DATABASE = Query.compile("SELECT current_database()::text")
PEPPER = b"pepper"
AWAY = CellUrls(database_url="postgresql://nobody@127.0.0.1:9/nowhere")


async def where(cells: Databases, caller: Caller) -> str:
    async with cells.of(caller.tenant_id).transaction(caller, read_only=True) as tx:
        return str(await tx.fetchval(DATABASE))


async def key_of(cells: Databases, caller: Caller) -> str:
    async with cells.of(caller.tenant_id).transaction(caller) as tx:
        return (await identity.create_key(tx, NewKey("test"), pepper=PEPPER)).secret


async def put(owner: asyncpg.Connection, caller: Caller, place: str) -> None:
    await owner.execute("UPDATE tenants SET place = $2 WHERE id = $1", caller.tenant_id, place)


async def copy_rows(caller: Caller, source: asyncpg.Connection, target: asyncpg.Connection) -> None:
    """Copy the row of a tenant that arrives, and its credentials."""
    row = await source.fetchrow("SELECT id, slug, name FROM tenants WHERE id = $1", caller.tenant_id)
    assert row is not None
    await target.execute("INSERT INTO tenants (id, slug, name, place) VALUES ($1, $2, $3, 'arriving')", *row)
    tables = {
        "api_keys": "tenant_id",
        "members": "tenant_id",
        "identity_providers": "tenant_id",
        "sessions": "confined_to",
    }
    for table, tenant in tables.items():
        rows = await source.fetchval(f"SELECT jsonb_agg(to_jsonb(t)) FROM {table} t WHERE {tenant} = $1", row["id"])
        put = f"INSERT INTO {table} SELECT * FROM jsonb_populate_recordset(NULL::{table}, $1::text::jsonb)"
        await target.execute(put, rows or "[]")


@pytest.fixture
async def confined(cells: Databases, resident: Caller, owner_b: asyncpg.Connection) -> IssuedSession:
    """A session of a member of the tenant in the other cell, begun by a provider there."""
    provider_id = uuid4()
    made = (
        "INSERT INTO identity_providers (tenant_id, id, name, issuer, client_id, client_secret, algorithm, "
        "created_by) VALUES ($1, $2, 'theirs', 'https://idp.test', 'recollect', '', 'RS256', 'test')"
    )
    await owner_b.execute(made, resident.tenant_id, provider_id)
    person = await joined(cells, resident, Role.OWNER, pepper=PEPPER)
    confinement = Confinement(resident.tenant_id, provider_id)
    return await sessions.begin_session(cells, person.id, BROWSER, pepper=PEPPER, confinement=confinement)


async def test_a_tenants_transaction_runs_in_its_cell(cells: Databases, native: Caller, resident: Caller) -> None:
    assert await where(cells, native) == "recollect"
    assert await where(cells, resident) == "recollect_b"
    with sent_statements() as sent:
        await where(cells, resident)
    assert len(sent) == 3, "it is remembered, and no round trip is added: BEGIN, the query, COMMIT"
    async with cells.home.system() as session:
        assert await session.fetchval(DATABASE) == "recollect", "what is no tenant's is at home"


async def test_with_one_cell_the_database_of_every_tenant_is_that_of_home(db: Database, databases: Databases) -> None:
    assert databases.of(uuid4()) is databases.home is db
    assert databases.all == [db]


class _Noting:
    """A participant that notes in which database it took part."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.committed = 0

    async def begin(self, tx: Transaction) -> None:
        self.begun.append(await tx.fetchval(DATABASE))

    async def withdraw(self, tx: Transaction) -> None:
        raise AssertionError("nothing was undone")

    def commit(self, *, undone: bool) -> None:
        self.committed += not undone


async def test_a_participant_takes_part_in_each_cell(cells: Databases, native: Caller, resident: Caller) -> None:
    noting = _Noting()
    taking_part = cells.with_participant(noting)
    for caller in (native, resident):
        await key_of(taking_part, caller)
        await key_of(cells, caller)
    assert noting.begun == ["recollect", "recollect_b"]
    assert noting.committed == 2


async def test_a_tenant_in_no_cell_has_no_transaction(cells: Databases) -> None:
    for read_only in (True, False):
        caller = worker_caller(uuid4())
        with pytest.raises(TenantMoving):
            async with cells.of(caller.tenant_id).transaction(caller, read_only=read_only):
                raise AssertionError("it has begun")
    with pytest.raises(TenantMoving):
        async with cells.of(caller.tenant_id).writing(caller, "default"):
            raise AssertionError("it has begun")


async def test_a_credential_is_found_in_any_cell_and_its_cell_is_remembered(
    cells: Databases, native: Caller, resident: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    begin = cells._fan_out.begin

    def noting(cell: str, *more: Any) -> asyncio.Task[Any]:
        asked.append(cell)
        return begin(cell, *more)

    monkeypatch.setattr(cells._fan_out, "begin", noting)
    for caller, cell in ((native, HOME), (resident, OTHER)):
        secret = await key_of(cells, caller)
        for there in ([HOME, OTHER], [cell]):
            asked.clear()
            assert (await identity.authenticate(cells, secret, pepper=PEPPER)).tenant_id == caller.tenant_id
            assert asked == there


@pytest.mark.parametrize("known", [True, False])
async def test_a_moved_tenant_is_served_in_its_new_cell_at_once(
    celled: Settings,
    cells: Databases,
    resident: Caller,
    owner: asyncpg.Connection,
    owner_b: asyncpg.Connection,
    known: bool,
) -> None:
    """At the end of a move, its rows are in both cells, and one of them has the place `here`."""
    secret = await key_of(cells, resident)
    await copy_rows(resident, owner_b, owner)
    async with opened(celled) as gateway:
        if known:
            assert (await identity.authenticate(gateway, secret, pepper=PEPPER)).tenant_id == resident.tenant_id
        await put(owner_b, resident, "departed")
        with pytest.raises(TenantMoving):
            await identity.authenticate(gateway, secret, pepper=PEPPER)
        with pytest.raises(TenantMoving):
            await where(gateway, resident)
        await put(owner, resident, "here")
        await owner.execute("UPDATE tenant_cells SET cell = 'home' WHERE id = $1", resident.tenant_id)
        assert (await identity.authenticate(gateway, secret, pepper=PEPPER)).tenant_id == resident.tenant_id
        gateway._cells_of_tenants[resident.tenant_id] = OTHER
        async with gateway.of(resident.tenant_id).writing(resident, "default") as tx:
            assert await tx.fetchval(DATABASE) == "recollect"
        gateway._cells_of_tenants[resident.tenant_id] = OTHER
        assert await where(gateway, resident) == "recollect"


async def test_a_credential_is_not_refused_because_of_a_switch_during_the_search(
    celled: Settings,
    cells: Databases,
    resident: Caller,
    owner: asyncpg.Connection,
    owner_b: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The target was asked before the switch, and the source after it."""
    secret = await key_of(cells, resident)
    await copy_rows(resident, owner_b, owner)
    await put(owner_b, resident, "departed")
    async with opened(celled) as gateway:
        first = gateway._fan_out.first

        async def switching(*asked: Any) -> Any:
            found = await first(*asked)
            await put(owner, resident, "here")
            return found

        monkeypatch.setattr(gateway._fan_out, "first", switching)
        assert (await identity.authenticate(gateway, secret, pepper=PEPPER)).tenant_id == resident.tenant_id


async def test_a_tenant_between_two_cells_gets_a_retryable_error(
    celled: Settings, cells: Databases, resident: Caller, owner: asyncpg.Connection, owner_b: asyncpg.Connection
) -> None:
    """For a key stored under an older secret and for a member; unknown credentials are refused."""
    secret = await key_of(cells, resident)
    person = await joined(cells, resident, Role.OWNER, pepper=PEPPER)
    await copy_rows(resident, owner_b, owner)
    await put(owner_b, resident, "departed")
    pepper = Pepper.of(b"newer", [PEPPER])
    async with opened(celled) as gateway:
        with pytest.raises(TenantMoving):
            await identity.authenticate(gateway, secret, pepper=pepper)
        with pytest.raises(TenantMoving):
            await people.find_membership(gateway, person.id, resident.tenant, within=None)
        with pytest.raises(Unauthenticated):
            await identity.authenticate(gateway, secret[:-8] + "00000000", pepper=pepper)
        await put(owner_b, resident, "here")
        assert await people.find_membership(gateway, uuid4(), resident.tenant, within=None) is None
        assert await people.find_membership(gateway, person.id, "nobodys-name", within=None) is None


async def test_a_confined_session_is_looked_up_in_its_tenants_cell(
    cells: Databases, resident: Caller, confined: IssuedSession, owner: asyncpg.Connection, owner_b: asyncpg.Connection
) -> None:
    """Its row in the cell that the tenant left is neither read nor changed."""
    tenant_id, person_id = resident.tenant_id, confined.person_id
    await copy_rows(resident, owner_b, owner)
    await put(owner_b, resident, "departed")
    with pytest.raises(TenantMoving):
        await sessions.session_of(cells, confined.secret, pepper=PEPPER)
    with pytest.raises(TenantMoving):
        await people.find_membership(cells, person_id, resident.tenant, within=tenant_id)
    await put(owner, resident, "here")
    await owner.execute("UPDATE tenant_cells SET cell = 'home' WHERE id = $1", tenant_id)
    cells._cells_of_tenants[tenant_id] = OTHER
    assert await people.find_membership(cells, person_id, resident.tenant, within=tenant_id) is not None
    cells._cells_of_tenants[tenant_id] = OTHER
    assert await sessions.session_of(cells, confined.secret, pepper=PEPPER) is not None
    assert cells._cells_of_tenants[tenant_id] == HOME
    await sessions.end_session(cells, person_id, confined.id, within=None)
    revoked = "SELECT revoked_at IS NOT NULL FROM sessions WHERE id = $1"
    assert [await each.fetchval(revoked, confined.id) for each in (owner, owner_b)] == [True, False]


async def test_held_writes_keep_sessions_from_ending_and_let_reads_continue(
    cells: Databases, resident: Caller, confined: IssuedSession, owner_b: asyncpg.Connection
) -> None:
    await put(owner_b, resident, "leaving")
    for within in (resident.tenant_id, None):
        with pytest.raises(TenantMoving):
            await sessions.end_session(cells, confined.person_id, confined.id, within=within)
    used = "UPDATE sessions SET last_used_at = now() - interval '1 hour' WHERE id = $1 RETURNING last_used_at"
    before = await owner_b.fetchval(used, confined.id)
    assert await sessions.session_of(cells, confined.secret, pepper=PEPPER) is not None
    row = await owner_b.fetchrow("SELECT last_used_at, revoked_at FROM sessions WHERE id = $1", confined.id)
    assert tuple(row or ()) == (before, None)
    await put(owner_b, resident, "here")
    await sessions.end_session(cells, confined.person_id, confined.id, within=resident.tenant_id)
    assert await sessions.session_of(cells, confined.secret, pepper=PEPPER) is None


@pytest.mark.parametrize("by_session", [True, False], ids=["a session", "a call"])
async def test_the_first_write_after_a_hold_has_expired_ends_it(
    cells: Databases, resident: Caller, confined: IssuedSession, owner_b: asyncpg.Connection, by_session: bool
) -> None:
    held = "UPDATE tenants SET place = 'leaving', held_until = clock_timestamp() + $2::interval WHERE id = $1"
    place = "SELECT place FROM tenants WHERE id = $1"

    async def write() -> None:
        if by_session:
            await sessions.end_session(cells, confined.person_id, confined.id, within=resident.tenant_id)
            return
        caller = replace(resident, subject="key:0", of_service=False)
        async with cells.of(caller.tenant_id).transaction(caller) as tx:
            await audit.record(tx, Action.TENANT_CHANGED)

    await owner_b.execute(held, resident.tenant_id, timedelta(hours=1))
    with pytest.raises(TenantMoving):
        await write()
    await owner_b.execute(held, resident.tenant_id, timedelta())
    assert await where(cells, resident) == "recollect_b"
    assert await owner_b.fetchval(place, resident.tenant_id) == "leaving", "what reads ends nothing"
    await write()
    assert await owner_b.fetchval(place, resident.tenant_id) == "here"


@pytest.mark.proves("security: cells")
async def test_no_write_commits_after_its_tenant_has_departed(
    cells: Databases, resident: Caller, owner_b: asyncpg.Connection
) -> None:
    """Whether by a member or by the service; reads continue until then."""
    for caller in (replace(resident, subject="key:0", of_service=False), worker_caller(resident.tenant_id)):

        async def write(caller: Caller = caller) -> None:
            async with cells.of(caller.tenant_id).transaction(caller) as tx:
                await audit.record(tx, Action.TENANT_CHANGED)
                await put(owner_b, resident, "departed")

        with pytest.raises(TenantMoving):
            await write()
        await put(owner_b, resident, "leaving")
        with pytest.raises(TenantMoving):
            await write()
        assert await where(cells, caller) == "recollect_b"
        await put(owner_b, resident, "here")
    count = "SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND action = 'tenant.changed'"
    assert await owner_b.fetchval(count, resident.tenant_id) == 0


async def test_a_cell_that_is_away_affects_only_its_own_tenants(
    celled: Settings, cells: Databases, native: Caller, resident: Caller, owner: asyncpg.Connection
) -> None:
    secrets = {caller.tenant_id: await key_of(cells, caller) for caller in (native, resident)}
    without = celled.model_copy(update={"cells": {OTHER: AWAY}, "database_acquire_seconds": 1.0})
    async with opened(without) as gateway:
        found = await identity.authenticate(gateway, secrets[native.tenant_id], pepper=PEPPER)
        assert await where(gateway, found) == "recollect"
        with pytest.raises(Unavailable):
            await identity.authenticate(gateway, secrets[resident.tenant_id], pepper=PEPPER)
        with pytest.raises(Unavailable):
            await where(gateway, resident)
    with pytest.raises(Unauthenticated):
        await identity.authenticate(cells, secrets[native.tenant_id][:-8] + "00000000", pepper=PEPPER)


async def test_usage_of_an_erased_tenant_is_dropped_and_of_a_moving_one_kept(
    celled: Settings, cells: Databases, resident: Caller, owner_b: asyncpg.Connection
) -> None:
    erased, tally = uuid4(), UsageTally()
    for tenant_id in (resident.tenant_id, erased):
        tally.count(tenant_id, "tool", "remember", Counts(calls=1))
    await put(owner_b, resident, "departed")
    away = celled.model_copy(update={"cells": {**celled.cells, "c": AWAY}})
    async with opened(away) as some:
        await usage.flush(some, tally)
    assert tally.tenants() == [resident.tenant_id, erased], "it may be in the one that is away"
    await usage.flush(cells, tally)
    assert tally.tenants() == [resident.tenant_id]


async def test_a_hanging_lookup_ends_before_its_pool_closes(cells: Databases) -> None:
    """The pool waits for its connections."""
    asked = asyncio.Event()

    async def hang(session: Session) -> None:
        asked.set()
        await asyncio.Event().wait()

    cells._fan_out.begin(OTHER, hang, None)
    await asked.wait()
    await cells._fan_out.stop()
    assert cells._fan_out._running == set()


async def test_a_lookup_ends_when_nobody_waits_for_it(celled: Settings) -> None:
    async with opened(celled.model_copy(update={"database_acquire_seconds": 0.5})) as cells:

        async def hang(session: Session) -> None:
            await asyncio.Event().wait()

        with pytest.raises(Unavailable):
            await cells._fan_out.begin(OTHER, hang, None)
