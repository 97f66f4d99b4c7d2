"""Migrations of an empty database, repeated, concurrent, and by logins with fewer rights."""

import asyncio
import itertools
import tempfile
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from recollect.errors import ErrorCode, InvalidInput, Unavailable
from recollect.postgres.migrate import LOCK_KEY, ROLES, Migration, MigrationFailed, migrate, migrations
from recollect_local.postgres import LocalPostgres
from tests.support.gateway import eventually

NAMES = [migration.name for migration in migrations()]

_serial = itertools.count(1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalPostgres]:
    """A server for this file alone, since roles belong to the whole server."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        server = LocalPostgres(Path(folder), settings={"fsync": "off", "synchronous_commit": "off"})
        server.start()
        yield server
        server.stop()


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


NewDatabase = Callable[..., Awaitable[str]]


@pytest.fixture
async def new_database(cluster: LocalPostgres) -> NewDatabase:
    """Makes empty databases; returns their names."""

    async def make(owner: str = "postgres", encoding: str = "ENCODING UTF8") -> str:
        name = f"database_{next(_serial)}"
        async with connected(cluster.url()) as connection:
            await connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 OWNER {owner} {encoding}")
        return name

    return make


def url_of(cluster: LocalPostgres, database: str, login: str = "postgres") -> str:
    return cluster.url(login).replace("/recollect?", f"/{database}?")


@pytest.fixture
async def empty(cluster: LocalPostgres, new_database: NewDatabase) -> str:
    """The administrator's address of an empty database."""
    return url_of(cluster, await new_database())


async def without_roles(cluster: LocalPostgres) -> None:
    """Remove our roles and databases from the server."""
    async with connected(cluster.url()) as connection:
        databases = await connection.fetch("SELECT datname FROM pg_database WHERE datname LIKE 'database\\_%'")
        for row in databases:
            await connection.execute(f"DROP DATABASE {row['datname']} WITH (FORCE)")
        for role in ROLES:
            await connection.execute(f"DROP ROLE IF EXISTS {role}")


async def roles_of(url: str) -> set[str]:
    async with connected(url) as connection:
        rows = await connection.fetch("SELECT rolname FROM pg_roles WHERE rolname LIKE 'recollect\\_%'")
    return {row["rolname"] for row in rows}


async def works(url: str) -> bool:
    """Whether the application's role can read the tables, and the owner owns them."""
    async with connected(url) as connection:
        await connection.execute("SET ROLE recollect_app")
        assert await connection.fetchval("SELECT count(*) FROM recollect.nodes") == 0
        owners = await connection.fetch("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'recollect'")
        return [row["tableowner"] for row in owners] == ["recollect_owner"]


async def test_an_empty_server_is_migrated_once(cluster: LocalPostgres, new_database: NewDatabase) -> None:
    await without_roles(cluster)
    url = url_of(cluster, await new_database())
    assert await migrate(url) == NAMES
    assert await roles_of(url) == set(ROLES)
    assert await works(url)
    assert await migrate(url) == []


async def test_a_second_database_of_a_server_is_migrated(cluster: LocalPostgres, new_database: NewDatabase) -> None:
    for _ in range(2):
        url = url_of(cluster, await new_database())
        assert await migrate(url) == NAMES
        assert await works(url)


async def test_concurrent_migrations_run_once(empty: str) -> None:
    done = await asyncio.gather(*(migrate(empty) for _ in range(5)))
    assert sorted(done) == [[]] * 4 + [NAMES]
    assert await works(empty)


async def test_databases_of_an_empty_server_are_migrated_concurrently(
    cluster: LocalPostgres, new_database: NewDatabase
) -> None:
    """They have different advisory locks and the same roles."""
    await without_roles(cluster)
    urls = [url_of(cluster, await new_database()) for _ in range(3)]
    assert await asyncio.gather(*(migrate(url) for url in urls)) == [NAMES] * 3
    for url in urls:
        assert await works(url)


async def test_a_missing_role_is_created(empty: str) -> None:
    await migrate(empty)
    async with connected(empty) as connection:
        await connection.execute("DROP ROLE recollect_maintenance")
    assert await migrate(empty) == []
    assert await roles_of(empty) == set(ROLES)
    async with connected(empty) as connection:
        assert await connection.fetchval("SELECT pg_has_role('recollect_maintenance', 'recollect_owner', 'MEMBER')")


async def test_the_owner_can_migrate_a_prepared_database(cluster: LocalPostgres, new_database: NewDatabase) -> None:
    database = await new_database()
    await migrate(url_of(cluster, database))
    async with connected(url_of(cluster, database)) as connection:
        await connection.execute("DROP SCHEMA recollect CASCADE; CREATE SCHEMA recollect AUTHORIZATION recollect_owner")
    assert await migrate(url_of(cluster, database, "recollect_owner")) == NAMES
    assert await works(url_of(cluster, database))


async def test_the_owner_is_told_to_have_a_missing_role_created(
    cluster: LocalPostgres, new_database: NewDatabase
) -> None:
    """As in a database that was made before a role was added."""
    database = await new_database()
    await migrate(url_of(cluster, database))
    remedy = r"CREATE ROLE recollect_operator LOGIN [A-Z ]+; GRANT recollect_owner TO recollect_maintenance;$"
    async with connected(url_of(cluster, database)) as connection:
        await connection.execute("ALTER ROLE recollect_operator RENAME TO another")
        try:
            with pytest.raises(MigrationFailed, match=f"administrator: {remedy}"):
                await migrate(url_of(cluster, database, "recollect_owner"))
        finally:
            await connection.execute("ALTER ROLE another RENAME TO recollect_operator")
    assert await migrate(url_of(cluster, database, "recollect_owner")) == []


async def test_an_administrator_of_a_managed_server_can_migrate(
    cluster: LocalPostgres, new_database: NewDatabase
) -> None:
    """The administrator is no superuser, creates roles and owns the database; the server has pgvector."""
    await without_roles(cluster)
    async with connected(cluster.url()) as connection:
        await connection.execute("CREATE ROLE administrator LOGIN CREATEROLE")
    database = await new_database("administrator")
    async with connected(url_of(cluster, database)) as connection:
        await connection.execute("CREATE EXTENSION vector")
    url = url_of(cluster, database, "administrator")
    assert await migrate(url) == NAMES
    assert await migrate(url) == []
    assert await works(url)


@pytest.mark.proves("security: application-creates-nothing")
@pytest.mark.parametrize("login", ["postgres", "administrator"])
async def test_the_application_may_not_create_temporary_objects(
    cluster: LocalPostgres, new_database: NewDatabase, login: str
) -> None:
    """Nor in a database that an earlier version migrated. The owner of the database revokes that right; others leave
    it.
    """
    await without_roles(cluster)
    async with connected(cluster.url()) as connection:
        if login != "postgres":
            await connection.execute("DROP ROLE IF EXISTS administrator; CREATE ROLE administrator LOGIN CREATEROLE")
    database = await new_database(login)
    url = url_of(cluster, database, login)
    async with connected(url_of(cluster, database)) as connection:
        await connection.execute("CREATE EXTENSION vector")
        asked = "SELECT has_database_privilege('recollect_app', current_database(), 'TEMPORARY')"
        await migrate(url)
        assert not await connection.fetchval(asked)
        await connection.execute(f"GRANT TEMPORARY ON DATABASE {database} TO PUBLIC")
        assert await migrate(url_of(cluster, database, "recollect_owner")) == []
        assert await connection.fetchval(asked)
        assert await migrate(url) == []
        assert not await connection.fetchval(asked)


@pytest.mark.parametrize("prepared", [False, True], ids=["new", "prepared"])
@pytest.mark.parametrize("old", ["0.7.4", "0.4.10"])
async def test_an_old_pgvector_is_refused_with_a_remedy(empty: str, old: str, prepared: bool) -> None:
    if prepared:
        await migrate(empty)
    async with connected(empty) as connection:
        await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        here = await connection.fetchval("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        await connection.execute("UPDATE pg_extension SET extversion = $1 WHERE extname = 'vector'", old)
    with pytest.raises(MigrationFailed, match=f"0.8 or newer is needed; this database has {old}.*ALTER EXTENSION"):
        await migrate(empty)
    for newer in ("0.10.0", here):
        async with connected(empty) as connection:
            await connection.execute("UPDATE pg_extension SET extversion = $1 WHERE extname = 'vector'", newer)
        await migrate(empty)


@pytest.mark.parametrize("login", ["stranger", "recollect_app"])
async def test_a_login_without_rights_is_refused_with_a_remedy(
    cluster: LocalPostgres, new_database: NewDatabase, login: str
) -> None:
    database = await new_database()
    await migrate(url_of(cluster, await new_database()))
    async with connected(cluster.url()) as connection:
        await connection.execute("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN")
    with pytest.raises(MigrationFailed, match="needs a login that may create roles and extensions"):
        await migrate(url_of(cluster, database, login))
    await migrate(url_of(cluster, database))
    with pytest.raises(MigrationFailed, match='permission denied to set role "recollect_owner"'):
        await migrate(url_of(cluster, database, login))


async def test_a_database_in_another_encoding_than_utf8_is_refused(
    cluster: LocalPostgres, new_database: NewDatabase
) -> None:
    """As in a cluster that was made without a locale: it stores bytes, and folds only letters of ASCII."""
    narrow = url_of(cluster, await new_database(encoding="ENCODING SQL_ASCII LOCALE_PROVIDER libc LOCALE 'C'"))
    with pytest.raises(MigrationFailed, match=r"encoding SQL_ASCII.*ENCODING 'UTF8' TEMPLATE template0"):
        await migrate(narrow)
    async with connected(narrow) as connection:
        assert await connection.fetchval("SELECT to_regnamespace('recollect') IS NULL")
        await connection.execute(
            "CREATE SCHEMA recollect"
        )  # As in a database of an older version, which is still migrated.
    with pytest.raises(MigrationFailed, match="pgvector"):
        await migrate(narrow)


async def test_a_changed_migration_is_refused(empty: str) -> None:
    await migrate(empty)
    async with connected(empty) as connection:
        await connection.execute(
            "UPDATE recollect.schema_migrations SET checksum = 'another' WHERE name = $1", NAMES[0]
        )
    with pytest.raises(MigrationFailed, match=f"{NAMES[0]} was changed after it was applied"):
        await migrate(empty)


async def test_a_database_of_before_the_baseline_is_refused_and_left_as_it_is(empty: str) -> None:
    await migrate(empty)
    async with connected(empty) as connection:
        await connection.execute("UPDATE recollect.schema_migrations SET name = '0001_foundation'")
        before = await connection.fetch("SELECT * FROM recollect.schema_migrations")
        with pytest.raises(MigrationFailed, match=r"before 0\.2\.0.*its first migration is 0001_foundation.*Export"):
            await migrate(empty)
        assert await connection.fetch("SELECT * FROM recollect.schema_migrations") == before


async def test_a_newer_database_is_left_unchanged(empty: str) -> None:
    await migrate(empty)
    async with connected(empty) as connection:
        await connection.execute(
            "INSERT INTO recollect.schema_migrations (name, checksum) VALUES ('9999_of_tomorrow', 'x')"
        )
    with pytest.raises(MigrationFailed, match="newer than this version of Recollect: it has 9999_of_tomorrow"):
        await migrate(empty)


async def test_a_failed_migration_is_rolled_back_and_can_be_repeated(empty: str) -> None:
    await migrate(empty)
    async with connected(empty) as connection:
        await connection.execute("DROP SCHEMA recollect CASCADE; CREATE SCHEMA recollect AUTHORIZATION recollect_owner")
        await connection.execute("CREATE TABLE recollect.passages (in_the_way int)")
    with pytest.raises(MigrationFailed, match='relation "passages" already exists'):
        await migrate(empty)
    async with connected(empty) as connection:
        assert await connection.fetchval("SELECT to_regclass('recollect.nodes')") is None
        await connection.execute("DROP TABLE recollect.passages")
    assert await migrate(empty) == NAMES


async def test_waiting_for_another_migration_times_out(empty: str) -> None:
    async with connected(empty) as connection:
        await connection.execute("SELECT pg_advisory_lock($1)", LOCK_KEY)
        with pytest.raises(Unavailable, match="Another migration is under way") as refused:
            await migrate(empty, lock_timeout_seconds=0.1)
    assert refused.value.code is ErrorCode.BUSY
    assert await migrate(empty) == NAMES


@pytest.fixture
async def pending(empty: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database that lacks one migration, which locks one table and then another."""
    await migrate(empty)
    one_more = Migration("9999_both", "ALTER TABLE tenants ADD COLUMN odd int; ALTER TABLE nodes ADD COLUMN odd int")
    every = [*migrations(), one_more]
    monkeypatch.setattr("recollect.postgres.migrate.migrations", lambda: every)
    return empty


async def test_a_deadlock_with_a_call_fails_the_migration_attempt_and_not_the_call(pending: str) -> None:
    async with connected(pending) as call:
        async with call.transaction():
            await call.execute("LOCK TABLE recollect.nodes IN ACCESS SHARE MODE")
            migrating = asyncio.create_task(migrate(pending))
            waiting = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
            await eventually(lambda: call.fetchval(waiting))
            assert await call.fetchval("SELECT count(*) FROM recollect.tenants") == 0
        assert await migrating == ["9999_both"]


async def test_a_migration_whose_tables_stay_in_use_is_rolled_back(
    pending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.postgres.migrate.ATTEMPTS", 2)
    async with connected(pending) as call, call.transaction():
        await call.execute("LOCK TABLE recollect.nodes IN ACCESS SHARE MODE")
        with pytest.raises(Unavailable, match="9999_both found its tables in use 2 times"):
            await migrate(pending)
        assert await call.fetchval("SELECT count(*) FROM information_schema.columns WHERE column_name = 'odd'") == 0
    assert await migrate(pending) == ["9999_both"]


async def test_an_unreachable_server_is_reported_by_host_and_port(tmp_path: Path) -> None:
    for server, url in ((str(tmp_path), f"/recollect?host={tmp_path}"), ("127.0.0.1:9", "127.0.0.1:9/recollect")):
        with pytest.raises(Unavailable, match="Cannot reach the database for migrations") as refused:
            await migrate(f"postgresql://somebody:secret@{url}")
        assert f" at {server} (" in str(refused.value)
        assert "secret" not in str(refused.value)


async def test_the_servers_refusal_is_reported(cluster: LocalPostgres) -> None:
    with pytest.raises(Unavailable, match=r'\(database "of_nobody" does not exist\): check RECOLLECT_OWNER'):
        await migrate(url_of(cluster, "of_nobody"))


@pytest.mark.parametrize("url", ["7hunder", "postgresql://recollect_owner:7hun/der@127.0.0.1/recollect"])
async def test_an_unreadable_address_is_not_shown(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"^RECOLLECT_OWNER_DATABASE_URL: It is not the address") as refused:
        await migrate(url)
    assert "7hun" not in "".join(traceback.format_exception(refused.value))


def test_migrations_are_numbered_without_gaps() -> None:
    assert [int(name.partition("_")[0]) for name in NAMES] == list(range(1, len(NAMES) + 1))
