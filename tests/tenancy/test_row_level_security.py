"""PostgreSQL isolates tenants for any statement, by tables, views, roles and transactions."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import asyncpg
import pytest

from recollect.errors import Unavailable
from recollect.graph.graphs import service as graphs
from recollect.postgres.connections import APP_ROLE, OPERATOR_ROLE, OWNER_ROLE
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.postgres.transactions import Transaction
from recollect.retrieval.vector_indexes.model import PARTITIONS, partition_name
from recollect.settings import Settings
from tests.tenancy.conftest import Neighbour

VIEWS = """
    SELECT relname FROM pg_class WHERE relnamespace = 'recollect'::regnamespace AND relkind IN ('v', 'm')
        AND relname NOT IN ('tenants_here', 'tenants_staying') ORDER BY 1"""
BARRED = asyncpg.InsufficientPrivilegeError

Neighbours = tuple[Neighbour, Neighbour]


@pytest.fixture
async def views(owner: asyncpg.Connection) -> list[str]:
    """Every view that the application reads; views of tenants are for functions of the owner."""
    return [row["relname"] for row in await owner.fetch(VIEWS)]


def source(relation: str) -> str:
    """The table of a search view."""
    return relation.removeprefix("search_")


async def attempted(neighbour: Neighbour, statement: str) -> str:
    """The outcome of a statement of this tenant, which is rolled back: "UPDATE 0", or the reason of the refusal."""
    try:
        async with neighbour.db.transaction(neighbour.caller) as tx:
            raise _Done(await tx._connection.execute(statement))
    except (_Done, BARRED) as outcome:
        return str(outcome.args[0]).partition(' for table "')[0]


TABLES_OF_PERSONS = {"people", "sessions", "password_resets", "passkeys"}
"""Tables with rows of a person, regardless of the tenant: test_people.py."""

TABLES_OF_NOBODY = {"oauth_clients", "signing_keys", "passkey_challenges"}
"""Tables of which no policy shows a row: test_oauth.py, test_people.py."""

TABLES_OF_OPERATORS = {
    "tenant_deletions",
    "erasure_receipts",
    "operator_keys",
    "operator_sessions",
    "operator_log",
    "tenant_cells",
    "tenant_moves",
}
"""Tables whose rows only the operator API sees: test_operators.py."""


PARTS = {partition_name(number) for number in range(PARTITIONS)}
"""The partitions of the searched vectors."""


class _Done(Exception):
    """Carries an outcome out of a transaction, which is rolled back."""


async def test_every_table_is_classified(owner: asyncpg.Connection, tables: list[str]) -> None:
    """A new table belongs to tenants, to persons or to nobody, or is listed here."""
    relations = """
        SELECT relname FROM pg_class
        WHERE relnamespace = 'recollect'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"""
    everything = {row["relname"] for row in await owner.fetch(relations)}
    known = {"tenants", "plans", "schema_migrations", *TABLES_OF_PERSONS, *TABLES_OF_NOBODY, *TABLES_OF_OPERATORS}
    assert everything - set(tables) == known
    assert len(tables) >= 11


@pytest.mark.parametrize("view", ["tenants_here", "tenants_staying"])
async def test_only_the_owner_reads_the_views_of_tenants(owner: asyncpg.Connection, view: str) -> None:
    for role in (APP_ROLE, OPERATOR_ROLE):
        assert not await owner.fetchval("SELECT has_table_privilege($1, $2, 'SELECT')", role, view)


@pytest.mark.proves("security: row-level-security")
async def test_every_table_of_tenants_has_a_policy_and_keys_that_begin_with_the_tenant(
    owner: asyncpg.Connection, tables: list[str]
) -> None:
    secured = """
        SELECT c.relname FROM pg_class c JOIN pg_policies p ON p.schemaname = 'recollect' AND p.tablename = c.relname
        WHERE c.relnamespace = 'recollect'::regnamespace AND c.relrowsecurity AND p.permissive = 'PERMISSIVE'
            AND p.cmd = 'ALL' AND p.roles = '{public}' AND p.qual LIKE '%recollect.tenant_id%' AND p.with_check IS NULL
        GROUP BY c.relname HAVING count(*) = 1"""
    assert {row["relname"] for row in await owner.fetch(secured)} == {*tables, "tenants", "plans", *PARTS}
    first_columns = """
        SELECT c.conrelid::regclass::text AS "table", c.conname, a.attname FROM pg_constraint c
        JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
        WHERE c.connamespace = 'recollect'::regnamespace AND c.contype IN ('p', 'f')
            AND c.confrelid <> 'recollect.people'::regclass"""
    keys = [row for row in await owner.fetch(first_columns) if row["table"] in tables]
    assert {row["attname"] for row in keys} == {"tenant_id"}
    assert {row["table"] for row in keys} == set(tables)


@pytest.mark.proves("security: application-role")
async def test_the_application_role_and_its_memberships_own_nothing(owner: asyncpg.Connection) -> None:
    roles = await owner.fetch(
        """WITH RECURSIVE reach AS (
            SELECT oid FROM pg_roles WHERE rolname = $1
            UNION SELECT m.roleid FROM pg_auth_members m JOIN reach ON m.member = reach.oid
        )
        SELECT r.rolname, r.rolsuper, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb, r.rolreplication,
            (SELECT array_agg(c.oid::regclass::text) FROM pg_class c WHERE c.relowner = r.oid) AS relations,
            (SELECT array_agg(p.oid::regprocedure::text) FROM pg_proc p WHERE p.proowner = r.oid) AS functions,
            (SELECT array_agg(n.nspname) FROM pg_namespace n WHERE n.nspowner = r.oid) AS schemas
        FROM reach JOIN pg_roles r USING (oid)""",
        APP_ROLE,
    )
    assert [tuple(role) for role in roles] == [(APP_ROLE, False, False, False, False, False, None, None, None)]


async def test_the_application_role_has_no_right_that_bypasses_row_level_security(
    owner: asyncpg.Connection,
) -> None:
    maintain = ",MAINTAIN" if owner.get_server_version().major >= 17 else ""
    unseen = f"""
        SELECT c.relname, privilege
        FROM pg_class c, unnest('{{TRUNCATE,REFERENCES,TRIGGER{maintain}}}'::text[]) AS privilege
        WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind IN ('r', 'p', 'v')
            AND has_table_privilege($1, c.oid, privilege)
        UNION ALL SELECT nspname, 'CREATE' FROM pg_namespace
        WHERE nspname IN ('recollect', 'public') AND has_schema_privilege($1, oid, 'CREATE')"""
    assert await owner.fetch(unseen, APP_ROLE) == []


@pytest.mark.proves("security: application-creates-nothing")
@pytest.mark.parametrize(
    "made",
    [
        "TEMP TABLE graphs (id uuid)",
        "FUNCTION pg_temp.leak(told text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''%'', told; END'",
        "TABLE public.mine (id uuid)",
        "FUNCTION recollect.leak() RETURNS boolean RETURN true",
        "SCHEMA mine",
    ],
    ids=lambda made: " ".join(made.split()[:2]),
)
async def test_the_application_can_create_nothing_in_the_database(attacker: asyncpg.Connection, made: str) -> None:
    """In particular no function, which could see the rows on which search conditions are evaluated."""
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await attacker.execute(f"CREATE {made}")


@pytest.mark.proves("security: application-role")
async def test_the_application_can_neither_become_the_owner_nor_turn_row_security_off(
    attacker: asyncpg.Connection, unchanged_neighbours: Neighbours
) -> None:
    for role in (OWNER_ROLE, "recollect_maintenance", "postgres"):
        with pytest.raises(BARRED):
            await attacker.execute(f"SET ROLE {role}")
    await attacker.execute("SET row_security = off")
    with pytest.raises(BARRED, match="would be affected by row-level security"):
        await attacker.fetch("SELECT * FROM nodes")


@pytest.mark.proves("security: no-tenant-no-rows")
async def test_without_a_tenant_no_rows_are_visible(
    db: Database, unchanged_neighbours: Neighbours, owner: asyncpg.Connection, tables: list[str], views: list[str]
) -> None:
    assert views == [
        "search_aliases",
        "search_nodes",
        "search_observations",
        "search_passages",
        "search_terms",
        "versions",
    ]
    for relation in [*tables, "tenants", *views]:
        assert await owner.fetchval(f"SELECT count(*) FROM {source(relation)}") > 0
        async with db.system() as session:
            assert await session.fetchval(Query.compile(f"SELECT count(*) FROM {relation}")) == 0, relation


async def test_a_tenant_sees_only_its_own_rows(
    unchanged_neighbours: Neighbours, owner: asyncpg.Connection, tables: list[str], views: list[str]
) -> None:
    for neighbour in unchanged_neighbours:
        tenant_id = neighbour.caller.tenant_id
        async with neighbour.db.transaction(neighbour.caller, read_only=True) as tx:
            for relation in [*tables, *views]:
                count = f"SELECT count(*), count(*) FILTER (WHERE tenant_id <> :tenant_id) FROM {relation}"
                mine, others = await tx.fetchrow(Query.compile(count)) or (None, None)
                stored = await owner.fetchval(
                    f"SELECT count(*) FROM {source(relation)} WHERE tenant_id = $1", tenant_id
                )
                assert (mine, others) == (stored, 0), relation
                assert stored > 0, relation
            assert [row["id"] for row in await tx.fetch(Query.compile("SELECT id FROM tenants"))] == [tenant_id]


async def test_a_tenant_sees_only_its_own_plan(neighbours: Neighbours, owner: asyncpg.Connection, db: Database) -> None:
    mine, other = neighbours
    await owner.execute("INSERT INTO plans (name, graphs) VALUES ('for-the-other', 7) ON CONFLICT DO NOTHING")
    await owner.execute("UPDATE tenants SET plan = 'for-the-other' WHERE id = $1", other.caller.tenant_id)
    every_plan = Query.compile("SELECT name FROM plans")
    for neighbour, plan in ((mine, "unlimited"), (other, "for-the-other")):
        async with neighbour.db.transaction(neighbour.caller, read_only=True) as tx:
            assert [row["name"] for row in await tx.fetch(every_plan)] == [plan]
    async with db.system() as session:
        assert await session.fetch(every_plan) == []


ATTACKS = {
    "insert": """INSERT INTO {table} ({columns})
        SELECT {columns} FROM (
            SELECT (jsonb_populate_record(x, '{{"tenant_id": "{other}"}}')).* FROM {table} x LIMIT 1
        ) AS changed""",
    "move": "UPDATE {table} SET tenant_id = '{other}'",
    "take": "UPDATE {table} SET tenant_id = '{mine}' WHERE tenant_id = '{other}'",
    "update": "UPDATE {table} SET {column} = {column} WHERE tenant_id = '{other}'",
    "delete": "DELETE FROM {table} WHERE tenant_id = '{other}'",
}
AGAINST_POLICY = "new row violates row-level security policy"
OUTCOMES = {
    "insert": AGAINST_POLICY,
    "move": AGAINST_POLICY,
    "take": "UPDATE 0",
    "update": "UPDATE 0",
    "delete": "DELETE 0",
}
WITHOUT_RIGHT = {
    "changes": {"move", "take", "update", "delete"},
    "audit_log": {"move", "take", "update", "delete"},
    "deletion_requests": {"insert", "move", "take", "update"},
    "api_keys": {"move", "take", "delete"},
    "invitations": {"move", "take", "delete"},
    "members": {"move", "take"},
    "oauth_grants": {"move", "take"},
    "oauth_codes": {"move", "take"},
    "oauth_access_tokens": {"move", "take"},
    "oauth_refresh_tokens": {"move", "take"},
    "identity_providers": {"move", "take"},
    "trusted_issuers": {"move", "take"},
    "email_domains": {"move", "take"},
    "provider_identities": {"move", "take"},
    "provider_sign_ins": {"move", "take", "update"},
}
"""The log is never rewritten, keys and invitations are never deleted: the application lacks these rights."""
UPDATABLE = {
    "api_keys": "last_used_at",
    "invitations": "revoked_at",
    "members": "role",
    "oauth_grants": "revoked_at",
    "oauth_codes": "used_at",
    "oauth_access_tokens": "revoked_at",
    "oauth_refresh_tokens": "uses",
    "identity_providers": "name",
    "trusted_issuers": "name",
    "email_domains": "role",
    "provider_identities": "last_used_at",
}
"""A column that may be updated, for tables where not all may."""


@pytest.fixture
async def columns(owner: asyncpg.Connection, tables: list[str]) -> dict[str, str]:
    """The columns of each table, without generated ones, into which nobody inserts."""
    rows = await owner.fetch(
        """SELECT t.name, string_agg(quote_ident(a.attname), ', ') AS columns
        FROM unnest($1::text[]) AS t (name) JOIN pg_attribute a ON a.attrelid = t.name::regclass
        WHERE a.attnum > 0 AND a.attgenerated = '' AND NOT a.attisdropped GROUP BY t.name""",
        tables,
    )
    return {row["name"]: row["columns"] for row in rows}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_tenant_cannot_touch_anothers_rows(
    unchanged_neighbours: Neighbours, tables: list[str], columns: dict[str, str], attack: str
) -> None:
    mine, other = unchanged_neighbours
    for table in tables:
        column = UPDATABLE.get(table, "tenant_id")
        ids = {"mine": mine.caller.tenant_id, "other": other.caller.tenant_id}
        outcome = await attempted(
            mine, ATTACKS[attack].format(table=table, column=column, columns=columns[table], **ids)
        )
        barred = attack in WITHOUT_RIGHT.get(table, ())
        assert outcome == (f"permission denied for table {table}" if barred else OUTCOMES[attack]), table


async def test_the_same_statements_change_the_tenants_own_rows(
    unchanged_neighbours: Neighbours, tables: list[str], columns: dict[str, str]
) -> None:
    """This shows that the attacks failed because of the other tenant, not because of the statement."""
    mine, _ = unchanged_neighbours
    own = {"mine": mine.caller.tenant_id, "other": mine.caller.tenant_id}
    for table in set(tables) - set(WITHOUT_RIGHT):
        for attack in ("move", "take", "update"):
            outcome = await attempted(mine, ATTACKS[attack].format(table=table, column="tenant_id", **own))
            assert re.fullmatch(r"UPDATE [1-9]\d*", outcome), (table, attack, outcome)
        with pytest.raises(asyncpg.UniqueViolationError):
            await attempted(mine, ATTACKS["insert"].format(table=table, columns=columns[table], **own))


@pytest.mark.parametrize("relation", ["tenants", "plans", "schema_migrations", "search_nodes"])
async def test_global_tables_cannot_be_written(unchanged_neighbours: Neighbours, relation: str) -> None:
    assert (
        await attempted(unchanged_neighbours[0], f"DELETE FROM {relation}") == f"permission denied for {KIND[relation]}"
    )


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE plans SET graphs = NULL",
        "INSERT INTO plans (name) VALUES ('mine')",
        "UPDATE tenants SET plan = 'business'",
    ],
)
async def test_a_tenant_cannot_change_its_plan(unchanged_neighbours: Neighbours, statement: str) -> None:
    table = "tenants" if "tenants" in statement else "plans"
    assert await attempted(unchanged_neighbours[0], statement) == f"permission denied for table {table}"


KIND = {
    "tenants": "table tenants",
    "plans": "table plans",
    "schema_migrations": "table schema_migrations",
    "search_nodes": "view search_nodes",
}


# Transactions: the tenant is set from the first statement to the last, and no longer.


async def tenant_of(connection: Transaction) -> str | None:
    value: str | None = await connection.fetchval(
        Query.compile("SELECT nullif(current_setting('recollect.tenant_id', true), '')")
    )
    return value


@pytest.fixture
async def one_connection(settings: Settings) -> AsyncIterator[Database]:
    """A pool of one connection, so that the next transaction meets whatever one leaves behind."""
    narrow = settings.model_copy(update={"database_pool_size": 1})
    async with Database.connect(settings.database_url, settings=narrow) as db:
        yield db


async def broken(tx: Transaction) -> None:
    await tx.execute(Query.compile("SELECT 1 / 0"))


async def left(tx: Transaction) -> None:
    raise RuntimeError("left in the middle")


async def cancelled(tx: Transaction) -> None:
    await asyncio.wait_for(tx.execute(Query.compile("SELECT pg_sleep(10)")), 0.05)


async def finished(tx: Transaction) -> None:
    await tx.execute(Query.compile("SELECT 1"))


@pytest.mark.proves("security: no-tenant-no-rows")
@pytest.mark.parametrize("end", [finished, broken, left, cancelled])
async def test_a_pooled_connection_forgets_its_tenant(
    one_connection: Database, unchanged_neighbours: Neighbours, end: Callable[[Transaction], Awaitable[None]]
) -> None:
    mine, other = unchanged_neighbours
    with suppress(asyncpg.DivisionByZeroError, RuntimeError, Unavailable):
        async with one_connection.transaction(mine.caller) as tx:
            assert await tenant_of(tx) == str(mine.caller.tenant_id)
            await end(tx)
    async with one_connection.system() as session:
        assert await session.fetchval(Query.compile("SELECT current_setting('recollect.tenant_id', true)")) in (
            None,
            "",
        )
        assert await session.fetchval(Query.compile("SELECT count(*) FROM nodes")) == 0
        assert await session.fetchval(Query.compile("SELECT pg_current_xact_id_if_assigned() IS NULL"))
    async with one_connection.transaction(other.caller) as tx:
        assert await tenant_of(tx) == str(other.caller.tenant_id)


@pytest.mark.proves("rules: read-only-tools-write-nothing", "security: read-only-transactions")
async def test_a_read_only_transaction_cannot_write(unchanged_neighbours: Neighbours) -> None:
    """Also where a read-only tool would call a use case that writes."""
    mine, _ = unchanged_neighbours
    with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
        async with mine.db.transaction(mine.caller, read_only=True) as tx, graphs.write_graph(tx, None, "test"):
            pass
    with pytest.raises(asyncpg.ActiveSQLTransactionError, match="read-write mode must be set before any query"):
        async with mine.db.transaction(mine.caller, read_only=True) as tx:
            await tx.execute(Query.compile("SET TRANSACTION READ WRITE"))


async def test_a_read_sees_one_state(neighbours: Neighbours) -> None:
    mine, _ = neighbours
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        before = await tx.fetchval(Query.compile("SELECT count(*) FROM nodes"))
        await mine.create("made meanwhile")
        assert await tx.fetchval(Query.compile("SELECT count(*) FROM nodes")) == before


async def test_a_suppressed_error_in_a_transaction_fails_the_commit(
    settings: Settings, unchanged_neighbours: Neighbours
) -> None:
    """PostgreSQL answers COMMIT of a failed transaction with ROLLBACK, and no error."""
    caller, woken = unchanged_neighbours[0].caller, []

    async def swallowing(db: Database) -> None:
        async with db.transaction(caller) as tx:
            tx.wake("anything")
            with suppress(asyncpg.DivisionByZeroError):
                await tx.execute(Query.compile("SELECT 1 / 0"))

    async with Database.connect(
        settings.database_url, settings=settings, on_commit=lambda *told: woken.append(told)
    ) as db:
        with pytest.raises(asyncpg.InFailedSQLTransactionError):
            await swallowing(db)
    assert woken == []
