"""The audit log: entries are written with the act, cannot be changed, and are kept for a limited time."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import OF_PERSONS, Action, AuditFilter
from recollect.accounts.deletions import service as deletions
from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import NewKey, operator_caller
from recollect.accounts.members import service as members
from recollect.accounts.people import service as people
from recollect.accounts.people import sessions
from recollect.accounts.people.model import Browser
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.errors import Forbidden
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Query
from recollect.settings import Settings
from recollect_workers.jobs import cleanup
from tests.conftest import NewTenant
from tests.support.erasures import erase_now
from tests.support.jobs import employed
from tests.support.people import PASSWORD, joined, new_session

PEPPER = b"pepper"
THERE = Browser("tests", "192.0.2.7")


async def entries(db: Database, caller: Caller, **only: Any) -> list[tuple[str, str]]:
    """Action and actor of each entry, oldest first."""
    async with db.transaction(caller, read_only=True) as tx:
        found = await audit.list_entries(tx, AuditFilter(**only), limit=200)
    return [(entry.action, entry.actor) for entry in reversed(found)]


class TestEntries:
    @pytest.mark.proves("security: audit-entries")
    async def test_an_entry_is_written_with_its_act_or_not_at_all(self, db: Database, caller: Caller) -> None:
        async with db.transaction(caller, commit=False) as tx:
            await identity.create_key(tx, NewKey("laptop"), pepper=PEPPER)
            assert len(await audit.list_entries(tx, AuditFilter())) == 2
        assert await entries(db, caller) == [("tenant.created", "operator")]

    @pytest.mark.proves("security: audit-content")
    async def test_an_entry_says_who_did_what_to_what_from_where(self, db: Database, caller: Caller) -> None:
        maker = Caller(caller.tenant_id, caller.tenant, "key:x", caller.scopes, address="192.0.2.7")
        async with db.transaction(maker) as tx:
            issued = await identity.create_key(tx, NewKey("a name of somebody"), pepper=PEPPER)
            [entry] = await audit.list_entries(tx, AuditFilter(actor="key:x"))
        assert (entry.action, entry.objects) == (Action.KEY_CREATED, (f"key:{issued.key.id}",))
        assert (entry.address, entry.trace_id) == ("192.0.2.7", None)
        assert entry.details == {"kind": "agent", "scopes": ["memory:read", "memory:write"]}
        assert "somebody" not in repr(entry)
        assert issued.secret not in repr(entry)

    async def test_an_act_without_effect_has_no_entry(self, db: Database, databases: Databases, caller: Caller) -> None:
        person = await joined(databases, caller, Role.MEMBER, pepper=PEPPER)
        async with db.transaction(caller) as tx:
            issued = await identity.create_key(tx, NewKey("laptop"), pepper=PEPPER)
            invited = await members.invite(tx, "grace@example.com", Role.MEMBER, pepper=PEPPER)
            for _ in range(3):
                await identity.revoke_key(tx, issued.key.id)
                await members.revoke_invitation(tx, invited.invitation.id)
                await members.change_role(tx, person.id, Role.ADMIN)
        actions = [action for action, _ in await entries(db, caller)]
        for action in ("key.revoked", "invitation.revoked", "member.role_changed"):
            assert actions.count(action) == 1

    async def test_a_refused_act_has_no_entry(self, db: Database, caller: Caller) -> None:
        member = Caller(caller.tenant_id, caller.tenant, "key:x", caller.scopes)
        with pytest.raises(Forbidden):
            async with db.transaction(member) as tx:
                await members.invite(tx, "grace@example.com", Role.OWNER, pepper=PEPPER)
        assert await entries(db, caller, actor="key:x") == []

    async def test_entries_are_filtered_by_object_action_and_actor(self, db: Database, caller: Caller) -> None:
        async with db.transaction(caller) as tx:
            one, other = [await identity.create_key(tx, NewKey("laptop"), pepper=PEPPER) for _ in range(2)]
            await identity.rotate_key(tx, one.key.id, overlap=timedelta(0), pepper=PEPPER)
        on_one = await entries(db, caller, object=f"key:{one.key.id}")
        assert [action for action, _ in on_one] == ["key.created", "key.rotated"]
        assert await entries(db, caller, object=f"key:{other.key.id}") == [("key.created", "operator")]
        assert len(await entries(db, caller, action=Action.KEY_CREATED)) == 2
        assert await entries(db, caller, actor="key:x") == []
        async with db.transaction(caller, read_only=True) as tx:
            [newest, before, *_] = await audit.list_entries(tx, AuditFilter())
        assert newest.action == "key.rotated"
        assert (await entries(db, caller, since=newest.at))[0][0] == "key.rotated"
        assert len(await entries(db, caller, until=newest.at, since=before.at)) == 1


class TestPeople:
    async def test_sign_ins_are_logged_in_each_tenant_of_the_person_and_no_other(
        self, db: Database, databases: Databases, caller: Caller, new_tenant: NewTenant
    ) -> None:
        second, third = [operator_caller(await new_tenant()) for _ in range(2)]
        person = await joined(databases, caller, Role.MEMBER, pepper=PEPPER)
        async with db.transaction(second) as tx:
            invited = await members.invite(tx, person.email, Role.READER, pepper=PEPPER)
        await members.join(databases, await members.open_invitation(databases, invited.secret, pepper=PEPPER), person)
        issued = await people.sign_in(databases, person.email, PASSWORD, THERE, pepper=PEPPER)
        await sessions.end_session(databases, person.id, issued.id, address=THERE.address, within=None)
        me = f"person:{person.id}"
        for each in (caller, second):
            assert (await entries(db, each))[-2:] == [("session.started", me), ("session.ended", me)]
            async with db.transaction(each, read_only=True) as tx:
                [entry] = await audit.list_entries(tx, AuditFilter(action=Action.SESSION_STARTED))
            assert (entry.objects, entry.address) == ((me, f"session:{issued.id}"), THERE.address)
        assert await entries(db, third) == [("tenant.created", "operator")]

    async def test_the_end_of_a_session_is_logged_once(
        self, db: Database, databases: Databases, caller: Caller
    ) -> None:
        person = await joined(databases, caller, Role.MEMBER, pepper=PEPPER)
        issued = await people.sign_in(databases, person.email, PASSWORD, THERE, pepper=PEPPER)
        first, again = [
            await sessions.end_session(databases, person.id, issued.id, address=THERE.address, within=None)
            for _ in range(2)
        ]
        assert first == again
        ended = await entries(db, caller, action=Action.SESSION_ENDED)
        assert ended == [("session.ended", f"person:{person.id}")]

    async def test_a_refused_sign_in_is_logged_without_an_actor(
        self, db: Database, databases: Databases, caller: Caller
    ) -> None:
        person = await joined(databases, caller, Role.MEMBER, pepper=PEPPER)
        for email in (person.email, person.email.upper(), "nobody@example.com", "no address"):
            await people.note_refused_sign_in(databases, email, THERE)
        refused = await entries(db, caller, action=Action.SESSION_REFUSED)
        assert refused == [("session.refused", "unknown")] * 2

    async def test_a_change_of_password_is_logged(self, db: Database, databases: Databases, caller: Caller) -> None:
        person = await joined(databases, caller, Role.MEMBER, pepper=PEPPER)
        session = await new_session(databases, person.id, pepper=PEPPER)
        await people.change_password(databases, session, PASSWORD, "orange ladder beside rivers")
        assert (await entries(db, caller))[-1] == ("person.password_changed", f"person:{person.id}")

    @pytest.mark.proves("security: audit-readers")
    async def test_a_person_can_only_log_personal_acts_of_their_own(
        self, db: Database, databases: Databases, caller: Caller
    ) -> None:
        person = await joined(databases, caller, Role.MEMBER, pepper=PEPPER)
        stranger = await people.register(databases, "stranger@example.com", "Eve", PASSWORD)

        async def forge(person_id: UUID, action: str) -> None:
            insert = f"INSERT INTO audit_log (tenant_id, id, actor, action, objects) VALUES ('{caller.tenant_id}', "
            async with db.personal(person_id) as session:
                await session.execute(Query.compile(f"{insert} gen_random_uuid(), 'x', '{action}', '{{}}')"))

        for action in sorted(OF_PERSONS):
            await forge(person.id, action)
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await forge(stranger.id, action)
        for action in sorted(set(Action) - OF_PERSONS):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await forge(person.id, action)


class TestOperators:
    async def test_acts_of_operators_are_logged_in_the_tenants_log(
        self, db: Database, operator: Operator, tenant: Tenant, caller: Caller
    ) -> None:
        await tenants.suspend_tenant(operator, tenant.slug)
        await tenants.resume_tenant(operator, tenant.slug)
        await tenants.set_plan(operator, tenant.slug, "unlimited")
        acts = ["tenant.created", "tenant.suspended", "tenant.resumed", "tenant.plan_changed"]
        assert await entries(db, caller) == [(act, "operator") for act in acts]

    async def test_an_erasure_deletes_and_counts_the_log(
        self, operator: Operator, tenant: Tenant, owner: asyncpg.Connection
    ) -> None:
        assert (await deletions.count_rows(operator, tenant.slug))["audit_log"] == 1
        assert (await erase_now(operator, tenant.slug))["audit_log"] == 1
        assert await owner.fetchval("SELECT count(*) FROM audit_log WHERE tenant_id = $1", tenant.id) == 0


class TestAppendOnly:
    @pytest.mark.proves("security: audit-is-immutable")
    @pytest.mark.parametrize("statement", ["UPDATE audit_log SET actor = 'me'", "DELETE FROM audit_log"])
    async def test_the_application_may_not_change_the_log(self, db: Database, caller: Caller, statement: str) -> None:
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="permission denied"):
            async with db.transaction(caller) as tx:
                await tx.execute(Query.compile(f"{statement} WHERE tenant_id = :tenant_id"))

    @pytest.mark.proves("security: audit-is-immutable")
    @pytest.mark.parametrize("statement", ["UPDATE audit_log SET actor = 'me'", "DELETE FROM audit_log"])
    async def test_the_owner_cannot_change_the_log_by_mistake(
        self, owner: asyncpg.Connection, tenant: Tenant, statement: str
    ) -> None:
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
            await owner.execute(f"{statement} WHERE tenant_id = $1", tenant.id)

    async def test_the_setting_for_erasure_does_not_allow_updates(
        self, owner: asyncpg.Connection, tenant: Tenant
    ) -> None:
        async with owner.transaction():
            await owner.execute("SELECT set_config('recollect.audit_removal', 'on', true)")
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
                async with owner.transaction():
                    await owner.execute("UPDATE audit_log SET actor = 'me' WHERE tenant_id = $1", tenant.id)


class TestRetention:
    async def test_entries_beyond_the_retention_are_deleted_for_each_tenant(
        self, db: Database, settings: Settings, caller: Caller, new_tenant: NewTenant, owner: asyncpg.Connection
    ) -> None:
        other = operator_caller(await new_tenant())
        for each in (caller, other):
            await add_old_entries(owner, each, days=range(100, 500, 10))
        kept = settings.model_copy(update={"audit_retention_days": 365})
        async with employed(kept, db) as context:
            await cleanup.delete_old_audit_entries(context)
        for each in (caller, other):
            oldest = "SELECT min(at) > now() - interval '365 days' FROM audit_log WHERE tenant_id = $1"
            assert await owner.fetchval(oldest, each.tenant_id)
            assert len(await entries(db, each)) == 1 + 27

    @pytest.mark.proves("security: audit-is-immutable")
    async def test_a_tenant_can_delete_only_its_own_entries_older_than_thirty_days(
        self, db: Database, caller: Caller, new_tenant: NewTenant, owner: asyncpg.Connection
    ) -> None:
        other = operator_caller(await new_tenant())
        for each in (caller, other):
            await add_old_entries(owner, each, days=range(10, 60, 10))
        async with db.transaction(caller) as tx:
            await audit.forget_old(tx, retention=timedelta(0))
        assert len(await entries(db, caller)) == 1 + 2
        assert len(await entries(db, other)) == 1 + 5

    async def test_deletion_is_done_in_limited_steps(
        self, db: Database, caller: Caller, owner: asyncpg.Connection
    ) -> None:
        await add_old_entries(owner, caller, days=range(400, 405))
        async with db.transaction(caller) as tx:
            assert await audit.forget_old(tx, retention=timedelta(days=365), limit=3)
            assert not await audit.forget_old(tx, retention=timedelta(days=365), limit=3)
        assert len(await entries(db, caller)) == 1

    async def test_the_right_to_delete_ends_with_the_function(
        self, db: Database, caller: Caller, owner: asyncpg.Connection
    ) -> None:
        async with db.transaction(caller) as tx:
            await audit.forget_old(tx, retention=timedelta(days=365))
            assert not await tx.fetchval(Query.compile("SELECT current_setting('recollect.audit_removal', true)"))


async def add_old_entries(owner: asyncpg.Connection, caller: Caller, days: range) -> None:
    """Add an entry for each number of days ago."""
    await owner.executemany(
        "INSERT INTO audit_log (tenant_id, id, at, actor, action, objects) "
        "VALUES ($1, gen_random_uuid(), now() - $2 * interval '1 day', 'x', 'key.created', '{}')",
        [(caller.tenant_id, float(day)) for day in days],
    )
