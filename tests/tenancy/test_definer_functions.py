"""What runs as the owner before a tenant is known: a closed list, and attacks on each of it."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from recollect.identity.model import hash_secret
from recollect.platform.db import APP_ROLE, OWNER_ROLE, session_settings
from recollect.settings import Settings
from tests.tenancy.conftest import PEPPER, Neighbour

FUNCTIONS = {
    "find_api_key(key_hash bytea)": {
        "tenant_id",
        "tenant",
        "tenant_status",
        "id",
        "kind",
        "scopes",
        "graph_ids",
        "default_graph",
        "expires_at",
        "revoked_at",
        "last_used_at",
    },
    "tenants_with_pending_passages()": {"tenant_id"},
}
"""Each with what it tells, and no more."""

SHADOWS = """
    CREATE TEMP TABLE api_keys (tenant_id uuid, id uuid, kind text, hash bytea, scopes text[], graph_ids uuid[],
        default_graph_id uuid, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz);
    CREATE TEMP TABLE tenants (id uuid, slug text, status text);
    CREATE TEMP TABLE graphs (tenant_id uuid, id uuid, name text);
    CREATE TEMP TABLE passages (tenant_id uuid, embedding halfvec, removed_revision bigint);
    INSERT INTO pg_temp.tenants VALUES ('00000000-0000-0000-0000-00000000000a', 'shadow', 'active');
    INSERT INTO pg_temp.passages VALUES ('00000000-0000-0000-0000-00000000000a', NULL, NULL);
    INSERT INTO pg_temp.api_keys (tenant_id, id, kind, hash, scopes)
        VALUES ('00000000-0000-0000-0000-00000000000a', gen_random_uuid(), 'admin', 'forged', '{tenant:admin}');
    DO $$
    DECLARE kind text;
    BEGIN
        FOREACH kind IN ARRAY '{bytea,uuid,text}'::text[] LOOP
            EXECUTE format('CREATE FUNCTION pg_temp.always(%1$s, %1$s) RETURNS boolean RETURN true', kind);
            EXECUTE format('CREATE OPERATOR pg_temp.= (FUNCTION = pg_temp.always, LEFTARG = %1$s, RIGHTARG = %1$s)',
                kind);
        END LOOP;
    END $$;
    SET search_path = pg_temp, recollect, public, pg_catalog;
"""
"""Objects named like ours, before ours in the attacker's path, made by whoever speaks SQL as the application."""

Neighbours = tuple[Neighbour, Neighbour]


@pytest.fixture
async def attacker(settings: Settings) -> AsyncIterator[asyncpg.Connection]:
    """Arbitrary SQL as the application, without a tenant."""
    connection = await asyncpg.connect(settings.database_url, server_settings=session_settings(APP_ROLE, settings))
    yield connection
    await connection.close()


async def find_key(connection: asyncpg.Connection, key_hash: bytes | None) -> list[asyncpg.Record]:
    return await connection.fetch("SELECT * FROM recollect.find_api_key($1)", key_hash)


async def waiting_tenants(connection: asyncpg.Connection) -> list[str]:
    rows = await connection.fetch("SELECT tenant_id::text FROM recollect.tenants_with_pending_passages()")
    return [row["tenant_id"] for row in rows]


async def test_the_list_is_closed(owner: asyncpg.Connection) -> None:
    """A new function belongs here, with attacks of its own."""
    found = await owner.fetch(
        """SELECT n.nspname, p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' AS function
        FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.prosecdef"""
    )
    assert {tuple(row) for row in found} == {("recollect", function) for function in FUNCTIONS}


async def test_each_is_the_owners_with_a_path_of_its_own_and_open_to_the_application_only(
    owner: asyncpg.Connection,
) -> None:
    found = await owner.fetch(
        """SELECT pg_get_userbyid(proowner) AS owner, proconfig, provolatile,
            ARRAY(SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE pg_get_userbyid(a.grantee) END
                FROM aclexplode(proacl) a WHERE a.privilege_type = 'EXECUTE' ORDER BY 1) AS may_call
        FROM pg_proc WHERE prosecdef"""
    )
    for function in found:
        assert function["owner"] == OWNER_ROLE
        assert function["may_call"] == [APP_ROLE, OWNER_ROLE]
        assert function["provolatile"] == b"s", "it cannot write"
        (setting,) = function["proconfig"]
        path = setting.removeprefix("search_path=").split(", ")
        assert (path[0], path[-1]) == ("recollect", "pg_temp"), "temporary objects come last, where they shadow nothing"


async def test_each_tells_what_it_must_and_no_more(attacker: asyncpg.Connection, neighbours: Neighbours) -> None:
    for function, columns in FUNCTIONS.items():
        call = function.partition("(")[0] + ("(NULL)" if "bytea" in function else "()")
        statement = await attacker.prepare(f"SELECT * FROM {call}")
        assert {column.name for column in statement.get_attributes()} == columns


async def test_a_key_is_found_by_its_whole_hash_and_alone(attacker: asyncpg.Connection, neighbours: Neighbours) -> None:
    for neighbour in neighbours:
        assert neighbour.key is not None
        (found,) = await find_key(attacker, hash_secret(neighbour.key.secret, PEPPER))
        assert (found["tenant_id"], found["id"]) == (neighbour.caller.tenant_id, neighbour.key.key.id)
        assert (found["tenant"], found["default_graph"]) == (neighbour.caller.tenant, "default")


@pytest.mark.parametrize(
    "hostile", [None, b"", b"\x00" * 32, b"%", b"' OR true --", b"\xff" * 1_000_000], ids=lambda h: repr(h)[:12]
)
async def test_hostile_hashes_find_nothing(
    attacker: asyncpg.Connection, neighbours: Neighbours, hostile: bytes | None
) -> None:
    assert await find_key(attacker, hostile) == []


async def test_a_part_of_a_hash_finds_nothing(attacker: asyncpg.Connection, neighbours: Neighbours) -> None:
    key = neighbours[0].key
    assert key is not None
    whole = hash_secret(key.secret, PEPPER)
    for part in (whole[:-1], whole + b"\x00", whole[::-1], whole.hex().encode()):
        assert await find_key(attacker, part) == []


async def test_objects_named_like_ours_change_no_answer(attacker: asyncpg.Connection, neighbours: Neighbours) -> None:
    key = neighbours[0].key
    assert key is not None
    whole = hash_secret(key.secret, PEPPER)
    before = await find_key(attacker, whole), set(await waiting_tenants(attacker))
    await attacker.execute(SHADOWS)
    assert await attacker.fetchval("SELECT slug FROM tenants") == "shadow", "the shadows stand where they should"
    assert await attacker.fetchval("SELECT 'a'::bytea OPERATOR(pg_temp.=) 'b'::bytea")
    assert (await find_key(attacker, whole), set(await waiting_tenants(attacker))) == before
    assert await find_key(attacker, b"forged") == []


async def test_the_callers_tenant_changes_no_answer(attacker: asyncpg.Connection, neighbours: Neighbours) -> None:
    """The functions look across tenants; a tenant that is set neither narrows nor widens that."""
    mine, other = neighbours
    assert other.key is not None
    before = set(await waiting_tenants(attacker))
    await attacker.execute(f"SET recollect.tenant_id = '{mine.caller.tenant_id}'")
    assert set(await waiting_tenants(attacker)) == before
    (found,) = await find_key(attacker, hash_secret(other.key.secret, PEPPER))
    assert found["tenant_id"] == other.caller.tenant_id
    assert await attacker.fetchval("SELECT count(*) FROM api_keys WHERE tenant_id = $1", other.caller.tenant_id) == 0


async def test_waiting_tenants_are_active_ones_with_passages_to_embed(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = neighbours
    ids = [str(neighbour.caller.tenant_id) for neighbour in neighbours]
    assert set(ids) <= set(await waiting_tenants(attacker))
    await mine.embed()
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", other.caller.tenant_id)
    assert set(ids).isdisjoint(await waiting_tenants(attacker))


async def test_others_may_not_call_them(owner: asyncpg.Connection, neighbours: Neighbours) -> None:
    for function in FUNCTIONS:
        name = f"recollect.{function.replace('key_hash ', '')}"
        assert not await owner.fetchval("SELECT has_function_privilege('public', $1, 'EXECUTE')", name)
