"""Functions that run as the owner before a tenant is known: a closed list, and attacks on each of them."""

import json
import re
from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.accounts.identity.model import hash_secret
from recollect.moves.model import Step
from recollect.postgres.connections import APP_ROLE, OPERATOR_ROLE, OWNER_ROLE
from tests.tenancy.conftest import PEPPER, Neighbour

pytestmark = pytest.mark.whole_database

RATES = {"plan", "requests_per_minute", "key_requests_per_minute", "concurrent_calls"}
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
        "toolsets",
        *RATES,
    },
    "tenants_with_pending_passages()": {"tenant_id"},
    "tenants_with_due_jobs()": {"tenant_id"},
    "tenants_with_expired()": {"tenant_id"},
    "tenants_with_deduplication_due()": {"tenant_id"},
    "tenants_with_purgeable(retention interval)": {"tenant_id"},
    "tenants_with_autolinks()": {"tenant_id"},
    "tenants_with_old_usage(kept interval)": {"tenant_id"},
    "tenants_with_webhook_news(overlap interval)": {"tenant_id"},
    "tenants_with_due_deliveries()": {"tenant_id"},
    "tenants_with_old_deliveries(kept interval)": {"tenant_id"},
    "tenants_with_compaction_to_check()": {"tenant_id"},
    "tenants_with_other_words()": {"tenant_id"},
    "missing_migrations(wanted text[])": {"name"},
    "waiting_work(most bigint)": {"queue", "waiting", "oldest_seconds"},
    "moves_under_way()": {"step", "moves", "oldest_seconds"},
    "end_hold(tenant uuid)": {"end_hold"},
    "forget_statistics(among text[])": {"forget_statistics"},
    "find_tenant_accounts(person_email text, first_tenant text, first_person uuid, most bigint)": {
        "id",
        "email",
        "name",
        "password_hash",
        "password_changes",
        "confined_to",
        "tenant",
    },
    "end_own_sign_ins()": {"end_own_sign_ins"},
    "prove_own_address(as_copy boolean)": {"prove_own_address"},
    "find_person(person_email text)": {"id", "email", "name", "password_hash", "password_changes"},
    "find_session(secret_hash bytea)": {
        "id",
        "person_id",
        "email",
        "name",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
        "confined_to",
        "by_provider",
    },
    "find_identity_providers(tenant_slugs text[])": {"tenant_id", "tenant", "id", "name"},
    "release_email_domain(proven_domain text)": {"release_email_domain"},
    "find_email_domain(email_domain text)": {"tenant"},
    "find_trusted_issuer(tenant_slug text, issuer_address text)": {
        "tenant_id",
        "tenant",
        "tenant_status",
        "id",
        "issuer",
        "algorithm",
        "claim",
        "rules",
        *RATES,
    },
    "list_trusted_issuers(tenant_slug text)": {"issuer"},
    "find_provider_sign_in(state_hash bytea)": {"tenant_id"},
    "find_password_reset(secret_hash bytea)": {"id", "person_id", "email", "name", "expires_at", "confined_to"},
    "list_own_grants(most bigint)": {
        "tenant_id",
        "tenant",
        "tenant_name",
        "role",
        "id",
        "client_id",
        "client_name",
        "scopes",
        "graphs",
        "toolsets",
        "created_at",
        "last_used_at",
    },
    "list_own_identities(most bigint)": {
        "tenant_id",
        "tenant",
        "tenant_name",
        "provider_id",
        "provider_name",
        "enabled",
        "last_used_at",
    },
    "keep_passkey_challenge(new_challenge bytea, of_browser bytea, lifetime interval)": {"keep_passkey_challenge"},
    "take_passkey_challenge(old_challenge bytea, of_browser bytea)": {"held"},
    "find_passkey(credential bytea)": {"id", "person_id", "public_key", "sign_count", "confined_to"},
    "list_memberships()": {"tenant_id", "tenant", "tenant_name", "tenant_status", "role", *RATES},
    "find_invitation(secret_hash bytea)": {
        "tenant_id",
        "tenant",
        "tenant_name",
        "tenant_status",
        "id",
        "email",
        "role",
        "expires_at",
        "accepted_at",
        "revoked_at",
        "mailed_at",
    },
    "find_oauth_access_token(token_hash bytea)": {
        "tenant_id",
        "tenant",
        "tenant_status",
        "grant_id",
        "role",
        "scopes",
        "graph_ids",
        "toolsets",
        "default_graph",
        "resource",
        "expires_at",
        "revoked_at",
        *RATES,
    },
    "find_oauth_tenant(secret_hash bytea)": {"tenant_id"},
    "find_oauth_client(client_id text)": {
        "id",
        "name",
        "uri",
        "redirect_uris",
        "refreshes",
        "fresh_until",
    },
    "keep_oauth_client(client_id text, client_name text, client_uri text, uris text[], may_refresh boolean, "
    "fresh timestamp with time zone)": {"created_at"},
    "touch_oauth_client(client_id text)": {"touch_oauth_client"},
    "tenants_with_old_audit(kept interval)": {"tenant_id"},
    "tenants_with_expired_idempotency_keys()": {"tenant_id"},
    "forget_audit(kept interval, most bigint)": {"forget_audit"},
    "forget_void_key()": {"forget_void_key"},
    "forget_void_invitation()": {"forget_void_invitation"},
    "find_operator_key(key_hash bytea)": {"id", "name", "expires_at", "revoked_at"},
    "begin_operator_session(session_hash bytea, holds uuid)": {"begin_operator_session"},
    "find_operator_session(session_hash bytea)": {"id", "name"},
    "end_operator_session(session_hash bytea)": {"end_operator_session"},
    "use_of_tenants(tenant_ids uuid[], day timestamp with time zone)": {
        "tenant_id",
        "graphs",
        "nodes_per_graph",
        "observations",
        "stored_bytes",
        "embeddings_per_day",
    },
    "failed_work(since timestamp with time zone)": {"kind", "error_code", "failed", "last_at"},
    "count_of_tenant(tenant uuid)": {"count_of_tenant"},
    "tenants_to_erase()": {"tenant_id"},
    "tenants_with_due_deletion()": {"tenant_id"},
    "delete_requested_tenant(tenant uuid, entry uuid)": {"delete_requested_tenant"},
    "withdraw_deletion_request(tenant uuid)": {"withdraw_deletion_request"},
    "write_deletion_request_to_operator_log()": {"write_deletion_request_to_operator_log"},
    "find_cells(tenants uuid[], slugs text[])": {"tenant_id", "slug", "cell"},
    "find_places(tenant_ids uuid[], slugs text[], secret_hashes bytea[])": {"place"},
    "find_departures(tenant_ids uuid[], slugs text[], secret_hashes bytea[])": {
        "tenant_id",
        "departed_to",
        "switch_secret",
    },
    "list_open_switches(most bigint)": {"tenant_id", "source"},
    "end_switch(tenant uuid, secret uuid)": {"end_switch"},
    "follow_move(tenant uuid, moved_to text)": {"follow_move"},
    "erase_tenant_step(tenant uuid, most bigint)": {"erase_tenant_step"},
    "list_signing_keys()": {"id", "fingerprint", "public_key", "private_key", "created_at"},
    "add_signing_key(key_id text, secret_fingerprint bytea, public_part jsonb, private_part bytea)": {
        "add_signing_key"
    },
    "delete_account()": {"delete_account"},
    "forget_brought_person()": {"forget_brought_person"},
}
"""Each function with its result columns."""

OF_OPERATORS = {
    "find_operator_key",
    "begin_operator_session",
    "find_operator_session",
    "end_operator_session",
    "use_of_tenants",
    "failed_work",
    "count_of_tenant",
    "withdraw_deletion_request",
}
"""Functions for the operator API only: test_operators.py."""

OF_TRIGGERS = {"forget_brought_person", "write_deletion_request_to_operator_log"}
"""Functions that only triggers call."""

OF_BOTH = {"forget_statistics", "erase_tenant_step", "missing_migrations", "waiting_work"}

WRITING = {
    "find_operator_key": "when an operator's key was used",
    "begin_operator_session": "a session of an operator",
    "end_operator_session": "that a session of an operator ended",
    "erase_tenant_step": "away with tenants whose grace is over, and with no other: test_operators.py",
    "delete_requested_tenant": "that a tenant is deleted whose owner asked a week ago: test_deletion_requests.py",
    "withdraw_deletion_request": "that nobody asks for a tenant's deletion any more",
    "write_deletion_request_to_operator_log": "into the log of operators what was asked: test_deletion_requests.py",
    "end_hold": "that a tenant is here, where the hold of its writes is over",
    "end_switch": "that a tenant is here, by the secret that only the cell tells from which it departed: test_moves.py",
    "follow_move": "in the directory where a tenant moves to that is under way",
    "forget_statistics": "what the planner knows, and nothing else",
    "keep_oauth_client": "clients, which are nobody's: test_oauth.py",
    "forget_audit": "entries of the transaction's own tenant that are old: test_audit.py",
    "forget_void_key": "a void key of the transaction's own tenant",
    "forget_void_invitation": "a void invitation of the transaction's own tenant",
    "touch_oauth_client": "when a client was used",
    "release_email_domain": "a claim that another tenant has not proven for a week: test_email_domains.py",
    "keep_passkey_challenge": "what one browser is asked to sign: test_passkeys.py",
    "take_passkey_challenge": "the same",
    "add_signing_key": "signing keys, which are nobody's: test_oauth.py",
    "delete_account": "away with the transaction's own person, who is a member nowhere: test_people.py",
    "end_own_sign_ins": "away with ways to sign in of the transaction's own person: test_unproven_addresses.py",
    "prove_own_address": "that this person is of no single tenant: test_unproven_addresses.py",
    "forget_brought_person": "away with whom a provider brought and who is a member no more: test_provider_sign_in.py",
}
"""Functions that write, and what they write."""

SHADOWS = """
    CREATE TEMP TABLE api_keys (tenant_id uuid, id uuid, kind text, hash bytea, scopes text[], graph_ids uuid[],
        default_graph_id uuid, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz);
    CREATE TEMP TABLE tenants (id uuid, slug text, status text);
    CREATE TEMP TABLE plans (name text, requests_per_minute bigint, key_requests_per_minute bigint,
        concurrent_calls bigint);
    INSERT INTO pg_temp.plans VALUES ('unlimited', 1, 1, 1);
    CREATE TEMP TABLE graphs (tenant_id uuid, id uuid, name text, metadata jsonb);
    CREATE TEMP TABLE deduplications (tenant_id uuid, graph_id uuid, finished_at timestamptz);
    CREATE TEMP TABLE nodes (tenant_id uuid, expires_at timestamptz, removed_revision bigint, status text);
    CREATE TEMP TABLE observations (tenant_id uuid, expires_at timestamptz, removed_revision bigint);
    INSERT INTO pg_temp.graphs (tenant_id, metadata)
        VALUES ('00000000-0000-0000-0000-00000000000a', '{"dedup": {"mode": "merge"}}');
    INSERT INTO pg_temp.nodes VALUES ('00000000-0000-0000-0000-00000000000a', '2000-01-01', NULL, 'active');
    CREATE TEMP TABLE passages (tenant_id uuid, embedding halfvec, removed_revision bigint);
    CREATE TEMP TABLE jobs (tenant_id uuid, finished_at timestamptz, held boolean, next_attempt_at timestamptz,
        claimed_until timestamptz, expires_at timestamptz);
    INSERT INTO pg_temp.jobs VALUES ('00000000-0000-0000-0000-00000000000a', NULL, false, now(), NULL, NULL);
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
"""Objects with the names of ours that an attacker with SQL as the application puts first in the search path."""

Neighbours = tuple[Neighbour, Neighbour]


@pytest.fixture
def attacker(attacker: asyncpg.Connection, temporary_objects: None) -> asyncpg.Connection:
    return attacker


async def find_key(connection: asyncpg.Connection, key_hash: bytes | None) -> list[asyncpg.Record]:
    return await connection.fetch("SELECT * FROM recollect.find_api_key($1)", key_hash)


async def waiting_tenants(connection: asyncpg.Connection) -> list[str]:
    rows = await connection.fetch("SELECT tenant_id::text FROM recollect.tenants_with_pending_passages()")
    return [row["tenant_id"] for row in rows]


async def employed_tenants(connection: asyncpg.Connection) -> list[str]:
    rows = await connection.fetch("SELECT tenant_id::text FROM recollect.tenants_with_due_jobs()")
    return [row["tenant_id"] for row in rows]


async def tenants_in(connection: asyncpg.Connection, function: str) -> set[str]:
    """The tenants that one of the functions for sweeps returns."""
    return {row["tenant_id"] for row in await connection.fetch(f"SELECT tenant_id::text FROM recollect.{function}")}


@pytest.mark.proves("security: definer-functions")
async def test_the_list_of_definer_functions_is_closed(owner: asyncpg.Connection) -> None:
    """A new function needs a line here, and attacks of its own."""
    found = await owner.fetch(
        """SELECT n.nspname, p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' AS function
        FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.prosecdef"""
    )
    assert {tuple(row) for row in found} == {("recollect", function) for function in FUNCTIONS}


def callers_of(function: str) -> list[str]:
    """The roles that may call a function, besides its owner."""
    if function in OF_OPERATORS:
        return [OPERATOR_ROLE]
    if function in OF_TRIGGERS:
        return []
    return [APP_ROLE, OPERATOR_ROLE] if function in OF_BOTH else [APP_ROLE]


WHEREVER_IT_IS = {
    "count_of_tenant",
    "delete_requested_tenant",
    "end_hold",
    "end_switch",
    "erase_tenant_step",
    "find_cells",
    "find_departures",
    "find_places",
    "list_open_switches",
    "write_deletion_request_to_operator_log",
}
"""Functions that get a tenant as argument, which need not be in this cell: operators call them, or the directory."""


VIEWS = "tenants_here", "tenants_staying"
SWEEPING = {"tenants_to_erase", "waiting_work"} | {
    name.partition("(")[0] for name in FUNCTIONS if name.startswith("tenants_with_")
}
"""Functions that workers call for all tenants."""


async def test_each_function_finds_only_tenants_of_this_cell(owner: asyncpg.Connection) -> None:
    """Rows of a tenant of another cell may remain here, or arrive early: the views leave them out.

    The functions for workers also leave out tenants that are about to leave, to which they could not write.
    """
    found = await owner.fetch("SELECT proname, prosrc FROM pg_proc WHERE prosecdef")
    anywhere = {row["proname"] for row in found if re.search(r"\b(FROM|JOIN) tenants\b", row["prosrc"])}
    assert anywhere <= WHEREVER_IT_IS
    with_a_tenant = {name.partition("(")[0] for name, columns in FUNCTIONS.items() if "tenant_id" in columns}
    here, staying = ({row["proname"] for row in found if view in row["prosrc"]} for view in VIEWS)
    assert with_a_tenant - WHEREVER_IT_IS <= here | staying
    assert staying == {name for name in (row["proname"] for row in found) if name in SWEEPING}


@pytest.mark.parametrize(("place", "is_found"), [("leaving", True), ("arriving", False), ("departed", False)])
async def test_a_key_of_a_tenant_in_another_cell_is_not_found(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection, place: str, is_found: bool
) -> None:
    mine, other = neighbours
    assert mine.key is not None
    assert other.key is not None
    await owner.execute("UPDATE tenants SET place = $2 WHERE id = $1", mine.caller.tenant_id, place)
    assert bool(await find_key(attacker, hash_secret(mine.key.secret, PEPPER))) is is_found
    assert await find_key(attacker, hash_secret(other.key.secret, PEPPER))


async def test_the_directory_returns_only_requested_tenants(
    attacker: asyncpg.Connection, owner: asyncpg.Connection
) -> None:
    ids = [uuid4(), uuid4()]
    for tenant_id in ids:
        await owner.execute(
            "INSERT INTO tenant_cells (id, slug, cell) VALUES ($1, $2, 'b')", tenant_id, f"s{tenant_id}"
        )
    find = "SELECT tenant_id FROM recollect.find_cells($1, $2)"
    try:
        assert [row["tenant_id"] for row in await attacker.fetch(find, [ids[0]], [])] == [ids[0]]
        assert [row["tenant_id"] for row in await attacker.fetch(find, [], [f"s{ids[1]}"])] == [ids[1]]
        for hostile in ([], ["%", "", "' OR true --"]):
            assert await attacker.fetch(find, [], hostile) == []
        assert await attacker.fetch(find, None, None) == []
    finally:
        await owner.execute("DELETE FROM tenant_cells WHERE id = ANY ($1)", ids)


@pytest.mark.proves("security: definer-functions")
async def test_each_function_has_its_own_search_path_and_may_be_called_only_by_its_roles(
    owner: asyncpg.Connection,
) -> None:
    found = await owner.fetch(
        """SELECT proname, pg_get_userbyid(proowner) AS owner, proconfig, provolatile,
            ARRAY(SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE pg_get_userbyid(a.grantee) END
                FROM aclexplode(proacl) a WHERE a.privilege_type = 'EXECUTE' ORDER BY 1) AS may_call
        FROM pg_proc WHERE prosecdef"""
    )
    for function in found:
        assert function["owner"] == OWNER_ROLE
        assert function["may_call"] == sorted({OWNER_ROLE, *callers_of(function["proname"])})
        assert function["provolatile"] == (b"v" if function["proname"] in WRITING else b"s"), "it cannot write"
        path = dict(setting.split("=", 1) for setting in function["proconfig"])["search_path"].split(", ")
        assert (path[0], path[-1]) == ("recollect", "pg_temp"), "temporary objects come last, where they shadow nothing"


async def test_each_function_returns_exactly_its_columns(attacker: asyncpg.Connection, neighbours: Neighbours) -> None:
    for function, columns in FUNCTIONS.items():
        name, _, arguments = function.removesuffix(")").partition("(")
        if name in OF_OPERATORS | OF_TRIGGERS:
            continue
        nulls = ", ".join("NULL" for argument in arguments.split(", ") if argument)
        statement = await attacker.prepare(f"SELECT * FROM {name}({nulls})")
        assert {column.name for column in statement.get_attributes()} == columns


async def test_a_key_is_found_only_by_its_whole_hash(attacker: asyncpg.Connection, neighbours: Neighbours) -> None:
    for neighbour in neighbours:
        assert neighbour.key is not None
        (found,) = await find_key(attacker, hash_secret(neighbour.key.secret, PEPPER))
        assert (found["tenant_id"], found["id"]) == (neighbour.caller.tenant_id, neighbour.key.key.id)
        assert (found["tenant"], found["default_graph"]) == (neighbour.caller.tenant, "default")


@pytest.mark.parametrize(
    "hostile", [None, b"", b"\x00" * 32, b"%", b"' OR true --", b"\xff" * 1_000_000], ids=lambda h: repr(h)[:12]
)
async def test_hostile_hashes_find_no_key(
    attacker: asyncpg.Connection, neighbours: Neighbours, hostile: bytes | None
) -> None:
    assert await find_key(attacker, hostile) == []


async def test_a_part_of_a_key_hash_finds_no_key(attacker: asyncpg.Connection, neighbours: Neighbours) -> None:
    key = neighbours[0].key
    assert key is not None
    whole = hash_secret(key.secret, PEPPER)
    for part in (whole[:-1], whole + b"\x00", whole[::-1], whole.hex().encode()):
        assert await find_key(attacker, part) == []


async def test_shadowing_objects_change_no_answer(attacker: asyncpg.Connection, neighbours: Neighbours) -> None:
    key = neighbours[0].key
    assert key is not None
    whole = hash_secret(key.secret, PEPPER)
    before = (
        await find_key(attacker, whole),
        set(await waiting_tenants(attacker)),
        set(await employed_tenants(attacker)),
    )
    await attacker.execute(SHADOWS)
    assert await attacker.fetchval("SELECT slug FROM tenants") == "shadow", "the shadows stand where they should"
    assert await attacker.fetchval("SELECT 'a'::bytea OPERATOR(pg_temp.=) 'b'::bytea")
    after = await find_key(attacker, whole), set(await waiting_tenants(attacker)), set(await employed_tenants(attacker))
    assert after == before
    assert await find_key(attacker, b"forged") == []


async def test_a_set_tenant_changes_no_answer(attacker: asyncpg.Connection, neighbours: Neighbours) -> None:
    """The functions search across tenants; a set tenant neither narrows nor widens that."""
    mine, other = neighbours
    assert other.key is not None
    before = set(await waiting_tenants(attacker)), set(await employed_tenants(attacker))
    await attacker.execute(f"SET recollect.tenant_id = '{mine.caller.tenant_id}'")
    assert (set(await waiting_tenants(attacker)), set(await employed_tenants(attacker))) == before
    (found,) = await find_key(attacker, hash_secret(other.key.secret, PEPPER))
    assert found["tenant_id"] == other.caller.tenant_id
    assert await attacker.fetchval("SELECT count(*) FROM api_keys WHERE tenant_id = $1", other.caller.tenant_id) == 0


async def test_only_active_tenants_with_pending_passages_are_returned(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = neighbours
    ids = [str(neighbour.caller.tenant_id) for neighbour in neighbours]
    assert set(ids) <= set(await waiting_tenants(attacker))
    await mine.embed()
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", other.caller.tenant_id)
    assert set(ids).isdisjoint(await waiting_tenants(attacker))


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("held", False),
        ("next_attempt_at = now() + interval '1 minute'", False),
        ("lease = gen_random_uuid(), claimed_until = now() + interval '1 minute'", False),
        ("lease = gen_random_uuid(), claimed_until = now() - interval '1 second'", True),
        ("status = 'failed', finished_at = now(), expires_at = now() + interval '1 minute'", False),
        ("status = 'failed', finished_at = now(), expires_at = now()", True),
    ],
)
async def test_only_active_tenants_with_due_or_expired_jobs_are_returned(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection, state: str, told: bool
) -> None:
    mine, other = neighbours
    ids = {str(neighbour.caller.tenant_id) for neighbour in neighbours}
    assert ids <= set(await employed_tenants(attacker))
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", other.caller.tenant_id)
    assert ids & set(await employed_tenants(attacker)) == {str(mine.caller.tenant_id)}
    await owner.execute(f"UPDATE jobs SET {state.replace('held', 'held = true')} WHERE id = $1", mine.due.id)
    assert (str(mine.caller.tenant_id) in await employed_tenants(attacker)) is told


EXPIRED, DUE = "tenants_with_expired()", "tenants_with_deduplication_due()"


async def test_only_active_tenants_with_due_curation_are_returned(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = (str(neighbour.caller.tenant_id) for neighbour in neighbours)
    for function in (EXPIRED, DUE):
        assert {mine, other}.isdisjoint(await tenants_in(attacker, function))
    await owner.execute("UPDATE nodes SET expires_at = now() - interval '1 hour' WHERE tenant_id = $1", mine)
    await owner.execute("UPDATE observations SET expires_at = now() - interval '1 hour' WHERE tenant_id = $1", other)
    asked = {"dedup": {"mode": "propose", "every_hours": 1}}
    await owner.execute("UPDATE graphs SET metadata = $2 WHERE tenant_id = $1", mine, json.dumps(asked))
    await owner.execute("UPDATE deduplications SET finished_at = now() - interval '2 hours' WHERE tenant_id = $1", mine)
    assert {mine, other} <= await tenants_in(attacker, EXPIRED)
    assert {mine, other} & await tenants_in(attacker, DUE) == {mine}
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = ANY ($1::uuid[])", [mine, other])
    for function in (EXPIRED, DUE):
        assert {mine, other}.isdisjoint(await tenants_in(attacker, function))


PURGEABLE = "tenants_with_purgeable(interval '30 days')"


async def test_only_active_tenants_with_old_archived_nodes_are_returned_for_purging(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = (str(neighbour.caller.tenant_id) for neighbour in neighbours)
    await owner.execute("UPDATE nodes SET expires_at = now() - interval '31 days' WHERE tenant_id = $1", mine)
    assert {mine, other}.isdisjoint(await tenants_in(attacker, PURGEABLE)), "it is not archived yet"
    await owner.execute("UPDATE nodes SET status = 'archived' WHERE tenant_id = ANY ($1::uuid[])", [mine, other])
    await owner.execute("UPDATE nodes SET expires_at = now() - interval '29 days' WHERE tenant_id = $1", other)
    assert {mine, other} & await tenants_in(attacker, PURGEABLE) == {mine}
    await owner.execute("UPDATE tenants SET retention_days = 28 WHERE id = $1", other)
    assert {mine, other} <= await tenants_in(attacker, PURGEABLE), "it keeps less long"
    await owner.execute("UPDATE tenants SET retention_days = 32 WHERE id = $1", mine)
    assert {mine, other} & await tenants_in(attacker, PURGEABLE) == {other}, "it keeps longer"
    await owner.execute("UPDATE tenants SET retention_days = NULL")
    await attacker.execute(f"SET recollect.tenant_id = '{other}'")
    await attacker.execute(SHADOWS)
    assert {mine, other} & await tenants_in(attacker, PURGEABLE) == {mine}
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", mine)
    assert {mine, other}.isdisjoint(await tenants_in(attacker, PURGEABLE))


async def test_a_tenant_can_change_only_its_name_and_retention(
    attacker: asyncpg.Connection, neighbours: Neighbours
) -> None:
    """No fault in the application's queries can do what its grants forbid."""
    mine = neighbours[0].caller.tenant_id
    await attacker.execute("SELECT set_config('recollect.tenant_id', $1, false)", str(mine))
    for column, value in (("plan", "unlimited"), ("slug", "mine"), ("status", "suspended")):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await attacker.execute(f"UPDATE tenants SET {column} = '{value}'")
    assert await attacker.execute("UPDATE tenants SET name = 'theirs' WHERE id <> $1", mine) == "UPDATE 0"
    assert await attacker.execute("UPDATE tenants SET name = 'mine', retention_days = 7") == "UPDATE 1"


HOSTILE = ['"x"', "[]", "null", '{"mode": 1}', '{"mode": ["merge"]}']
HOSTILE += [f'{{"mode": "merge", "every_hours": {value}}}' for value in ('"1; DROP"', "1e400", "-1e400", "{}", "null")]


@pytest.mark.parametrize("hostile", HOSTILE)
async def test_a_hostile_configuration_does_not_break_the_sweep(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection, hostile: str
) -> None:
    """The configuration is text of a tenant, which must not keep other tenants from their turn."""
    mine, other = (str(neighbour.caller.tenant_id) for neighbour in neighbours)
    await owner.execute("UPDATE graphs SET metadata = $2 WHERE tenant_id = $1", mine, f'{{"dedup": {hostile}}}')
    await owner.execute("UPDATE graphs SET metadata = $2 WHERE tenant_id = $1", other, '{"dedup": {"mode": "merge"}}')
    await owner.execute("DELETE FROM deduplications WHERE tenant_id = $1", other)
    assert other in await tenants_in(attacker, DUE)
    assert mine not in await tenants_in(attacker, DUE), "it was compared a moment ago, or asks for nothing"


async def test_shadowing_objects_and_a_set_tenant_change_no_answer_about_curation(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = (str(neighbour.caller.tenant_id) for neighbour in neighbours)
    await owner.execute("UPDATE nodes SET expires_at = now() - interval '1 hour' WHERE tenant_id = $1", mine)
    before = [await tenants_in(attacker, function) for function in (EXPIRED, DUE)]
    await attacker.execute(f"SET recollect.tenant_id = '{other}'")
    assert [await tenants_in(attacker, function) for function in (EXPIRED, DUE)] == before
    await attacker.execute(SHADOWS)
    assert [await tenants_in(attacker, function) for function in (EXPIRED, DUE)] == before


async def test_the_public_may_not_call_the_functions(owner: asyncpg.Connection, neighbours: Neighbours) -> None:
    asked = "SELECT proname, has_function_privilege('public', oid, 'EXECUTE') AS open FROM pg_proc WHERE prosecdef"
    found = {row["proname"]: row["open"] for row in await owner.fetch(asked)}
    assert found == dict.fromkeys((function.partition("(")[0] for function in FUNCTIONS), False)


async def test_only_active_tenants_with_embedded_facts_are_returned_for_autolinks(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    ids = {str(neighbour.caller.tenant_id) for neighbour in neighbours}
    function = "tenants_with_autolinks()"
    await owner.execute("UPDATE passages SET settled = false WHERE tenant_id = ANY ($1)", ids)
    assert ids.isdisjoint(await tenants_in(attacker, function))
    await owner.execute("UPDATE passages SET settled = true WHERE tenant_id = ANY ($1)", ids)
    assert ids <= await tenants_in(attacker, function)
    other = neighbours[1].caller.tenant_id
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", other)
    assert ids & await tenants_in(attacker, function) == ids - {str(other)}
    before = await tenants_in(attacker, function)
    await attacker.execute(SHADOWS)
    await attacker.execute(
        "CREATE TEMP TABLE autolinks (tenant_id uuid, node_id uuid);"
        "INSERT INTO pg_temp.autolinks VALUES ('00000000-0000-0000-0000-00000000000a', NULL)"
    )
    assert await tenants_in(attacker, function) == before


OLD_USAGE = "tenants_with_old_usage(interval '400 days')"


async def test_only_active_tenants_with_old_usage_are_returned(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = (str(neighbour.caller.tenant_id) for neighbour in neighbours)
    hour = "date_trunc('hour', now(), 'UTC') - interval"
    await owner.execute(f"UPDATE usage_hourly SET hour = {hour} '399 days' WHERE tenant_id = $1", other)
    await owner.execute(f"UPDATE usage_hourly SET hour = {hour} '401 days' WHERE tenant_id = $1", mine)
    assert {mine, other} & await tenants_in(attacker, OLD_USAGE) == {mine}
    await attacker.execute(f"SET recollect.tenant_id = '{other}'")
    await attacker.execute(SHADOWS)
    await attacker.execute(
        "CREATE TEMP TABLE usage_hourly (tenant_id uuid, hour timestamptz);"
        "INSERT INTO pg_temp.usage_hourly VALUES ('00000000-0000-0000-0000-00000000000a', '2000-01-01')"
    )
    assert {mine, other} & await tenants_in(attacker, OLD_USAGE) == {mine}
    assert "00000000-0000-0000-0000-00000000000a" not in await tenants_in(attacker, OLD_USAGE)
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", mine)
    assert {mine, other}.isdisjoint(await tenants_in(attacker, OLD_USAGE))


async def test_only_void_rows_of_the_own_tenant_are_forgotten(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    """Neither anything of another tenant, nor anything that holds; without a tenant, nothing."""
    mine, other = (neighbour.caller.tenant_id for neighbour in neighbours)
    await owner.execute(
        """INSERT INTO invitations (tenant_id, id, email, role, hash, created_by, expires_at)
        SELECT t, gen_random_uuid(), e || '@example.com', 'reader', sha256((t::text || e)::bytea), 'test', now() + days
        FROM unnest($1::uuid[]) AS t,
            (VALUES ('valid', interval '1 day'), ('void', interval '-1 day')) AS v (e, days)""",
        [mine, other],
    )
    await owner.execute(
        """INSERT INTO api_keys (tenant_id, id, name, kind, hash, hint, scopes, created_by, expires_at)
        SELECT t, gen_random_uuid(), 'void', 'agent', sha256((t::text || 'void')::bytea), 'x', '{}', 'test', now()
        FROM unnest($1::uuid[]) AS t""",
        [mine, other],
    )

    async def left(tenant: UUID) -> list[int]:
        tables = ("api_keys", "invitations")
        return [await owner.fetchval(f"SELECT count(*) FROM {t} WHERE tenant_id = $1", tenant) for t in tables]

    before = [await left(tenant) for tenant in (mine, other)]
    forget = "SELECT recollect.forget_void_key() OR recollect.forget_void_invitation()"
    assert not await attacker.fetchval(forget)
    await attacker.execute(f"SET recollect.tenant_id = '{mine}'")
    await attacker.execute(SHADOWS)
    for function in ("forget_void_key", "forget_void_invitation"):
        assert [await attacker.fetchval(f"SELECT recollect.{function}()") for _ in "ab"] == [True, False]
    assert await left(mine) == [number - 1 for number in before[0]]
    assert await left(other) == before[1]


async def test_only_active_tenants_with_words_of_a_former_analysis_are_returned(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = (str(neighbour.caller.tenant_id) for neighbour in neighbours)
    function = "tenants_with_other_words()"
    await owner.execute("UPDATE passages SET words_version = 1 WHERE tenant_id = $1", mine)
    assert {mine, other} & await tenants_in(attacker, function) == {mine}
    await owner.execute("UPDATE passages SET words_version = 4 WHERE tenant_id = $1", mine)
    assert {mine, other}.isdisjoint(await tenants_in(attacker, function))
    labelled = "UPDATE nodes SET tags = '{tag}', labels_version = 0 WHERE tenant_id = $1"
    await owner.execute(labelled, mine)
    assert {mine, other} & await tenants_in(attacker, function) == {mine}
    await attacker.execute(f"SET recollect.tenant_id = '{other}'")
    await attacker.execute(SHADOWS)
    assert {mine, other} & await tenants_in(attacker, function) == {mine}
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", mine)
    assert {mine, other}.isdisjoint(await tenants_in(attacker, function))


async def test_only_active_tenants_with_a_due_compaction_check_are_returned(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = (str(neighbour.caller.tenant_id) for neighbour in neighbours)
    function = "tenants_with_compaction_to_check()"
    await owner.execute("UPDATE graphs SET compaction_check_at = now() + interval '1 hour'")
    await owner.execute("UPDATE graphs SET compaction_check_at = now() WHERE tenant_id = $1", mine)
    assert await tenants_in(attacker, function) == {mine}
    await attacker.execute(f"SET recollect.tenant_id = '{other}'")
    await attacker.execute(SHADOWS)
    await attacker.execute("ALTER TABLE pg_temp.graphs ADD COLUMN compaction_check_at timestamptz DEFAULT '2000-01-01'")
    assert await tenants_in(attacker, function) == {mine}
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", mine)
    assert await tenants_in(attacker, function) == set()


async def test_forget_statistics_neither_accepts_other_tables_nor_returns_anything(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    """The function runs as the owner, gets the names of tables, and executes statements that it builds."""
    call = "SELECT recollect.forget_statistics($1)"
    hostile = ["pg_authid", "public.x", "nodes; DROP TABLE recollect.nodes", 'nodes"', "tenants", "api_keys", ""]
    before = await owner.fetchval("SELECT count(*) FROM nodes")
    for only in ([], hostile, [*hostile, "aliases"]):
        assert await attacker.fetchval(call, only) == []
    await attacker.execute(SHADOWS)
    await attacker.execute(
        """CREATE TEMP TABLE pg_stats (schemaname text, tablename text, attname text);
        INSERT INTO pg_temp.pg_stats VALUES ('recollect', 'nodes', 'x''); DROP TABLE recollect.nodes; --');
        CREATE FUNCTION pg_temp.pg_clear_attribute_stats(text, text, text, boolean) RETURNS void
            LANGUAGE sql AS 'DELETE FROM recollect.tenants'"""
    )
    assert await attacker.fetchval(call, ["nodes"]) == []
    assert await owner.fetchval("SELECT count(*) FROM nodes") == before
    assert await owner.fetchval("SELECT count(*) FROM tenants WHERE id = $1", neighbours[0].caller.tenant_id) == 1
    for tried in ("ANALYZE recollect.nodes", "SELECT * FROM pg_catalog.pg_statistic"):
        with_warning: list[str] = []
        attacker.add_log_listener(lambda _, message, told=with_warning: told.append(message.message))
        try:
            assert await attacker.execute(tried) == "ANALYZE"
            assert with_warning, "a warning: only the owner may"
        except asyncpg.InsufficientPrivilegeError:
            pass


NEWS, DUE_DELIVERIES = "tenants_with_webhook_news(interval '10 minutes')", "tenants_with_due_deliveries()"
OLD_DELIVERIES = "tenants_with_old_deliveries(interval '14 days')"
ENABLED = "UPDATE webhooks SET enabled = true, disabled_reason = NULL, disabled_at = NULL WHERE tenant_id = $1"
OF_WEBHOOKS = """
    CREATE TEMP TABLE webhooks (tenant_id uuid, id uuid, enabled boolean, event_types text[], graph_ids uuid[],
        looked_at timestamptz);
    CREATE TEMP TABLE webhook_deliveries (tenant_id uuid, webhook_id uuid, next_attempt_at timestamptz,
        claimed_until timestamptz, created_at timestamptz);
    INSERT INTO pg_temp.webhooks VALUES ('00000000-0000-0000-0000-00000000000a', NULL, true, '{graph.changed}', NULL);
    INSERT INTO pg_temp.webhook_deliveries
        SELECT '00000000-0000-0000-0000-00000000000a', NULL, now(), NULL, '2000-01-01';
"""


@pytest.mark.parametrize(
    ("types", "news", "told"),
    [
        ("graph.changed", "SELECT 1 WHERE $1::uuid IS NULL", False),
        ("graph.changed", "UPDATE graph_heads SET revision = revision + 1 WHERE tenant_id = $1", True),
        ("graph.created", "UPDATE graph_heads SET revision = revision + 1 WHERE tenant_id = $1", False),
        ("graph.created", "DELETE FROM webhook_cursors WHERE tenant_id = $1", True),
        (
            "graph.deleted",
            """WITH gone AS (
                INSERT INTO webhook_cursors
                SELECT tenant_id, id, gen_random_uuid(), 1 FROM webhooks WHERE tenant_id = $1 RETURNING graph_id)
            INSERT INTO audit_log (tenant_id, id, actor, action, objects)
            SELECT $1, gen_random_uuid(), 'operator', 'graph.erased', ARRAY['graph:' || graph_id] FROM gone""",
            True,
        ),
        (
            "graph.changed",
            """UPDATE graph_heads SET revision = revision + 1, written_around = now() - interval '1 hour'
            WHERE tenant_id = $1""",
            False,
        ),
        ("job.failed", "UPDATE webhooks SET looked_at = now() + interval '1 hour' WHERE tenant_id = $1", False),
        ("job.failed", "UPDATE webhooks SET looked_at = now() - interval '1 hour' WHERE tenant_id = $1", True),
        ("key.created", "UPDATE webhooks SET looked_at = now() - interval '1 hour' WHERE tenant_id = $1", True),
        ("member.joined", "UPDATE webhooks SET looked_at = now() - interval '1 hour' WHERE tenant_id = $1", True),
        ("member.removed", "UPDATE webhooks SET looked_at = now() - interval '1 hour' WHERE tenant_id = $1", False),
        (
            "member.removed",
            """INSERT INTO audit_log (tenant_id, id, actor, action, objects)
            VALUES ($1, gen_random_uuid(), 'operator', 'member.removed', '{person:x}')""",
            True,
        ),
    ],
)
async def test_only_active_tenants_with_webhook_news_are_returned(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection, types: str, news: str, told: bool
) -> None:
    mine, other = (str(neighbour.caller.tenant_id) for neighbour in neighbours)
    for tenant in (mine, other):
        await owner.execute(
            """UPDATE webhook_cursors c SET revision = h.revision FROM graph_heads h
            WHERE h.tenant_id = c.tenant_id AND h.graph_id = c.graph_id AND c.tenant_id = $1""",
            tenant,
        )
        await owner.execute("UPDATE webhooks SET event_types = $2 WHERE tenant_id = $1", tenant, [types])
        await owner.execute(news, tenant)
    await owner.execute(ENABLED, mine)
    assert {mine, other} & await tenants_in(attacker, NEWS) == ({mine} if told else set()), "the other's is disabled"
    await attacker.execute(f"SET recollect.tenant_id = '{other}'")
    await attacker.execute(SHADOWS)
    await attacker.execute(OF_WEBHOOKS)
    assert {mine, other} & await tenants_in(attacker, NEWS) == ({mine} if told else set())
    assert "00000000-0000-0000-0000-00000000000a" not in await tenants_in(attacker, NEWS)
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", mine)
    assert mine not in await tenants_in(attacker, NEWS)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("next_attempt_at = now()", True),
        ("next_attempt_at = NULL", False),
        ("next_attempt_at = now() + interval '1 minute'", False),
        ("lease = gen_random_uuid(), claimed_until = now() + interval '1 minute'", False),
        ("lease = gen_random_uuid(), claimed_until = now() - interval '1 second'", True),
    ],
)
async def test_only_active_tenants_with_due_deliveries_are_returned(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection, state: str, told: bool
) -> None:
    mine, other = (str(neighbour.caller.tenant_id) for neighbour in neighbours)
    await owner.execute(ENABLED, mine)
    await owner.execute(f"UPDATE webhook_deliveries SET {state} WHERE tenant_id = ANY ($1::uuid[])", [mine, other])
    assert {mine, other} & await tenants_in(attacker, DUE_DELIVERIES) == ({mine} if told else set())
    await attacker.execute(f"SET recollect.tenant_id = '{other}'")
    await attacker.execute(SHADOWS)
    await attacker.execute(OF_WEBHOOKS)
    assert {mine, other} & await tenants_in(attacker, DUE_DELIVERIES) == ({mine} if told else set())
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", mine)
    assert mine not in await tenants_in(attacker, DUE_DELIVERIES)


async def test_only_active_tenants_with_old_deliveries_are_returned(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = (str(neighbour.caller.tenant_id) for neighbour in neighbours)
    age = "UPDATE webhook_deliveries SET created_at = now() - $2::interval WHERE tenant_id = $1"
    await owner.execute(age, mine, timedelta(days=15))
    await owner.execute(age, other, timedelta(days=13))
    assert {mine, other} & await tenants_in(attacker, OLD_DELIVERIES) == {mine}
    await attacker.execute(f"SET recollect.tenant_id = '{other}'")
    await attacker.execute(SHADOWS)
    await attacker.execute(OF_WEBHOOKS)
    assert {mine, other} & await tenants_in(attacker, OLD_DELIVERIES) == {mine}
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", mine)
    assert mine not in await tenants_in(attacker, OLD_DELIVERIES)


async def test_only_an_expired_hold_is_ended(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    held = "UPDATE tenants SET place = $2, held_until = $3 WHERE id = $1"
    place = "SELECT place FROM tenants WHERE id = $1"
    mine, other = (neighbour.caller.tenant_id for neighbour in neighbours)
    now = await owner.fetchval("SELECT clock_timestamp()")
    for said, until, ended in (
        ("leaving", now + timedelta(hours=1), False),
        ("leaving", None, False),
        ("departed", now, False),
        ("leaving", now, True),
    ):
        await owner.execute(held, mine, said, until)
        await owner.execute(held, other, said, until)
        assert await attacker.fetchval("SELECT recollect.end_hold($1)", mine) is ended
        assert await owner.fetchval(place, mine) == ("here" if ended else said)
        assert await owner.fetchval(place, other) == said


async def test_moves_under_way_are_reported_as_numbers(attacker: asyncpg.Connection, owner: asyncpg.Connection) -> None:
    told = "SELECT step, moves, oldest_seconds FROM recollect.moves_under_way()"
    assert {row["step"] for row in await attacker.fetch(told)} == set(Step)
    rolled_back = owner.transaction()
    await rolled_back.start()
    try:
        await owner.execute(
            """INSERT INTO tenant_moves (id, slug, source, target, step, step_at)
            VALUES (gen_random_uuid(), 'moved', 'home', 'b', 'switch', now() - interval '1 hour')"""
        )
        [switching] = [row for row in await owner.fetch(told) if row["step"] == "switch"]
    finally:
        await rolled_back.rollback()
    assert switching["moves"] >= 1
    assert switching["oldest_seconds"] >= 3_600


async def test_waiting_work_of_all_active_tenants_is_reported_as_numbers(
    neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    """The queries share a snapshot, so that work of other tests does not change the numbers."""
    call = "SELECT queue, waiting, oldest_seconds FROM recollect.waiting_work($1)"
    rolled_back = owner.transaction(isolation="repeatable_read")
    await rolled_back.start()
    try:
        before = {row["queue"]: row for row in await owner.fetch(call, 100_000)}
        await owner.execute(
            "UPDATE tenants SET status = 'suspended' WHERE id = ANY ($1)", [n.caller.tenant_id for n in neighbours]
        )
        after = {row["queue"]: row for row in await owner.fetch(call, 100_000)}
        few = {row["queue"]: row["waiting"] for row in await owner.fetch(call, 0)}
    finally:
        await rolled_back.rollback()
    assert before.keys() == after.keys() == {"passages", "jobs", "deliveries"}
    assert before["passages"]["waiting"] > after["passages"]["waiting"]
    assert 0 < before["passages"]["oldest_seconds"] < 86_400
    assert set(few.values()) == {0}
