"""People on a real database: passwords, sessions, invitations, roles, and the last owner."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, AuditFilter
from recollect.accounts.identity.model import operator_caller
from recollect.accounts.members import service as members
from recollect.accounts.members.model import subject_of
from recollect.accounts.people import passwords, sessions
from recollect.accounts.people import service as people
from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role, Scope
from recollect.cells.databases import Databases
from recollect.errors import Conflict, ErrorCode, Forbidden, InvalidInput, NotFound, RecollectError, Unauthenticated
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.support.people import BROWSER, PASSWORD, beside_another_password, joined, new_email, new_session

PEPPER = b"pepper"


def acting(caller: Caller, person: Person, role: Role) -> Caller:
    """The caller of a member."""
    return Caller(caller.tenant_id, caller.tenant, subject_of(person.id), scopes=frozenset(Scope), role=role)


async def roles(db: Database, caller: Caller) -> dict[str, Role]:
    async with db.transaction(caller, read_only=True) as tx:
        return {member.email: member.role for member in await members.list_members(tx)}


class TestPasswords:
    @pytest.fixture(autouse=True)
    def as_in_production(self, cheap_passwords: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in cheap_passwords.items():
            monkeypatch.setattr(passwords, name, value)

    @pytest.mark.proves("security: passwords")
    @pytest.mark.parametrize(
        ("password", "said"),
        [
            ("short1!", "12 to 128"),
            ("x" * 129, "12 to 128"),
            ("password1234", "easy to guess"),
            ("qwertyuiop[]", "easy to guess"),
            ("aaaaaaaaaaaaaaaa", "easy to guess"),
            ("ada@example.com", "easy to guess"),
        ],
    )
    async def test_a_short_or_easily_guessed_password_is_refused(self, password: str, said: str) -> None:
        with pytest.raises(InvalidInput, match=said) as refused:
            await passwords.require_strong(password, ("ada@example.com", "Ada"))
        assert refused.value.path == "password"
        assert password not in str(refused.value)

    async def test_a_strong_password_is_accepted(self) -> None:
        await passwords.require_strong(PASSWORD, ("ada@example.com", "Ada"))

    @pytest.mark.proves("security: passwords")
    async def test_a_password_is_stored_as_an_argon2id_hash_only(
        self, databases: Databases, owner: asyncpg.Connection
    ) -> None:
        person = await people.register(databases, new_email(), "Ada", PASSWORD)
        stored = await owner.fetchval("SELECT password_hash FROM people WHERE id = $1", person.id)
        assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
        assert PASSWORD not in stored
        assert await passwords.matches(PASSWORD, stored)
        assert not await passwords.matches(f"{PASSWORD}s", stored)

    async def test_no_password_matches_a_missing_hash(self) -> None:
        assert not await passwords.matches("the password of nobody", None)
        assert not passwords._HASHER.check_needs_rehash(passwords._NOBODYS), "else it takes longer or shorter"


class TestSessions:
    async def test_a_session_is_valid_until_it_is_ended(self, databases: Databases) -> None:
        person = await people.register(databases, new_email(), "Ada", PASSWORD)
        issued = await people.sign_in(databases, f" {person.email.upper()} ", PASSWORD, BROWSER, pepper=PEPPER)
        session = await sessions.session_of(databases, issued.secret, pepper=PEPPER)
        assert session is not None
        assert (session.person_id, session.name) == (person.id, "Ada")
        await sessions.end_session(databases, person.id, session.id, within=None)
        assert await sessions.session_of(databases, issued.secret, pepper=PEPPER) is None

    @pytest.mark.proves("security: refused-sign-ins")
    @pytest.mark.parametrize(
        "email", ["nobody@example.com", "no address", "x" * 300 + "@example.com", "", "a@b@c.example"]
    )
    async def test_every_refusal_looks_alike(self, databases: Databases, email: str) -> None:
        person = await people.register(databases, new_email(), "Ada", PASSWORD)
        said = set()
        for address, password in ((email, PASSWORD), (person.email, "wrong"), (person.email, "")):
            with pytest.raises(Unauthenticated) as refused:
                await people.sign_in(databases, address, password, BROWSER, pepper=PEPPER)
            said.add((str(refused.value), refused.value.code))
        assert len(said) == 1

    async def test_a_person_without_a_password_cannot_sign_in_with_an_empty_one(self, databases: Databases) -> None:
        person = await people.register(databases, new_email(), "Ada", None)
        with pytest.raises(Unauthenticated):
            await people.sign_in(databases, person.email, "", BROWSER, pepper=PEPPER)

    async def test_ended_sessions_are_deleted_after_a_month(
        self, databases: Databases, owner: asyncpg.Connection
    ) -> None:
        """At the next sign-in of the same person, and not of anybody else."""
        ada, grace = [await people.register(databases, new_email(), "Ada", PASSWORD) for _ in range(2)]
        issued = [
            (await sessions.begin_session(databases, person.id, BROWSER, pepper=PEPPER)).id
            for person in (ada, ada, ada, ada, grace)
        ]
        ended = "UPDATE sessions SET revoked_at = now() - $2::interval WHERE id = $1"
        for session_id, ago in ((issued[0], 31), (issued[1], 29), (issued[4], 31)):
            await owner.execute(ended, session_id, timedelta(days=ago))
        expired = "UPDATE sessions SET expires_at = now() - interval '31 days' WHERE id = $1"
        await owner.execute(expired, issued[2])
        last = (await sessions.begin_session(databases, ada.id, BROWSER, pepper=PEPPER)).id
        left = await owner.fetch("SELECT id FROM sessions WHERE person_id = ANY ($1)", [ada.id, grace.id])
        assert {row["id"] for row in left} == {issued[1], issued[3], issued[4], last}

    @pytest.mark.proves("security: sessions")
    @pytest.mark.parametrize("column", ["expires_at", "last_used_at"])
    async def test_a_session_expires(self, databases: Databases, owner: asyncpg.Connection, column: str) -> None:
        person = await people.register(databases, new_email(), "Ada", PASSWORD)
        issued = await sessions.begin_session(databases, person.id, BROWSER, pepper=PEPPER)
        await owner.execute(
            f"UPDATE sessions SET {column} = now() - $2::interval WHERE id = $1",
            issued.id,
            sessions.IDLE_LIFETIME + timedelta(minutes=1),
        )
        assert await sessions.session_of(databases, issued.secret, pepper=PEPPER) is None

    async def test_use_of_a_session_is_recorded_and_extends_it(
        self, databases: Databases, owner: asyncpg.Connection
    ) -> None:
        person = await people.register(databases, new_email(), "Ada", PASSWORD)
        issued = await sessions.begin_session(databases, person.id, BROWSER, pepper=PEPPER)
        await owner.execute("UPDATE sessions SET last_used_at = now() - interval '6 days' WHERE id = $1", issued.id)
        assert await sessions.session_of(databases, issued.secret, pepper=PEPPER) is not None
        age = "SELECT now() - last_used_at < interval '1 hour' FROM sessions WHERE id = $1"
        assert await owner.fetchval(age, issued.id)

    async def test_only_own_sessions_are_listed_and_ended(self, databases: Databases) -> None:
        mine, other = [await people.register(databases, new_email(), "Ada", PASSWORD) for _ in range(2)]
        kept = await sessions.begin_session(databases, mine.id, BROWSER, pepper=PEPPER)
        theirs = await sessions.begin_session(databases, other.id, BROWSER, pepper=PEPPER)
        assert [each.id for each in await sessions.list_sessions(databases, mine.id, within=None)] == [kept.id]
        for session_id in (theirs.id, uuid4()):
            with pytest.raises(NotFound, match="no such session"):
                await sessions.end_session(databases, mine.id, session_id, within=None)
        assert await sessions.session_of(databases, theirs.secret, pepper=PEPPER) is not None

    @pytest.mark.proves("security: sessions")
    async def test_changing_the_password_ends_the_other_sessions(self, databases: Databases) -> None:
        person = await people.register(databases, new_email(), "Ada", PASSWORD)
        here, there = [await sessions.begin_session(databases, person.id, BROWSER, pepper=PEPPER) for _ in range(2)]
        session = await sessions.session_of(databases, here.secret, pepper=PEPPER)
        assert session is not None
        with pytest.raises(InvalidInput) as refused:
            await people.change_password(databases, session, "not it", "orange ladder beside rivers")
        assert refused.value.path == "old_password"
        await people.change_password(databases, session, PASSWORD, "orange ladder beside rivers")
        assert await sessions.session_of(databases, here.secret, pepper=PEPPER) is not None
        assert await sessions.session_of(databases, there.secret, pepper=PEPPER) is None
        await people.sign_in(databases, person.email, "orange ladder beside rivers", BROWSER, pepper=PEPPER)

    @pytest.mark.proves("security: password-changes")
    async def test_no_session_begins_with_a_password_that_is_changed_concurrently(
        self, databases: Databases, owner: asyncpg.Connection
    ) -> None:
        person = await people.register(databases, new_email(), "Ada", PASSWORD)
        begun = people.sign_in(databases, person.email, PASSWORD, BROWSER, pepper=PEPPER)
        with pytest.raises(Unauthenticated, match=sessions.REFUSAL):
            await beside_another_password(owner, person, begun)
        assert await sessions.list_sessions(databases, person.id, within=None) == []

    @pytest.mark.proves("security: password-changes")
    async def test_a_concurrently_changed_password_cannot_be_changed_again(
        self, databases: Databases, owner: asyncpg.Connection
    ) -> None:
        person = await people.register(databases, new_email(), "Ada", PASSWORD)
        session = await new_session(databases, person.id, pepper=PEPPER)
        change = people.change_password(databases, session, PASSWORD, "orange ladder beside rivers")
        with pytest.raises(InvalidInput, match="current password") as refused:
            await beside_another_password(owner, person, change)
        assert refused.value.path == "old_password"
        assert await owner.fetchval("SELECT password_hash FROM people WHERE id = $1", person.id) == "another"

    async def test_an_address_belongs_to_one_person(self, databases: Databases) -> None:
        person = await people.register(databases, new_email(), "Ada", PASSWORD)
        with pytest.raises(Conflict):
            await people.register(databases, person.email.upper(), "Eve", PASSWORD)


class TestInvitations:
    async def test_a_person_joins_by_an_invitation(self, db: Database, databases: Databases, caller: Caller) -> None:
        async with db.transaction(caller) as tx:
            issued = await members.invite(tx, "Ada@Example.com ", Role.MEMBER, pepper=PEPPER)
        assert issued.invitation.email == "ada@example.com"
        person = await joined(databases, caller, Role.READER, pepper=PEPPER, email="ada@example.com")
        assert await roles(db, caller) == {person.email: Role.READER}
        with pytest.raises(NotFound):  # A later invitation to the same address made it void.
            await members.open_invitation(databases, issued.secret, pepper=PEPPER)

    @pytest.mark.proves("security: invitations")
    async def test_an_invitation_is_used_once(self, db: Database, databases: Databases, caller: Caller) -> None:
        email = new_email()
        async with db.transaction(caller) as tx:
            issued = await members.invite(tx, email, Role.MEMBER, pepper=PEPPER)
        invitation = await members.open_invitation(databases, issued.secret, pepper=PEPPER)
        person = await people.register(databases, email, "Ada", PASSWORD)
        results = await asyncio.gather(
            *(members.join(databases, invitation, person) for _ in range(5)), return_exceptions=True
        )
        assert results.count(None) == 1
        assert all(isinstance(result, RecollectError) for result in results if result is not None)

    @pytest.mark.proves("security: invitations")
    @pytest.mark.parametrize("spoilt", ["expires_at = now()", "revoked_at = now()", "accepted_at = now()"])
    async def test_expired_revoked_used_and_unknown_invitations_look_alike(
        self, db: Database, databases: Databases, caller: Caller, owner: asyncpg.Connection, spoilt: str
    ) -> None:
        async with db.transaction(caller) as tx:
            issued = await members.invite(tx, new_email(), Role.MEMBER, pepper=PEPPER)
        await owner.execute(f"UPDATE invitations SET {spoilt} WHERE id = $1", issued.invitation.id)
        said = set()
        for secret in (issued.secret, "made-up", "", "x" * 10_000):
            with pytest.raises(NotFound) as refused:
                await members.open_invitation(databases, secret, pepper=PEPPER)
            said.add(str(refused.value))
        assert len(said) == 1

    @pytest.mark.proves("security: invitations")
    async def test_an_invitation_is_valid_for_its_address_only(
        self, db: Database, databases: Databases, caller: Caller
    ) -> None:
        async with db.transaction(caller) as tx:
            issued = await members.invite(tx, new_email(), Role.OWNER, pepper=PEPPER)
        invitation = await members.open_invitation(databases, issued.secret, pepper=PEPPER)
        other = await people.register(databases, new_email(), "Eve", PASSWORD)
        with pytest.raises(Forbidden):
            await members.join(databases, invitation, other)
        assert await roles(db, caller) == {}

    async def test_an_invitation_does_not_change_the_role_of_a_member(
        self, db: Database, databases: Databases, caller: Caller
    ) -> None:
        person = await joined(databases, caller, Role.READER, pepper=PEPPER)
        async with db.transaction(caller) as tx:
            issued = await members.invite(tx, person.email, Role.OWNER, pepper=PEPPER)
        invitation = await members.open_invitation(databases, issued.secret, pepper=PEPPER)
        with pytest.raises(Conflict):
            await members.join(databases, invitation, person)
        assert await roles(db, caller) == {person.email: Role.READER}
        assert await members.open_invitation(databases, issued.secret, pepper=PEPPER) == invitation

    @pytest.mark.proves("security: invitations-of-former-members")
    @pytest.mark.parametrize(
        ("was", "becomes", "void"),
        [
            (Role.ADMIN, None, {Role.READER, Role.ADMIN}),
            (Role.ADMIN, Role.MEMBER, {Role.READER, Role.ADMIN}),
            (Role.ADMIN, Role.OWNER, set()),
            (Role.OWNER, None, {Role.READER, Role.ADMIN, Role.OWNER}),
            (Role.OWNER, Role.READER, {Role.READER, Role.ADMIN, Role.OWNER}),
            (Role.OWNER, Role.ADMIN, {Role.OWNER}),
        ],
    )
    async def test_invitations_are_void_once_their_author_may_no_longer_make_them(
        self, db: Database, databases: Databases, caller: Caller, was: Role, becomes: Role | None, void: set[Role]
    ) -> None:
        await joined(databases, caller, Role.OWNER, pepper=PEPPER)
        person = await joined(databases, caller, was, pepper=PEPPER)
        offered = [Role.READER, Role.ADMIN, *([Role.OWNER] if was is Role.OWNER else [])]
        async with db.transaction(acting(caller, person, was)) as tx:
            made = {role: await members.invite(tx, new_email(), role, pepper=PEPPER) for role in offered}
        async with db.transaction(caller) as tx:
            others = await members.invite(tx, new_email(), Role.ADMIN, pepper=PEPPER)
            if becomes is None:
                await members.remove_member(tx, person.id)
            else:
                await members.change_role(tx, person.id, becomes)
            told = await audit.list_entries(tx, AuditFilter(action=Action.INVITATION_REVOKED))
        assert [entry.objects for entry in reversed(told)] == [
            (f"invitation:{made[role].invitation.id}",) for role in offered if role in void
        ]
        for role, issued in made.items():
            if role in void:
                with pytest.raises(NotFound):
                    await members.open_invitation(databases, issued.secret, pepper=PEPPER)
            else:
                await members.open_invitation(databases, issued.secret, pepper=PEPPER)
        await members.open_invitation(databases, others.secret, pepper=PEPPER)

    @pytest.mark.proves("security: invitations-of-former-members")
    async def test_invitations_of_a_leaving_member_are_revoked_and_no_others(
        self, db: Database, databases: Databases, caller: Caller
    ) -> None:
        leaving, staying = [await joined(databases, caller, Role.ADMIN, pepper=PEPPER) for _ in range(2)]
        made = {}
        for person in (leaving, staying):
            async with db.transaction(acting(caller, person, Role.ADMIN)) as tx:
                made[person] = await members.invite(tx, new_email(), Role.ADMIN, pepper=PEPPER)
        used = await members.open_invitation(databases, made[leaving].secret, pepper=PEPPER)
        joiner = await people.register(databases, used.email, "Ada", PASSWORD)
        await members.join(databases, used, joiner)
        async with db.transaction(acting(caller, leaving, Role.ADMIN)) as tx:
            open_ = await members.invite(tx, new_email(), Role.READER, pepper=PEPPER)
            await members.remove_member(tx, leaving.id)
        with pytest.raises(NotFound):
            await members.open_invitation(databases, open_.secret, pepper=PEPPER)
        await members.open_invitation(databases, made[staying].secret, pepper=PEPPER)
        assert (await roles(db, caller))[joiner.email] is Role.ADMIN, "who has joined stays"

    async def test_only_an_owner_can_invite_owners(self, db: Database, databases: Databases, caller: Caller) -> None:
        admin = await joined(databases, caller, Role.ADMIN, pepper=PEPPER)
        async with db.transaction(acting(caller, admin, Role.ADMIN)) as tx:
            with pytest.raises(Forbidden) as refused:
                await members.invite(tx, new_email(), Role.OWNER, pepper=PEPPER)
        assert refused.value.code is ErrorCode.ROLE_REQUIRED
        key = Caller(caller.tenant_id, caller.tenant, "key:x", scopes=frozenset(Scope))
        async with db.transaction(key) as tx:
            with pytest.raises(Forbidden):
                await members.invite(tx, new_email(), Role.OWNER, pepper=PEPPER)


class TestRoles:
    async def test_the_last_owner_cannot_leave_or_change_role(
        self, db: Database, databases: Databases, caller: Caller
    ) -> None:
        person = await joined(databases, caller, Role.OWNER, pepper=PEPPER)
        mine = acting(caller, person, Role.OWNER)
        with pytest.raises(Conflict) as refused:
            async with db.transaction(mine) as tx:
                await members.change_role(tx, person.id, Role.ADMIN)
        assert refused.value.code is ErrorCode.LAST_OWNER
        with pytest.raises(Conflict):
            async with db.transaction(mine) as tx:
                await members.remove_member(tx, person.id)
        assert await roles(db, caller) == {person.email: Role.OWNER}

    @pytest.mark.proves("security: owners")
    @pytest.mark.parametrize("remove", [True, False])
    async def test_two_owners_who_demote_each_other_leave_one(
        self, db: Database, databases: Databases, caller: Caller, remove: bool
    ) -> None:
        people_ = [await joined(databases, caller, Role.OWNER, pepper=PEPPER) for _ in range(2)]

        async def unmake(by: Person, other: Person) -> None:
            async with db.transaction(acting(caller, by, Role.OWNER)) as tx:
                if remove:
                    await members.remove_member(tx, other.id)
                else:
                    await members.change_role(tx, other.id, Role.READER)

        pairs = (people_, people_[::-1])
        results = await asyncio.gather(*(unmake(*pair) for pair in pairs), return_exceptions=True)
        assert results.count(None) == 1
        assert [role for role in (await roles(db, caller)).values() if role is Role.OWNER] == [Role.OWNER]

    @pytest.mark.proves("security: owners")
    async def test_an_admin_cannot_change_owners(self, db: Database, databases: Databases, caller: Caller) -> None:
        owner_, admin = [await joined(databases, caller, role, pepper=PEPPER) for role in (Role.OWNER, Role.ADMIN)]
        for role in (Role.ADMIN, Role.READER):
            with pytest.raises(Forbidden):
                async with db.transaction(acting(caller, admin, Role.ADMIN)) as tx:
                    await members.change_role(tx, owner_.id, role)
        with pytest.raises(Forbidden):
            async with db.transaction(acting(caller, admin, Role.ADMIN)) as tx:
                await members.change_role(tx, admin.id, Role.OWNER)
        with pytest.raises(Forbidden):
            async with db.transaction(acting(caller, admin, Role.ADMIN)) as tx:
                await members.remove_member(tx, owner_.id)
        async with db.transaction(acting(caller, admin, Role.ADMIN)) as tx:
            await members.remove_member(tx, admin.id)
        assert await roles(db, caller) == {owner_.email: Role.OWNER}

    async def test_a_person_can_be_a_member_of_several_tenants(
        self, db: Database, databases: Databases, caller: Caller, new_tenant: NewTenant
    ) -> None:
        elsewhere = operator_caller(await new_tenant())
        person = await joined(databases, caller, Role.READER, pepper=PEPPER)
        async with db.transaction(elsewhere) as tx:
            issued = await members.invite(tx, person.email, Role.ADMIN, pepper=PEPPER)
        await members.join(databases, await members.open_invitation(databases, issued.secret, pepper=PEPPER), person)
        found = {each.tenant: each.role for each in await people.list_memberships(databases, person.id, within=None)}
        assert found == {caller.tenant: Role.READER, elsewhere.tenant: Role.ADMIN}
