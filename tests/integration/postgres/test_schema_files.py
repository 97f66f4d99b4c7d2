"""The files of the schema and the migrations make the same database; the comparison sees differences of each class."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from recollect.postgres import migrate as migrating
from recollect.postgres import schema
from recollect.postgres.migrate import ROLES, Migration, migrate, migrations
from recollect_local.postgres import LocalPostgres
from tests.support.schema_catalog import QUERIES, Catalog, catalog_of, differences

FOLDER = Path(schema.__file__).parent

BREAKS = {
    "extensions": "CREATE EXTENSION pg_prewarm",
    "schemas": "GRANT CREATE ON SCHEMA recollect TO recollect_app",
    "tables": "ALTER TABLE recollect.nodes SET (fillfactor = 81)",
    "columns": "ALTER TABLE recollect.relations ALTER COLUMN ordinal TYPE bigint",
    "defaults": "ALTER TABLE recollect.tenants ALTER COLUMN plan SET DEFAULT 'free'",
    "constraints": "ALTER TABLE recollect.members DROP CONSTRAINT members_role_check",
    "indexes": "DROP INDEX recollect.passages_live",
    "policies": "ALTER POLICY tenant_isolation ON recollect.nodes USING (true)",
    "row_level_security": "ALTER TABLE recollect.nodes DISABLE ROW LEVEL SECURITY",
    "views": "ALTER VIEW recollect.versions RESET (security_invoker)",
    "rules": "CREATE RULE kept AS ON DELETE TO recollect.plans DO INSTEAD NOTHING",
    "functions": "ALTER FUNCTION recollect.find_api_key SECURITY INVOKER",
    "triggers": "ALTER TABLE recollect.audit_log DISABLE TRIGGER append_only",
    "event_triggers": "CREATE EVENT TRIGGER seen ON ddl_command_start EXECUTE FUNCTION public.watch()",
    "sequences": "ALTER SEQUENCE recollect.operator_log_id_seq INCREMENT 2",
    "types": "ALTER TYPE recollect.feeling ADD VALUE 'dull'",
    "publications": "CREATE PUBLICATION of_all FOR ALL TABLES",
    "statistics": "ALTER STATISTICS recollect.pairs SET STATISTICS 5",
    "ownership": "ALTER TABLE recollect.plans OWNER TO recollect_operator",
    "grants": "GRANT SELECT ON recollect.people TO recollect_app",
    "comments": "COMMENT ON TABLE recollect.nodes IS 'other'",
    "rows": "DELETE FROM recollect.plans WHERE name = 'team'",
}
"""For each class of objects, a change that is seen in it."""

MORE_BREAKS = [
    ("columns", "ALTER TABLE recollect.plans ADD COLUMN odd text"),
    (
        "columns",  # Their order.
        "ALTER TABLE recollect.sessions RENAME confined_to TO odd; "
        "ALTER TABLE recollect.sessions RENAME provider_id TO confined_to; "
        "ALTER TABLE recollect.sessions RENAME odd TO provider_id",
    ),
    ("columns", "ALTER TABLE recollect.passages ALTER COLUMN text SET STATISTICS 7"),
    ("defaults", "ALTER TABLE recollect.tenants ALTER COLUMN name SET DEFAULT ''"),
    (
        "functions",
        "CREATE OR REPLACE FUNCTION recollect.counted_bytes(head recollect.graph_heads) RETURNS bigint "
        "LANGUAGE sql IMMUTABLE AS 'SELECT 1::bigint'",
    ),
    ("triggers", "DROP TRIGGER stored_bytes_insert ON recollect.nodes"),
    ("views", "CREATE OR REPLACE VIEW recollect.search_nodes AS SELECT * FROM recollect.nodes"),
    ("grants", "GRANT EXECUTE ON FUNCTION recollect.end_hold TO PUBLIC"),
    ("grants", "REVOKE UPDATE (name) ON recollect.people FROM recollect_app"),
    ("constraints", "ALTER TABLE recollect.nodes ALTER CONSTRAINT nodes_tenant_id_graph_id_fkey NOT DEFERRABLE"),
    ("row_level_security", "ALTER TABLE recollect.plans FORCE ROW LEVEL SECURITY"),
    ("comments", "COMMENT ON COLUMN recollect.nodes.name IS 'other'"),
    ("ownership", "ALTER FUNCTION recollect.end_hold OWNER TO recollect_operator"),
]
"""Other changes, of the classes that have several kinds."""

IN_BOTH = """
    CREATE FUNCTION public.watch() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
    CREATE TYPE recollect.feeling AS ENUM ('glad');
    CREATE STATISTICS recollect.pairs ON kind, status FROM recollect.nodes
"""
"""Objects of classes that the schema has none of, so that they can be changed."""


async def made_by(postgres: LocalPostgres, name: str, patch: pytest.MonkeyPatch, made: list[Migration]) -> str:
    """The address of a new database of this name, made by these migrations alone."""
    administrator = await asyncpg.connect(postgres.url())
    await administrator.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    await administrator.close()
    url = postgres.url().replace("/recollect?", f"/{name}?")
    with patch.context() as only:
        only.setattr(migrating, "migrations", lambda: made)
        await migrate(url)
    return url


@pytest.fixture(scope="module")
async def both(postgres: LocalPostgres) -> AsyncIterator[tuple[asyncpg.Connection, asyncpg.Connection]]:
    """Administrators' connections to a database of all migrations, and to one of the files."""
    patch = pytest.MonkeyPatch()
    as_files = [Migration(migrating.BASELINE, schema.statements())]
    urls = [
        await made_by(postgres, "of_migrations", patch, migrations()),
        await made_by(postgres, "of_schema_files", patch, as_files),
    ]
    one, other = [await asyncpg.connect(url) for url in urls]
    yield one, other
    await one.close()
    await other.close()


async def test_migrations_make_what_the_files_say(both: tuple[asyncpg.Connection, asyncpg.Connection]) -> None:
    of_migrations, of_files = [await catalog_of(connection) for connection in both]
    assert differences(of_migrations, of_files) == []
    assert {kind for kind, objects in of_files.items() if objects} > {"policies", "functions", "comments", "sequences"}


def test_every_class_is_broken_once() -> None:
    assert BREAKS.keys() == QUERIES.keys()


async def broken(connection: asyncpg.Connection, before: Catalog, change: str) -> set[str]:
    """The classes in which this change is seen. It is rolled back."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(change)
        return {line.partition(" ")[0] for line in differences(before, await catalog_of(connection))}
    finally:
        await transaction.rollback()


async def test_a_difference_of_each_class_is_seen(
    both: tuple[asyncpg.Connection, asyncpg.Connection], subtests: pytest.Subtests
) -> None:
    _, connection = both
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(IN_BOTH)
        before = await catalog_of(connection)
        assert await broken(connection, before, "SELECT 1") == set()
        for kind, change in [*BREAKS.items(), *MORE_BREAKS]:
            with subtests.test(kind, change=change):
                assert kind in await broken(connection, before, change)
    finally:
        await transaction.rollback()


def test_every_file_is_loaded_once() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.sql")) == sorted([*schema.BEFORE, *schema.FILES])


def test_each_function_table_and_view_is_created_once() -> None:
    created = re.findall(
        r"^CREATE (?:FUNCTION (\w+\([^)]*\))|(?:TABLE|VIEW) (\w+))", schema.statements(), re.MULTILINE | re.DOTALL
    )
    names = [function or relation for function, relation in created]
    assert len(names) == len(set(names)) > 150


def test_each_table_view_and_function_says_what_it_is_for() -> None:
    """Above it, or for a table in comments.sql; a function with the name of the one before it shares its comment."""
    text = schema.statements()
    described = set(re.findall(r"^COMMENT ON (?:TABLE|VIEW) (\w+)", text, re.MULTILINE))
    assert set(re.findall(r"^CREATE (?:TABLE|VIEW) (\w+)", text, re.MULTILINE)) == described
    functions = re.findall(r"(^.*\n)CREATE FUNCTION (\w+)", text, re.MULTILINE)
    before, bare = "", []
    for line, name in functions:
        if not (line.startswith("--") or name == before or name.partition("_bytes_")[1] or name.endswith("_record")):
            bare.append(name)
        before = name
    assert bare == []


async def test_roles_are_those_of_the_file(both: tuple[asyncpg.Connection, asyncpg.Connection]) -> None:
    """None is a superuser, passes row-level security by, or may create roles or databases; all may log in."""
    rows = await both[0].fetch("SELECT * FROM pg_roles WHERE rolname = ANY ($1)", [*ROLES])
    assert {row["rolname"] for row in rows} == set(ROLES)
    for row in rows:
        rights = [row[name] for name in ("rolsuper", "rolbypassrls", "rolcreaterole", "rolcreatedb", "rolreplication")]
        assert (rights, row["rolcanlogin"]) == ([False] * 5, True), row["rolname"]
    assert await both[0].fetchval("SELECT pg_has_role('recollect_maintenance', 'recollect_owner', 'MEMBER')")
    assert not await both[0].fetchval("SELECT pg_has_role('recollect_app', 'recollect_owner', 'MEMBER')")
