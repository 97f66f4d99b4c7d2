"""Grants, codes and tokens are isolated by tenant; clients and signing keys are reached only by functions."""

import json
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import hash_secret, operator_caller
from recollect.accounts.oauth.clients import service as clients
from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.oauth.grants.model import Approval, IssuedTokens, TokenTimes, authorization_server
from recollect.accounts.oauth.signing import service as signing
from recollect.accounts.oauth.signing.model import Vault
from recollect.accounts.people.model import Membership, Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.errors import ErrorCode, Forbidden, NotFound, Unauthenticated
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.people import joined

PEPPER = b"pepper"
CLIENT = "https://client.example.com/oauth.json"
RESOURCE = "https://memory.example.com/mcp"
TIMES = TokenTimes.of(Settings())
BARRED = asyncpg.InsufficientPrivilegeError


@dataclass(frozen=True)
class Granted:
    """A tenant with a grant for a client: its tokens, and an unused code."""

    caller: Caller
    person: Person
    tokens: IssuedTokens
    code: str

    @property
    def refresh(self) -> str:
        assert self.tokens.refresh is not None
        return self.tokens.refresh


@pytest.fixture
async def both(db: Database, databases: Databases, new_tenant: NewTenant) -> tuple[Granted, Granted]:
    """Two tenants, in each of which a person of its own authorized the same client."""

    async def one() -> Granted:
        caller = operator_caller(await new_tenant())
        person = await joined(databases, caller, Role.OWNER, pepper=PEPPER)
        membership = Membership(
            caller.tenant_id, caller.tenant, "Tenant", "active", Role.OWNER, "unlimited", None, None, None
        )
        asked = Approval(
            person.id, CLIENT, "A client", ("memory:read",), None, None, RESOURCE, "http://127.0.0.1/cb", "challenge"
        )
        async with db.transaction(grants.approving(membership, person.id)) as tx:
            codes = [await grants.approve(tx, asked, pepper=PEPPER) for _ in range(2)]
        async with db.transaction(authorization_server(caller.tenant_id)) as tx:
            presented = await grants.present_code(tx, codes[0], CLIENT, pepper=PEPPER)
            assert presented is not None
            tokens = await grants.redeem_code(tx, presented, refreshes=True, times=TIMES, pepper=PEPPER)
        return Granted(caller, person, tokens, codes[1])

    return await one(), await one()


@pytest.fixture
async def attacker(attacker: asyncpg.Connection, temporary_objects: None) -> asyncpg.Connection:
    await attacker.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
    return attacker


@pytest.mark.proves("security: foreign-tokens")
async def test_codes_and_tokens_of_another_tenant_are_unknown(
    db: Database, databases: Databases, both: tuple[Granted, Granted]
) -> None:
    """In a transaction of B, the secrets of A count as unknown. They still work afterwards for A."""
    mine, other = both
    async with db.transaction(authorization_server(mine.caller.tenant_id)) as tx:
        assert await grants.present_code(tx, other.code, CLIENT, pepper=PEPPER) is None
        assert await grants.present_refresh(tx, other.refresh, CLIENT, times=TIMES, pepper=PEPPER) is None
        for token in (other.tokens.access, other.refresh):
            assert await grants.introspect(tx, token, CLIENT, pepper=PEPPER) is None
    assert await grants.find_tenant(databases, other.code, pepper=PEPPER) == other.caller.tenant_id
    holder = await grants.authenticate(databases, other.tokens.access, resource=RESOURCE, pepper=PEPPER)
    assert holder.tenant_id == other.caller.tenant_id
    async with db.transaction(authorization_server(other.caller.tenant_id)) as tx:
        assert await grants.present_code(tx, other.code, CLIENT, pepper=PEPPER) is not None
        assert await grants.present_refresh(tx, other.refresh, CLIENT, times=TIMES, pepper=PEPPER) is not None


async def test_a_grant_of_another_tenant_is_neither_listed_nor_revoked(
    db: Database, databases: Databases, both: tuple[Granted, Granted]
) -> None:
    mine, other = both
    async with db.transaction(other.caller, read_only=True) as tx:
        theirs = await grants.list_grants(tx)
    assert {grant.person_id for grant in theirs} == {other.person.id}
    told = set()
    for grant_id in (theirs[0].id, uuid4()):
        with pytest.raises(NotFound) as refused:
            async with db.transaction(mine.caller) as tx:
                await grants.revoke_grant(tx, grant_id)
        told.add((str(refused.value), refused.value.code))
    assert told == {("There is no such grant.", ErrorCode.GRANT_NOT_FOUND)}
    async with db.transaction(mine.caller, read_only=True) as tx:
        assert {grant.person_id for grant in await grants.list_grants(tx)} == {mine.person.id}
        assert await grants.list_grants(tx, person_id=other.person.id) == []
    assert await grants.authenticate(databases, other.tokens.access, resource=RESOURCE, pepper=PEPPER)


async def test_work_goes_on_only_for_a_valid_grant_of_the_tenant(
    db: Database, databases: Databases, both: tuple[Granted, Granted]
) -> None:
    mine, other = both
    subjects = [
        (await grants.authenticate(databases, each.tokens.access, resource=RESOURCE, pepper=PEPPER)).subject
        for each in both
    ]
    async with db.transaction(mine.caller) as tx:
        await identity.require_subject_active(tx, subjects[0])
        with pytest.raises(Unauthenticated):
            await identity.require_subject_active(tx, subjects[1])
        await grants.revoke_grant(tx, UUID(subjects[0].partition(":")[2]))
        with pytest.raises(Unauthenticated):
            await identity.require_subject_active(tx, subjects[0])
    async with db.transaction(other.caller, read_only=True) as tx:
        await identity.require_subject_active(tx, subjects[1])


async def test_a_person_of_another_tenant_cannot_give_a_grant(db: Database, both: tuple[Granted, Granted]) -> None:
    mine, other = both
    asked = Approval(
        other.person.id, CLIENT, "A client", ("memory:read",), None, None, RESOURCE, "http://127.0.0.1/cb", "challenge"
    )
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        async with db.transaction(mine.caller) as tx:
            await grants.approve(tx, asked, pepper=PEPPER)


async def test_a_grant_of_foreign_graphs_reaches_nothing(
    db: Database, databases: Databases, both: tuple[Granted, Granted]
) -> None:
    mine, other = both
    async with db.transaction(other.caller, read_only=True) as tx:
        foreign = (await graphs.get_graph(tx, "default")).id
    holder = await grants.authenticate(databases, mine.tokens.access, resource=RESOURCE, pepper=PEPPER)
    async with db.transaction(replace(holder, graphs=frozenset([foreign])), read_only=True) as tx:
        with pytest.raises(Forbidden):
            await graphs.get_graph(tx, "default")


HOSTILE = [None, b"", b"\x00" * 32, b"%", b"' OR true --", b"\xff" * 1_000_000]


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda value: repr(value)[:12])
async def test_hostile_hashes_find_no_token(
    attacker: asyncpg.Connection, both: tuple[Granted, Granted], hostile: bytes | None
) -> None:
    for function in ("find_oauth_access_token", "find_oauth_tenant"):
        assert await attacker.fetch(f"SELECT * FROM recollect.{function}($1)", hostile) == []


async def test_a_token_is_found_only_by_its_whole_hash(
    attacker: asyncpg.Connection, both: tuple[Granted, Granted]
) -> None:
    mine, other = both
    await attacker.execute(f"SET recollect.tenant_id = '{mine.caller.tenant_id}'")
    for secret in (other.code, other.tokens.access, other.refresh):
        whole = hash_secret(secret, PEPPER)
        (found,) = await attacker.fetch("SELECT * FROM recollect.find_oauth_tenant($1)", whole)
        assert dict(found) == {"tenant_id": other.caller.tenant_id}, "and nothing of what is granted"
        for part in (whole[:-1], whole + b"\x00", whole[::-1], secret.encode()):
            assert await attacker.fetch("SELECT * FROM recollect.find_oauth_tenant($1)", part) == []
    token = hash_secret(other.tokens.access, PEPPER)
    (record,) = await attacker.fetch("SELECT * FROM recollect.find_oauth_access_token($1)", token)
    assert record["tenant_id"] == other.caller.tenant_id
    for secret in (other.code, other.refresh):
        assert await attacker.fetch("SELECT * FROM find_oauth_access_token($1)", hash_secret(secret, PEPPER)) == []
    assert (
        await attacker.fetchval("SELECT count(*) FROM oauth_grants WHERE tenant_id <> $1", mine.caller.tenant_id) == 0
    )


SHADOWS = """
    CREATE TEMP TABLE oauth_access_tokens (tenant_id uuid, grant_id uuid, hash bytea, scopes text[],
        expires_at timestamptz, revoked_at timestamptz);
    CREATE TEMP TABLE oauth_grants (tenant_id uuid, id uuid, person_id uuid, graph_ids uuid[], toolsets text[],
        resource text, revoked_at timestamptz);
    CREATE TEMP TABLE oauth_codes (tenant_id uuid, hash bytea);
    CREATE TEMP TABLE oauth_refresh_tokens (tenant_id uuid, hash bytea);
    CREATE TEMP TABLE oauth_clients (id text, kind text, name text, uri text, redirect_uris text[], refreshes boolean,
        created_at timestamptz, fresh_until timestamptz, last_used_at timestamptz);
    CREATE TEMP TABLE signing_keys (id text, fingerprint bytea, public_key jsonb, private_key bytea,
        created_at timestamptz);
    INSERT INTO pg_temp.oauth_codes VALUES (gen_random_uuid(), 'forged');
    INSERT INTO pg_temp.oauth_clients VALUES ('https://forged.example/x', 'document', 'x', NULL, '{https://e.example}',
        true, now(), NULL, now());
    INSERT INTO pg_temp.signing_keys VALUES ('forged', 'x', '{}', 'x', now());
    CREATE FUNCTION pg_temp.always(bytea, bytea) RETURNS boolean RETURN true;
    CREATE OPERATOR pg_temp.= (FUNCTION = pg_temp.always, LEFTARG = bytea, RIGHTARG = bytea);
    CREATE FUNCTION pg_temp.starts_with(text, text) RETURNS boolean RETURN true;
    SET search_path = pg_temp, recollect, public, pg_catalog;
"""


async def test_shadowing_objects_change_no_answer(
    attacker: asyncpg.Connection, db: Database, both: tuple[Granted, Granted]
) -> None:
    token = hash_secret(both[0].tokens.access, PEPPER)
    await signing.sign(db, Vault.of(PEPPER), {})
    asked = "SELECT * FROM recollect.find_oauth_access_token($1)"
    keys = "SELECT id FROM recollect.list_signing_keys()"
    before = await attacker.fetch(asked, token), await attacker.fetch(keys)
    await attacker.execute(SHADOWS)
    assert await attacker.fetchval("SELECT count(*) FROM oauth_codes WHERE hash = 'forged'") == 1, "the shadows stand"
    assert (await attacker.fetch(asked, token), await attacker.fetch(keys)) == before
    assert await attacker.fetch("SELECT * FROM recollect.find_oauth_tenant('forged')") == []
    assert await attacker.fetch("SELECT * FROM recollect.find_oauth_client('https://forged.example/x')") == []
    await attacker.execute(
        "SELECT * FROM recollect.keep_oauth_client('rcl_client_x', 'x', NULL, '{http://localhost/}', true, NULL)"
    )
    assert await attacker.fetchval("SELECT count(*) FROM pg_temp.oauth_clients") == 1, "it writes where it should"


@pytest.mark.parametrize("table", ["oauth_clients", "signing_keys"])
async def test_global_oauth_tables_are_reached_only_by_functions(
    attacker: asyncpg.Connection, both: tuple[Granted, Granted], table: str
) -> None:
    await attacker.execute(f"SET recollect.tenant_id = '{both[0].caller.tenant_id}'")
    await attacker.execute(f"SET recollect.person_id = '{both[0].person.id}'")
    for statement in (
        f"SELECT * FROM {table}",
        f"DELETE FROM {table}",
        f"INSERT INTO {table} SELECT (x).* FROM {table} x",
    ):
        with pytest.raises(BARRED):
            await attacker.execute(statement)


@pytest.mark.proves("security: client-registration")
async def test_a_registered_client_cannot_be_overwritten(attacker: asyncpg.Connection, db: Database) -> None:
    """Nor can an invalid client be stored: the table has constraints, too."""
    keep = "SELECT * FROM keep_oauth_client($1, $2, $3, $4, true, NULL)"
    client = await clients.register(db, name="Ada's", uri=None, uris=["http://localhost/cb"], refreshes=True)
    assert await attacker.fetch(keep, client.id, "Evil", None, ["https://evil.example/cb"]) == []
    assert await clients.find_client(db, client.id) == client
    for hostile in (
        ("", "x", None, ["https://x"]),
        ("x" * 2001, "x", None, ["https://x"]),
        ("x", "", None, ["https://x"]),
        ("x", "x" * 201, None, ["https://x"]),
        ("x", "x", "x" * 2001, ["https://x"]),
        ("x", "x", None, []),
        ("x", "x", None, ["https://x"] * 11),
    ):
        with pytest.raises(asyncpg.CheckViolationError):
            await attacker.fetch(keep, *hostile)
    with pytest.raises(asyncpg.NotNullViolationError):
        await attacker.fetch(keep, None, "x", None, ["https://x"])


@pytest.mark.proves("security: client-registration")
async def test_a_flood_of_clients_or_keys_stays_bounded(
    attacker: asyncpg.Connection, owner: asyncpg.Connection, db: Database
) -> None:
    await owner.execute("DELETE FROM oauth_clients")
    await owner.execute("DELETE FROM signing_keys")
    used = await clients.register(db, name="used", uri=None, uris=["http://localhost/cb"], refreshes=True)
    await clients.note_used(db, used.id)
    await owner.execute(
        "INSERT INTO oauth_clients (id, kind, name, redirect_uris, refreshes) SELECT 'flood' || n, 'registered', 'n', "
        "'{https://x}', true FROM generate_series(1, 9999) n"
    )
    for number in range(3):
        call = "SELECT * FROM keep_oauth_client($1, 'x', NULL, '{https://x}', true, NULL)"
        await attacker.fetch(call, f"more{number}")
    assert await owner.fetchval("SELECT count(*) FROM oauth_clients") == 10_000
    assert await clients.find_client(db, used.id) == used
    for number in range(20):
        await attacker.execute("SELECT add_signing_key($1, 'same', '{}', 'x')", f"same{number}")
    assert await owner.fetchval("SELECT count(*) FROM signing_keys") == 1, "there is a young one"
    for number in range(20):
        await attacker.execute("SELECT add_signing_key($1, $2, '{}', 'x')", f"other{number}", bytes([number]))
    assert await owner.fetchval("SELECT count(*) FROM signing_keys") == 5
    await owner.execute("DELETE FROM signing_keys")


@pytest.mark.proves("security: oauth-secrets")
async def test_a_forged_signing_key_signs_nothing(
    attacker: asyncpg.Connection, owner: asyncpg.Connection, db: Database
) -> None:
    """An attacker with SQL as the application may add a key; without the secret it is not accepted."""
    await owner.execute("DELETE FROM signing_keys")
    vault, forger = Vault.of(PEPPER), Vault.of(b"guessed")
    forged = forger.new_key()
    add = "SELECT add_signing_key($1, $2, $3, $4)"
    await attacker.execute(add, forged.id, vault.fingerprint, forged.public_key, forged.private_key)
    with pytest.raises(ValueError, match="not of this secret"):
        await signing.sign(db, vault, {})
    await owner.execute("DELETE FROM signing_keys")


async def test_an_unknown_token_is_refused_like_a_revoked_one(
    db: Database, databases: Databases, both: tuple[Granted, Granted]
) -> None:
    told = set()
    async with db.transaction(both[0].caller) as tx:
        for grant in await grants.list_grants(tx):
            await grants.revoke_grant(tx, grant.id)
    for access in (both[0].tokens.access, "rcl_access_" + "0" * 38):
        with pytest.raises(Unauthenticated) as refused:
            await grants.authenticate(databases, access, resource=RESOURCE, pepper=PEPPER)
        told.add((str(refused.value), refused.value.code))
    assert len(told) == 1
