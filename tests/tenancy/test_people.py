"""Rows of a person are isolated by person, and members by tenant, for any statement."""

from dataclasses import dataclass

import asyncpg
import pytest

from recollect.accounts.identity.model import hash_secret, operator_caller
from recollect.accounts.members import service as members
from recollect.accounts.passkeys import store as passkeys
from recollect.accounts.passkeys.model import MAX_PASSKEYS
from recollect.accounts.people import resets, sessions
from recollect.accounts.people import service as people
from recollect.accounts.people.model import IssuedSession, Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.errors import NotFound
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from tests.conftest import NewTenant
from tests.support.people import BROWSER, joined, new_email

PEPPER = b"pepper"


@dataclass(frozen=True)
class SignedIn:
    """A person, their tenant, and a session."""

    person: Person
    caller: Caller
    session: IssuedSession


@pytest.fixture
async def both(db: Database, databases: Databases, new_tenant: NewTenant) -> tuple[SignedIn, SignedIn]:
    """Two people of different tenants."""

    async def one() -> SignedIn:
        caller = operator_caller(await new_tenant())
        person = await joined(databases, caller, Role.OWNER, pepper=PEPPER)
        await resets.begin_reset(databases, person.id, pepper=PEPPER)
        async with db.personal(person.id) as session:
            await passkeys.insert_passkey(
                session,
                person.id,
                credential_id=person.id.bytes,
                public_key=b"x",
                sign_count=0,
                name="Laptop",
                most=MAX_PASSKEYS,
            )
        return SignedIn(person, caller, await sessions.begin_session(databases, person.id, BROWSER, pepper=PEPPER))

    return await one(), await one()


@pytest.mark.proves("security: rows-of-people")
async def test_a_person_sees_only_their_own_rows(
    db: Database, databases: Databases, both: tuple[SignedIn, SignedIn]
) -> None:
    mine, other = both
    async with db.personal(mine.person.id) as session:
        assert [row["id"] for row in await session.fetch(Query.compile("SELECT id FROM people"))] == [mine.person.id]
        owners = await session.fetch(Query.compile("SELECT DISTINCT person_id FROM sessions"))
        assert [row["person_id"] for row in owners] == [mine.person.id]
        tenants = await session.fetch(Query.compile("SELECT tenant_id FROM members"))
        assert [row["tenant_id"] for row in tenants] == [mine.caller.tenant_id]
        assert await session.fetchval(Query.compile("SELECT count(*) FROM invitations")) == 0
        assert await session.fetchval(Query.compile("SELECT count(*) FROM graphs")) == 0
    assert [each.tenant for each in await people.list_memberships(databases, other.person.id, within=None)] == [
        other.caller.tenant
    ]


@pytest.mark.proves("security: rows-of-people")
async def test_a_tenant_sees_only_its_own_members_and_no_sessions(
    db: Database, both: tuple[SignedIn, SignedIn]
) -> None:
    mine, other = both
    async with db.transaction(mine.caller) as tx:
        assert [row["id"] for row in await tx.fetch(Query.compile("SELECT id FROM people"))] == [mine.person.id]
        assert await tx.fetchval(Query.compile("SELECT count(*) FROM sessions")) == 0
        for role in Role:
            with pytest.raises(NotFound):
                await members.change_role(tx, other.person.id, role)
        with pytest.raises(NotFound):
            await members.remove_member(tx, other.person.id)
        assert await tx.fetch(Query.compile("SELECT * FROM list_memberships()")) == []
        assert await tx.fetch(Query.compile("SELECT * FROM list_own_grants(100)")) == []
        assert await tx.fetch(Query.compile("SELECT * FROM list_own_identities(100)")) == []


async def test_an_invitation_of_another_tenant_is_not_found(
    db: Database, databases: Databases, both: tuple[SignedIn, SignedIn]
) -> None:
    mine, other = both
    async with db.transaction(other.caller) as tx:
        issued = await members.invite(tx, new_email(), Role.MEMBER, pepper=PEPPER)
    async with db.transaction(mine.caller) as tx:
        assert issued.invitation.id not in [each.id for each in await members.list_invitations(tx)]
        with pytest.raises(NotFound):
            await members.revoke_invitation(tx, issued.invitation.id)
    assert (await members.open_invitation(databases, issued.secret, pepper=PEPPER)).tenant_id == other.caller.tenant_id


ATTACKS = {
    "read another's row": "SELECT id, email FROM people WHERE id = $1",
    "read another's sessions": "SELECT id FROM sessions WHERE person_id = $1",
    "read another's memberships": "SELECT role FROM members WHERE person_id = $1",
    "read another's links for another password": "SELECT id FROM password_resets WHERE person_id = $1",
    "read another's passkeys": "SELECT id FROM passkeys WHERE person_id = $1",
    "rename another's passkeys": "UPDATE passkeys SET name = 'x' WHERE person_id = $1 RETURNING id",
    "change another's name": "UPDATE people SET name = 'x' WHERE id = $1 RETURNING id",
    "change another's password": "UPDATE people SET password_hash = 'x' WHERE id = $1 RETURNING id",
    "end another's sessions": "UPDATE sessions SET revoked_at = now() WHERE person_id = $1 RETURNING id",
    "have nobody delete another's account": "SELECT id FROM people WHERE id = $1 FOR KEY SHARE",
    "lock another's account": "SELECT id FROM people WHERE id = $1 FOR UPDATE",
    "forget another's sessions": "DELETE FROM sessions WHERE person_id = $1 RETURNING id",
}
REFUSED = {
    "read a password": "SELECT password_hash FROM people WHERE id = $1",
    "read a hash of a link for another password": "SELECT hash FROM password_resets WHERE person_id = $1",
    "make a link of another": """INSERT INTO password_resets (id, person_id, hash, expires_at)
        VALUES (gen_random_uuid(), $1, 'x', now() + interval '1 hour')""",
    "read a passkey's key": "SELECT public_key FROM passkeys WHERE person_id = $1",
    "put another key in its place": "UPDATE passkeys SET public_key = 'x' WHERE person_id <> $1",
    "give another a passkey": """INSERT INTO passkeys (id, person_id, credential_id, public_key, sign_count, name)
        VALUES (gen_random_uuid(), $1, 'x', 'x', 0, 'x')""",
    "read challenges": "SELECT challenge FROM passkey_challenges WHERE person_id = $1",
    "read a session's hash": "SELECT hash FROM sessions WHERE person_id = $1",
    "become a member": "INSERT INTO members SELECT tenant_id, $1, 'owner' FROM members LIMIT 1",
    "hand a session over": "UPDATE sessions SET person_id = $1",
    "revive a session": "UPDATE sessions SET expires_at = now() + interval '1 year' WHERE person_id <> $1",
    "delete a person": "DELETE FROM people WHERE id = $1",
    "delete an invitation": "DELETE FROM invitations WHERE tenant_id <> $1",
    "make a session of another": """INSERT INTO sessions (id, person_id, hash, expires_at, user_agent, address)
        VALUES (gen_random_uuid(), $1, 'x', now() + interval '1 day', '', '')""",
}


THEIRS = """
    SELECT to_jsonb(x) FROM people x WHERE id = $1
    UNION ALL SELECT to_jsonb(x) FROM sessions x WHERE person_id = $1
    UNION ALL SELECT to_jsonb(x) FROM password_resets x WHERE person_id = $1
    UNION ALL SELECT to_jsonb(x) FROM passkeys x WHERE person_id = $1
    UNION ALL SELECT to_jsonb(x) FROM invitations x WHERE email = $2"""


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_signed_in_person_reaches_no_rows_of_others(
    attacker: asyncpg.Connection, both: tuple[SignedIn, SignedIn], attack: str
) -> None:
    mine, other = both
    await attacker.execute(f"SET recollect.person_id = '{mine.person.id}'")
    assert await attacker.fetch(ATTACKS[attack], other.person.id) == []
    assert len(await attacker.fetch(ATTACKS[attack], mine.person.id)) == 1, "one's own are reached by the same words"


@pytest.mark.proves("security: rows-of-people")
@pytest.mark.parametrize("attack", REFUSED)
async def test_forbidden_statements_are_refused(
    attacker: asyncpg.Connection, both: tuple[SignedIn, SignedIn], attack: str
) -> None:
    mine, other = both
    await attacker.execute(f"SET recollect.person_id = '{mine.person.id}'")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await attacker.execute(REFUSED[attack], other.person.id)


@pytest.mark.proves("security: account-deletion")
async def test_delete_account_deletes_only_ones_own_account(
    attacker: asyncpg.Connection, db: Database, both: tuple[SignedIn, SignedIn], owner: asyncpg.Connection
) -> None:
    """It has no parameters, and deletes nothing without a person, for a member, or of another person."""
    mine, other = both
    async with db.transaction(other.caller) as tx:
        await members.invite(tx, other.person.email, Role.READER, pepper=PEPPER)
    before = await owner.fetch(THEIRS, other.person.id, other.person.email)
    await attacker.execute(f"SET recollect.tenant_id = '{other.caller.tenant_id}'")
    assert await attacker.fetchval("SELECT recollect.delete_account()") == "nobody"
    await attacker.execute(f"SET recollect.person_id = '{mine.person.id}'")
    assert await attacker.fetchval("SELECT recollect.delete_account()") == "member"
    await owner.execute("DELETE FROM members WHERE person_id = $1", mine.person.id)
    assert await attacker.fetchval("SELECT recollect.delete_account()") == "gone"
    assert await owner.fetch(THEIRS, mine.person.id, mine.person.email) == []
    assert await owner.fetch(THEIRS, other.person.id, other.person.email) == before
    assert len(before) == 6, "an account, a session, a link, a passkey, and two invitations"


@pytest.mark.parametrize("hostile", [None, b"", b"\x00" * 32, b"%", b"' OR true --"], ids=repr)
async def test_hostile_hashes_find_no_secret(
    attacker: asyncpg.Connection, both: tuple[SignedIn, SignedIn], hostile: bytes | None
) -> None:
    for function in ("find_session", "find_invitation", "find_password_reset", "find_passkey"):
        assert await attacker.fetch(f"SELECT * FROM recollect.{function}($1)", hostile) == []
    (found,) = await attacker.fetch(
        "SELECT * FROM recollect.find_session($1)", hash_secret(both[0].session.secret, PEPPER)
    )
    assert found["person_id"] == both[0].person.id


@pytest.mark.parametrize("hostile", [None, "", "%", "%@example.com", "' OR true --"])
async def test_hostile_addresses_find_no_person(
    attacker: asyncpg.Connection, both: tuple[SignedIn, SignedIn], hostile: str | None
) -> None:
    assert await attacker.fetch("SELECT * FROM recollect.find_person($1)", hostile) == []


async def test_shadowing_objects_change_no_answer(
    attacker: asyncpg.Connection, both: tuple[SignedIn, SignedIn], temporary_objects: None
) -> None:
    mine, _ = both
    await attacker.execute(
        """CREATE TEMP TABLE people (id uuid, email text, name text, password_hash text);
        CREATE TEMP TABLE members (tenant_id uuid, person_id uuid, role text);
        INSERT INTO pg_temp.people VALUES (gen_random_uuid(), 'forged@example.com', 'x', 'x');
        INSERT INTO pg_temp.members SELECT gen_random_uuid(), id, 'owner' FROM pg_temp.people;
        SET search_path = pg_temp, recollect, public"""
    )
    assert await attacker.fetch("SELECT * FROM recollect.find_person('forged@example.com')") == []
    await attacker.execute(f"SET recollect.person_id = '{mine.person.id}'")
    (found,) = await attacker.fetch("SELECT * FROM recollect.list_memberships()")
    assert found["tenant_id"] == mine.caller.tenant_id
