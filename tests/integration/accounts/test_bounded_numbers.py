"""How many keys, invitations, members, ended grants and entries of the audit log a tenant may have."""

import asyncio
import secrets
from collections.abc import Awaitable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import REPEATABLE, Action
from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import NewKey
from recollect.accounts.identity_providers import service as identity_providers
from recollect.accounts.identity_providers import store as provider_store
from recollect.accounts.identity_providers.model import MAX_PENDING, NewProvider
from recollect.accounts.members import service as members
from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.oauth.grants.model import Approval
from recollect.accounts.passkeys.store import keep_challenge
from recollect.accounts.people import service as people
from recollect.accounts.people import sessions
from recollect.accounts.people.model import Browser, Person
from recollect.caller import Caller, Role, Scope
from recollect.cells.databases import Databases
from recollect.errors import Conflict, ErrorCode, RecollectError, TooManyRequests
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.support.gateway import RunningGateway
from tests.support.people import PASSWORD, joined, new_email

PEPPER = b"bounded numbers"
MOST = 3
ENDING = {
    "revoked",
    "reported",
    "removed",
    "ended",
    "deleted",
    "dropped",
    "disabled",
    "disconnected",
    "unproven",
    "erased",
}
"""What acts do that end something."""


@pytest.fixture
def admin(caller: Caller) -> Caller:
    """An admin of the test's tenant, who is no operator."""
    return replace(
        caller, subject=f"key:{uuid4()}", role=Role.ADMIN, scopes=frozenset(Scope), of_service=False, address=None
    )


@pytest.fixture
async def neighbour(admin: Caller, new_tenant: NewTenant) -> Caller:
    """An admin of another tenant."""
    tenant = await new_tenant()
    return replace(admin, tenant_id=tenant.id, tenant=tenant.slug)


async def outcomes(*acts: Awaitable[Any]) -> list[ErrorCode | None]:
    """The error codes of acts at the same time; None for those that succeeded."""
    done = await asyncio.gather(*acts, return_exceptions=True)
    assert all(isinstance(one, RecollectError) or not isinstance(one, BaseException) for one in done), done
    return [one.code if isinstance(one, RecollectError) else None for one in done]


async def count(owner: asyncpg.Connection, table: str, caller: Caller) -> int:
    number: int = await owner.fetchval(f"SELECT count(*) FROM {table} WHERE tenant_id = $1", caller.tenant_id)
    return number


class TestKeys:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(identity, "MAX_KEYS", MOST)

    async def make(self, db: Database, caller: Caller, **fields: Any) -> UUID:
        async with db.transaction(caller) as tx:
            return (await identity.create_key(tx, NewKey("mine", **fields), pepper=PEPPER)).key.id

    @pytest.mark.proves("security: bounded-numbers")
    async def test_creations_at_once_make_as_many_as_allowed(
        self, db: Database, admin: Caller, neighbour: Caller, owner: asyncpg.Connection
    ) -> None:
        codes = await outcomes(*(self.make(db, admin) for _ in range(MOST + 3)))
        assert sorted(codes, key=str) == [None] * MOST + [ErrorCode.TOO_MANY_KEYS] * 3
        assert await count(owner, "api_keys", admin) == MOST
        await self.make(db, neighbour)

    async def test_the_key_that_has_been_void_longest_goes_for_a_new_one(
        self, db: Database, admin: Caller, owner: asyncpg.Connection
    ) -> None:
        kept, revoked, expired = [await self.make(db, admin) for _ in range(MOST)]
        ended = datetime.now(UTC) - timedelta(hours=1)
        async with db.transaction(admin) as tx:
            await identity.revoke_key(tx, revoked)
        await owner.execute("UPDATE api_keys SET expires_at = $2 WHERE id = $1", expired, ended)
        new = await self.make(db, admin)
        async with db.transaction(admin) as tx:
            rotated = await identity.rotate_key(tx, new, overlap=timedelta(hours=1), pepper=PEPPER)
            left = {key.id for key in await identity.list_keys(tx)}
        assert left == {kept, new, rotated.key.id}
        with pytest.raises(Conflict, match="Revoke one first"):
            await self.make(db, admin)

    async def test_operators_can_always_make_one(self, db: Database, admin: Caller, caller: Caller) -> None:
        for _ in range(MOST):
            await self.make(db, admin)
        await self.make(db, caller)


class TestInvitations:
    async def invite(self, db: Database, caller: Caller, email: str) -> UUID:
        async with db.transaction(caller) as tx:
            return (await members.invite(tx, email, Role.READER, pepper=PEPPER)).invitation.id

    async def test_invitations_at_once_are_as_many_as_allowed(
        self, db: Database, admin: Caller, neighbour: Caller, caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(members, "MAX_OPEN_INVITATIONS", MOST)
        codes = await outcomes(*(self.invite(db, admin, f"{n}@example.com") for n in range(MOST + 3)))
        assert sorted(codes, key=str) == [None] * MOST + [ErrorCode.TOO_MANY_OPEN_INVITATIONS] * 3
        async with db.transaction(admin) as tx:
            first, *_ = await members.list_invitations(tx)
        await self.invite(db, admin, first.email)  # It replaces the first.
        await self.invite(db, neighbour, "new@example.com")
        await self.invite(db, caller, "new@example.com")  # by an operator

    async def test_the_oldest_void_one_goes_for_a_new_one(
        self, db: Database, admin: Caller, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(members, "MAX_INVITATIONS", MOST)
        first, second, third = [await self.invite(db, admin, f"{n}@example.com") for n in range(MOST)]
        with pytest.raises(Conflict, match="wait until some are accepted or expire"):
            await self.invite(db, admin, "new@example.com")
        async with db.transaction(admin) as tx:
            await members.revoke_invitation(tx, second)
            await members.revoke_invitation(tx, first)
        mailed = "UPDATE invitations SET mailed_at = now() WHERE id = $1"
        await owner.execute(mailed, first)  # It counts among the mails of the day.
        new = await self.invite(db, admin, "new@example.com")
        async with db.transaction(admin) as tx:
            assert {one.id for one in await members.list_invitations(tx)} == {first, third, new}


async def test_members_are_as_many_as_allowed(
    db: Database,
    databases: Databases,
    admin: Caller,
    caller: Caller,
    neighbour: Caller,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elsewhere = replace(caller, tenant_id=neighbour.tenant_id)
    others = [await joined(databases, elsewhere, Role.READER, pepper=PEPPER) for _ in range(5)]
    monkeypatch.setattr(members, "MAX_MEMBERS", MOST)

    async def add(person_id: UUID) -> None:
        async with db.transaction(admin) as tx:
            await members.add_member(tx, person_id, Role.READER)

    codes = await outcomes(*(add(person.id) for person in others))
    assert sorted(codes, key=str) == [None] * MOST + [ErrorCode.TOO_MANY_MEMBERS] * 2
    async with db.transaction(admin) as tx:
        inside = await members.list_members(tx)
    await add(inside[0].person_id)  # a member already
    with pytest.raises(Conflict, match="Ask its admins to remove some"):
        await joined(databases, caller, Role.READER, pepper=PEPPER)


async def test_ended_grants_of_a_person_are_forgotten(
    db: Database, databases: Databases, caller: Caller, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grants, "MAX_GRANTS", 2)
    monkeypatch.setattr(grants, "MAX_ENDED_GRANTS", MOST)
    ada = await joined(databases, caller, Role.MEMBER, pepper=PEPPER)
    asked = Approval(ada.id, "client", "Client", ("memory:read",), None, None, "https://r", "https://c/back", "c" * 43)
    giving = replace(caller, subject=f"person:{ada.id}", role=Role.MEMBER, of_service=False)
    for _ in range(10):
        async with db.transaction(giving) as tx:
            await grants.approve(tx, asked, pepper=PEPPER)
    assert await count(owner, "oauth_grants", caller) == 2 + MOST + 1, "valid ones, ended ones, and one that just ended"


async def test_sign_ins_under_way_at_providers_are_bounded(
    db: Database, admin: Caller, neighbour: Caller, owner: asyncpg.Connection
) -> None:
    """Of one tenant; the oldest end."""
    for caller in (admin, neighbour):
        async with db.transaction(caller) as tx:
            new = NewProvider("Login", "https://login.example.com", "recollect", "secret")
            provider = await identity_providers.add_provider(tx, new, pepper=PEPPER)
        await owner.execute(
            """INSERT INTO provider_sign_ins (tenant_id, id, provider_id, hash, browser, place, created_at, expires_at)
            SELECT $1, gen_random_uuid(), $2, sha256(($1::uuid::text || n)::bytea), '', '/',
                now() - n * interval '1 ms', now() + interval '5 minutes'
            FROM generate_series(1, $3) AS n""",
            caller.tenant_id,
            provider.id,
            MAX_PENDING + 10,
        )
    async with db.transaction(admin) as tx:
        await provider_store.forget_sign_ins(tx, max_stored=MAX_PENDING)
    assert await count(owner, "provider_sign_ins", admin) == MAX_PENDING
    assert await count(owner, "provider_sign_ins", neighbour) == MAX_PENDING + 10
    ages = "SELECT max(created_at) - min(created_at) FROM provider_sign_ins WHERE tenant_id = $1"
    assert await owner.fetchval(ages, admin.tenant_id) == (MAX_PENDING - 1) * timedelta(milliseconds=1)


async def test_passkey_challenges_of_a_browser_are_bounded(db: Database, owner: asyncpg.Connection) -> None:
    browser, other = secrets.token_bytes(32), secrets.token_bytes(32)
    async with db.system() as session:
        for of_browser in (other, *[browser] * 8):
            challenge = secrets.token_bytes(32)
            await keep_challenge(session, challenge, of_browser, lifetime=timedelta(minutes=5))
    number = "SELECT count(*) FROM passkey_challenges WHERE browser = $1"
    assert [await owner.fetchval(number, each) for each in (browser, other)] == [5, 1]


async def test_what_a_graph_says_of_itself_is_bounded(gateway: RunningGateway, admin_key: str) -> None:
    """Its metadata, and the types that it allows."""
    large = ({"metadata": {"notes": "x" * 100_000}}, {"kind_whitelist": ["x"] * 201}, {"kind_whitelist": ["x" * 257]})
    fitting = {"metadata": {"notes": "x" * 99_000}, "kind_whitelist": [f"{n}" for n in range(200)]}
    async with gateway.http(admin_key) as http:
        assert (await http.post("/v1/graphs", json={"name": "mine"} | fitting)).status_code == 201
        for fields in large:
            answers = (
                await http.post("/v1/graphs", json={"name": "other"} | fields),
                await http.patch("/v1/graphs/mine", json=fields),
            )
            assert [answer.status_code for answer in answers] == [400, 400]


async def test_a_sign_in_ends_the_sessions_beyond_the_limit(
    databases: Databases, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended ones before valid ones, and nobody else's."""
    monkeypatch.setattr(sessions, "MAX_STORED_SESSIONS", MOST)
    ada, grace = [await people.register(databases, new_email(), "Ada", PASSWORD) for _ in range(2)]
    hers, first, second, third = [await begin(databases, person) for person in (grace, ada, ada, ada)]
    await sessions.end_session(databases, ada.id, third, within=None)
    fourth = await begin(databases, ada)
    assert await sessions_of(owner, ada) == {first, second, fourth}
    fifth = await begin(databases, ada)
    assert await sessions_of(owner, ada) == {second, fourth, fifth}
    assert await sessions_of(owner, grace) == {hers}


async def begin(databases: Databases, person: Person) -> UUID:
    return (await sessions.begin_session(databases, person.id, Browser("Browser", "192.0.2.1"), pepper=PEPPER)).id


async def sessions_of(owner: asyncpg.Connection, person: Person) -> set[UUID]:
    return {row["id"] for row in await owner.fetch("SELECT id FROM sessions WHERE person_id = $1", person.id)}


class TestAuditLog:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(audit, "MAX_ACTS_PER_DAY", MOST)
        monkeypatch.setattr(audit, "RESERVED_ACTS", MOST - 1)

    async def create(self, db: Database, caller: Caller, name: str) -> None:
        async with db.transaction(caller) as tx:
            await graphs.create_graph(tx, NewGraph(name))

    async def test_acts_that_can_be_repeated_are_bounded_in_a_day(
        self, db: Database, admin: Caller, neighbour: Caller, owner: asyncpg.Connection
    ) -> None:
        for number in range(MOST - 1):  # The creation of the tenant is an entry, too.
            await self.create(db, admin, f"graph-{number}")
        with pytest.raises(TooManyRequests, match="the most that it can make") as refused:
            await self.create(db, admin, "one-more")
        assert refused.value.code is ErrorCode.TOO_MANY_ACTS
        await self.create(db, neighbour, "graph")
        at = "ALTER TABLE audit_log {} TRIGGER append_only"
        await owner.execute(at.format("DISABLE"))
        await owner.execute("UPDATE audit_log SET at = at - interval '25 hours' WHERE tenant_id = $1", admin.tenant_id)
        await owner.execute(at.format("ENABLE"))
        await self.create(db, admin, "the-next-day")

    async def test_an_agent_that_repeats_an_act_does_not_lock_out_its_admin(self, db: Database, admin: Caller) -> None:
        agent = replace(admin, subject="key:of-an-agent")
        for number in range(MOST - 1):
            await self.create(db, agent, f"graph-{number}")
        with pytest.raises(TooManyRequests):
            await self.create(db, agent, "one-more")
        for number in range(MOST - 1):
            await self.create(db, admin, f"of-the-admin-{number}")
        with pytest.raises(TooManyRequests):
            await self.create(db, admin, "one-more")

    async def test_what_ends_rights_is_never_refused(
        self, db: Database, admin: Caller, owner: asyncpg.Connection
    ) -> None:
        async with db.transaction(admin) as tx:
            key = (await identity.create_key(tx, NewKey("mine"), pepper=PEPPER)).key
            for _ in range(MOST):
                await audit.record(tx, Action.KEY_REVOKED)
        async with db.transaction(admin) as tx:
            await identity.revoke_key(tx, key.id)
        assert await count(owner, "audit_log", admin) == MOST + 3

    def test_no_act_that_ends_something_can_be_refused(self) -> None:
        ending = {action for action in Action if action.rpartition(".")[2] in ENDING}
        assert len(ending) > 10
        assert not ending & REPEATABLE
