"""Owners ask for the deletion of their organisation: nothing happens for a week, and then it is as an operator's."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import AuditFilter
from recollect.accounts.deletion_requests import service as requests
from recollect.accounts.deletion_requests.model import RESTORABLE, WEEK
from recollect.accounts.deletions import service as deletions
from recollect.accounts.identity.model import operator_caller
from recollect.accounts.operator_log import service as operator_log
from recollect.accounts.people.model import PersonSession
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.errors import Conflict, Forbidden, InvalidInput, NotFound, TooManyRequests
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import tenant_erasure
from tests.support.deletion_requests import advance_request
from tests.support.erasures import rows_of
from tests.support.people import PASSWORD, joined, new_session


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    return operator_caller(tenant)


async def session_of(
    databases: Databases, caller: Caller, settings: Settings, role: Role = Role.OWNER
) -> PersonSession:
    """A new member of the tenant who has just signed in."""
    person = await joined(databases, caller, role, pepper=settings.pepper)
    return await new_session(databases, person.id, pepper=settings.pepper)


@pytest.fixture
async def session(databases: Databases, caller: Caller, settings: Settings) -> PersonSession:
    return await session_of(databases, caller, settings)


async def ask(db: Database, caller: Caller, session: PersonSession, typed: str | None = None) -> datetime:
    async with db.transaction(caller) as tx:
        return (await requests.request_deletion(tx, session, caller.tenant if typed is None else typed)).due_at


async def keep(db: Database, caller: Caller, session: PersonSession) -> None:
    async with db.transaction(caller) as tx:
        await requests.take_back_deletion(tx, session)


async def logged(operator: Operator, tenant: Tenant) -> list[str]:
    """What the log of operators says of the tenant, the oldest first."""
    entries = await operator_log.list_entries(operator, subject=f"tenant:{tenant.slug}")
    return [entry.action for entry in reversed(entries)]


async def status_of(owner: asyncpg.Connection, tenant_id: UUID) -> tuple[str, bool]:
    row = await owner.fetchrow("SELECT status, erase_at IS NOT NULL FROM tenants WHERE id = $1", tenant_id)
    assert row is not None
    return tuple(row)


async def test_a_request_is_stored_logged_and_taken_back_by_any_owner(
    db: Database,
    databases: Databases,
    caller: Caller,
    session: PersonSession,
    settings: Settings,
    tenant: Tenant,
    operator: Operator,
) -> None:
    due_at = await ask(db, caller, session)
    assert timedelta(minutes=-1) < due_at - datetime.now(UTC) - WEEK <= timedelta(0)
    with pytest.raises(Conflict):
        await ask(db, caller, session)
    other = await session_of(databases, caller, settings)
    await keep(db, caller, other)
    with pytest.raises(NotFound):
        await keep(db, caller, session)
    async with db.transaction(caller, read_only=True) as tx:
        assert await requests.find_request(tx) is None
        assert set(await requests.list_notified(tx)) == {session.email, other.email}
        acts = [
            entry.action for entry in await audit.list_entries(tx, AuditFilter(), limit=9) if "deletion" in entry.action
        ]
    assert acts == ["tenant.deletion_taken_back", "tenant.deletion_requested"]
    assert (await logged(operator, tenant))[-2:] == ["tenant.deletion_requested", "tenant.deletion_taken_back"]


async def test_only_an_owner_who_types_the_name_asks(
    db: Database, databases: Databases, caller: Caller, session: PersonSession, settings: Settings
) -> None:
    for typed in ("", caller.tenant.upper(), "another"):
        with pytest.raises(InvalidInput) as wrong:
            await ask(db, caller, session, typed)
        assert wrong.value.path == "typed"
    admin = await session_of(databases, caller, settings, Role.ADMIN)
    with pytest.raises(Forbidden):
        await ask(db, caller, admin)
    await ask(db, caller, session)
    with pytest.raises(Forbidden):
        await keep(db, caller, admin)


async def test_requests_of_a_day_are_bounded(db: Database, caller: Caller, session: PersonSession) -> None:
    for _ in range(5):
        await ask(db, caller, session)
        await keep(db, caller, session)
    with pytest.raises(TooManyRequests):
        await ask(db, caller, session)


async def test_who_asks_proves_anew_who_they_are(
    databases: Databases, session: PersonSession, owner: asyncpg.Connection
) -> None:
    await requests.require_proof(databases, session, PASSWORD)
    with pytest.raises(InvalidInput, match="password"):
        await requests.require_proof(databases, session, "not this one")
    await owner.execute("UPDATE people SET password_hash = NULL WHERE id = $1", session.person_id)
    assert not await requests.needs_password(databases, session)
    await requests.require_proof(databases, session, "")
    old = replace(session, created_at=session.created_at - timedelta(minutes=11))
    with pytest.raises(InvalidInput, match="Sign out and in again"):
        await requests.require_proof(databases, old, "")


async def test_a_tenant_is_deleted_when_its_request_is_due_and_not_before(
    db: Database,
    caller: Caller,
    session: PersonSession,
    tenant: Tenant,
    operator: Operator,
    owner: asyncpg.Connection,
    context: WorkerContext,
) -> None:
    await ask(db, caller, session)
    await advance_request(owner, tenant.id, WEEK - timedelta(minutes=1))
    await tenant_erasure.delete_requested(context)
    assert await status_of(owner, tenant.id) == ("active", False)
    await advance_request(owner, tenant.id, timedelta(minutes=1))
    await tenant_erasure.delete_requested(context)
    await tenant_erasure.delete_requested(context)
    await tenant_erasure.erase(context)
    assert await status_of(owner, tenant.id) == ("suspended", True)
    deleted = await tenants.find_tenant(operator, tenant.slug)
    assert deleted.erase_at is not None
    assert timedelta(minutes=-1) < deleted.erase_at - datetime.now(UTC) - RESTORABLE <= timedelta(0)
    assert (await logged(operator, tenant))[-2:] == ["tenant.deletion_requested", "tenant.deleted"]
    entry = await owner.fetchrow("SELECT * FROM audit_log WHERE tenant_id = $1 ORDER BY id DESC LIMIT 1", tenant.id)
    assert entry is not None
    assert (entry["action"], entry["actor"]) == ("tenant.deleted", "service")
    assert json.loads(entry["details"])["requested_by"] == f"person:{session.person_id}"
    restored = await deletions.restore_tenant(operator, tenant.slug)
    assert (restored.status, restored.erase_at) == ("active", None)
    await tenant_erasure.delete_requested(context)
    assert await status_of(owner, tenant.id) == ("active", False), "the request is over"


async def test_an_operator_takes_a_request_back(
    db: Database,
    caller: Caller,
    session: PersonSession,
    tenant: Tenant,
    operator: Operator,
    owner: asyncpg.Connection,
    context: WorkerContext,
) -> None:
    """Before it is due, and where the operator has deleted the tenant meanwhile: a restored tenant has no request."""
    for is_deleted in (False, True):
        await ask(db, caller, session)
        if is_deleted:
            await deletions.delete_tenant(operator, tenant.slug, grace=RESTORABLE)
        assert (await deletions.restore_tenant(operator, tenant.slug)).status == "active"
        assert await owner.fetchval("SELECT count(*) FROM deletion_requests WHERE tenant_id = $1", tenant.id) == 0
    with pytest.raises(Conflict):
        await deletions.restore_tenant(operator, tenant.slug)
    assert (await logged(operator, tenant))[-1] == "tenant.restored"


async def test_a_tenant_on_its_way_to_another_cell_is_deleted_later(
    db: Database,
    caller: Caller,
    session: PersonSession,
    tenant: Tenant,
    owner: asyncpg.Connection,
    context: WorkerContext,
) -> None:
    await ask(db, caller, session)
    await advance_request(owner, tenant.id, WEEK)
    for where, not_anymore in (("place = 'leaving'", "place = 'here'"), ("moving = true", "moving = false")):
        await owner.execute(f"UPDATE tenants SET {where} WHERE id = $1", tenant.id)
        await tenant_erasure.delete_requested(context)
        assert await status_of(owner, tenant.id) == ("active", False)
        await owner.execute(f"UPDATE tenants SET {not_anymore} WHERE id = $1", tenant.id)
    await tenant_erasure.delete_requested(context)
    assert await status_of(owner, tenant.id) == ("suspended", True)


async def test_the_receipt_names_who_asked(
    db: Database,
    caller: Caller,
    session: PersonSession,
    tenant: Tenant,
    operator: Operator,
    owner: asyncpg.Connection,
    context: WorkerContext,
) -> None:
    await ask(db, caller, session)
    await advance_request(owner, tenant.id, WEEK)
    await tenant_erasure.delete_requested(context)
    await owner.execute("UPDATE tenants SET erase_at = now() WHERE id = $1", tenant.id)
    await tenant_erasure.erase(context)
    receipt = await deletions.finish_erasure(operator, tenant.id)
    assert f'"deleted_by": "person:{session.person_id}"' in receipt.content
    assert rows_of(receipt)["deletion_requests"] == 0
