"""The clock of a process may differ from that of its database: the database's says what has ended."""

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import NewKey, generate_secret, hash_secret, operator_caller
from recollect.accounts.members import service as members
from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.oauth.signing import service as signing
from recollect.accounts.oauth.signing.model import Vault
from recollect.accounts.operator_keys import service as operator_keys
from recollect.accounts.people import resets, sessions
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.errors import Conflict, CredentialEnded, NotFound, TokenExpired
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect_gateway.callers.remembered_callers import RememberedCallers
from tests.support.clocks import clock_ahead
from tests.support.oauth import granted
from tests.support.people import BROWSER, joined

PEPPER = b"pepper"
RESOURCE = "https://memory.example.com/mcp"
YEARS = timedelta(days=1000)


@pytest.fixture(params=[YEARS, -YEARS], ids=["ahead", "behind"])
def wrong_clock(request: pytest.FixtureRequest) -> Iterator[None]:
    with clock_ahead(request.param):
        yield


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    return operator_caller(tenant)


async def end(owner: asyncpg.Connection, table: str, row_id: object) -> None:
    """Let something have ended a second ago."""
    await owner.execute(f"UPDATE {table} SET expires_at = clock_timestamp() - interval '1 s' WHERE id = $1", row_id)


@pytest.mark.usefixtures("wrong_clock")
async def test_keys_end_by_the_clock_of_the_database(
    db: Database, databases: Databases, caller: Caller, owner: asyncpg.Connection
) -> None:
    end_of_key = await owner.fetchval("SELECT clock_timestamp() + interval '2000 days'")
    async with db.transaction(caller) as tx:
        issued = await identity.create_key(tx, NewKey("a key", "agent", expires_at=end_of_key), pepper=PEPPER)
        await identity.rotate_key(tx, issued.key.id, overlap=timedelta(hours=1), pepper=PEPPER)
        ends = (await identity.get_key(tx, issued.key.id)).expires_at
    assert ends is not None
    left = await owner.fetchval("SELECT $1::timestamptz - clock_timestamp()", ends)
    assert timedelta(minutes=59) < left <= timedelta(hours=1)
    used = list[datetime]()
    await identity.authenticate(databases, issued.secret, pepper=PEPPER, note_use=lambda _, __, at: used.append(at))
    assert await owner.fetchval("SELECT clock_timestamp() - $1::timestamptz < interval '1 h'", used[0])
    await end(owner, "api_keys", issued.key.id)
    with pytest.raises(CredentialEnded):
        await identity.authenticate(databases, issued.secret, pepper=PEPPER)
    with pytest.raises(Conflict):
        async with db.transaction(caller) as tx:
            await identity.rotate_key(tx, issued.key.id, overlap=timedelta(0), pepper=PEPPER)


async def test_a_revoked_key_stays_void_when_the_clock_of_the_database_is_set_back(
    db: Database, databases: Databases, caller: Caller, owner: asyncpg.Connection
) -> None:
    """A standby whose clock is behind may take over: the time of the revocation is then still to come."""
    async with db.transaction(caller) as tx:
        issued = await identity.create_key(tx, NewKey("a key", "agent"), pepper=PEPPER)
    revoke = "UPDATE api_keys SET revoked_at = clock_timestamp() + interval '1 h' WHERE id = $1"
    await owner.execute(revoke, issued.key.id)
    with pytest.raises(CredentialEnded):
        await identity.authenticate(databases, issued.secret, pepper=PEPPER)
    with pytest.raises(Conflict):
        async with db.transaction(caller) as tx:
            await identity.rotate_key(tx, issued.key.id, overlap=timedelta(hours=1), pepper=PEPPER)


@pytest.mark.usefixtures("wrong_clock")
async def test_access_tokens_end_by_the_clock_of_the_database(
    databases: Databases, caller: Caller, owner: asyncpg.Connection
) -> None:
    person = await joined(databases, caller, Role.MEMBER, pepper=PEPPER)
    grant_id, secret = await granted(owner, caller.tenant_id, person.id), generate_secret("access")
    token_id = await owner.fetchval(
        """INSERT INTO oauth_access_tokens (tenant_id, id, grant_id, hash, scopes, expires_at)
        VALUES ($1, gen_random_uuid(), $2, $3, '{memory:read}', clock_timestamp() + interval '1 h') RETURNING id""",
        caller.tenant_id,
        grant_id,
        hash_secret(secret, PEPPER),
    )
    remembered, presented = RememberedCallers(60.0, lambda: True), (b"hash", None, None)
    looked_up_at = remembered.now()
    remembered.remember(
        presented, await grants.authenticate(databases, secret, resource=RESOURCE, pepper=PEPPER), looked_up_at
    )
    assert remembered.find(presented) is not None
    await end(owner, "oauth_access_tokens", token_id)
    with pytest.raises(TokenExpired):
        await grants.authenticate(databases, secret, resource=RESOURCE, pepper=PEPPER)


@pytest.mark.usefixtures("wrong_clock")
async def test_sessions_links_and_invitations_end_by_the_clock_of_the_database(
    db: Database, databases: Databases, caller: Caller, owner: asyncpg.Connection
) -> None:
    person = await joined(databases, caller, Role.MEMBER, pepper=PEPPER)  # Which opens an invitation.
    begun = await sessions.begin_session(databases, person.id, BROWSER, pepper=PEPPER)
    session = await sessions.session_of(databases, begun.secret, pepper=PEPPER)
    assert session is not None
    assert not session.is_older_than(timedelta(minutes=10))
    assert await owner.fetchval("SELECT $1::timestamptz - clock_timestamp() < interval '31 d'", begun.expires_at)
    await end(owner, "sessions", begun.id)
    assert await sessions.session_of(databases, begun.secret, pepper=PEPPER) is None

    link = await resets.begin_reset(databases, person.id, pepper=PEPPER)
    opened = await resets.open_reset(databases, link, pepper=PEPPER)
    await end(owner, "password_resets", opened.id)
    with pytest.raises(NotFound):
        await resets.open_reset(databases, link, pepper=PEPPER)

    async with db.transaction(caller) as tx:
        invited = await members.invite(tx, "late@example.com", Role.READER, pepper=PEPPER)
    await members.open_invitation(databases, invited.secret, pepper=PEPPER)
    await end(owner, "invitations", invited.invitation.id)
    with pytest.raises(NotFound):
        await members.open_invitation(databases, invited.secret, pepper=PEPPER)


@pytest.mark.usefixtures("wrong_clock")
async def test_operators_keys_end_by_the_clock_of_the_database(
    db: Database, operator: Operator, owner: asyncpg.Connection
) -> None:
    key, secret = await operator_keys.create_key(operator, "an operator's", lifetime=timedelta(hours=1), pepper=PEPPER)
    assert await operator_keys.authenticate(operator, secret, pepper=PEPPER) == f"operator_key:{key.id}"
    await end(owner, "operator_keys", key.id)
    with pytest.raises(CredentialEnded):
        await operator_keys.authenticate(operator, secret, pepper=PEPPER)


@pytest.mark.usefixtures("wrong_clock")
async def test_a_signed_token_begins_by_the_clock_of_the_database(db: Database, owner: asyncpg.Connection) -> None:
    signed = await signing.sign(db, Vault.of(b"a secret of clocks"), {"sub": "ada"})
    header, claims = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in signed.split(".")[:2])
    await owner.execute("DELETE FROM signing_keys WHERE id = $1", header["kid"])
    age = await owner.fetchval("SELECT extract(epoch FROM clock_timestamp()) - $1::integer", claims["iat"])
    assert -1 <= age < 3600
    assert claims["exp"] - claims["iat"] == 900


def test_a_remembered_caller_ends_when_its_time_by_the_database_is_over() -> None:
    """Whatever clock this process has, it measures how much of that time has passed."""
    now, read_at = [100.0], datetime(2020, 1, 1, tzinfo=UTC)
    callers, presented = RememberedCallers(60.0, lambda: True, lambda: now[0]), (b"hash", None, None)
    caller = Caller(
        UUID(int=1),
        "acme",
        "key:1",
        frozenset(),
        expires_at=read_at + timedelta(seconds=3),
        read_at=read_at,
    )
    callers.remember(presented, caller, now[0])
    now[0] += 2
    assert callers.find(presented) is caller
    now[0] += 1
    assert callers.find(presented) is None
