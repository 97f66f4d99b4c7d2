"""Forward-only migrations, applied in order of their names under one advisory lock.

A migration that was applied must never change: its checksum is kept and compared.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files

import asyncpg
import structlog

from recollect.errors import ErrorCode, InvalidInput, RecollectError, Unavailable
from recollect.postgres import schema
from recollect.postgres.connections import APP_ROLE, OWNER_ROLE
from recollect.postgres.driver_errors import translate
from recollect.settings.database import NO_DATABASE_ADDRESS, server_of

log = structlog.get_logger(__name__)

LOCK_KEY = 0x7265636F6C6C6563
"""The advisory lock's key: the letters "recollec"."""

TABLE_LOCK_MS = 500
"""Milliseconds that a migration waits for a table. Calls that ask for the table after it wait as long. Where a call and
the migration wait for each other, the migration gives up: PostgreSQL looks for deadlocks only after a second."""

ATTEMPTS, PAUSE_SECONDS = 100, 0.2
"""How often a migration is tried while its tables are in use, and the pause in between: a minute in all."""

ROLES = {name: sql for sql, name in re.findall(r"^(CREATE ROLE (\w+)[^;]*;)", schema.read("roles"), re.MULTILINE)}
"""The roles that every database needs, each with the statement that creates it."""

MEMBERSHIPS = re.findall(r"^GRANT[^;]*;", schema.read("roles"), re.MULTILINE)
"""Statements that make roles members of others; they may be repeated."""

BASELINE = "0001_baseline"
"""The first migration. Databases that others made are of versions that were never published."""

OLDEST_POSTGRESQL = 15
"""The oldest that squawk holds migrations to (.squawk.toml)."""

OLDEST_PGVECTOR = (0, 8)
"""The first release whose vector indexes go on searching (hnsw.iterative_scan) where a filter leaves too few rows."""


class MigrationFailed(RecollectError):
    """The database cannot be brought to this version; the message says what to do."""

    default_code = ErrorCode.INTERNAL


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of `recollect/postgres/migrations`."""

    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text, in hex."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations() -> list[Migration]:
    """Every migration, in the order in which they apply."""
    folder = files("recollect.postgres") / "migrations"
    found = [
        Migration(f.name.removesuffix(".sql"), f.read_text("utf-8"))
        for f in folder.iterdir()
        if f.name.endswith(".sql")
    ]
    return sorted(found, key=lambda migration: migration.name)


async def migrate(url: str, *, lock_timeout_seconds: float = 10.0) -> list[str]:
    """Bring the database at `url` to this version and return the names of the migrations applied now.

    Several processes may call at once: one works, the others wait and find nothing to do. The login must be allowed to
    create roles, or be `recollect_owner` in a database that was prepared before. Raises Unavailable, MigrationFailed,
    or InvalidInput where `url` cannot be parsed.
    """
    async with _locked_connection(url, lock_timeout_seconds) as connection:
        _require_postgresql(connection.get_server_version().major)
        await _require_every_script(connection)
        await _prepare(connection)
        await _require_pgvector(connection)
        await _forbid_temporary(connection)
        await connection.execute(f"SET ROLE {OWNER_ROLE}")
        await connection.execute("SET search_path = recollect, public")
        return [m.name for m in await _pending(connection) if await _apply(connection, m)]


@asynccontextmanager
async def _locked_connection(url: str, lock_timeout_seconds: float) -> AsyncIterator[asyncpg.Connection]:
    try:
        connection = await asyncpg.connect(url, timeout=10, server_settings={"application_name": "recollect-migrate"})
    except (OSError, asyncpg.PostgresError, TimeoutError) as error:
        reason = str(error) or "it does not answer"
        raise Unavailable(
            f"Cannot reach the database for migrations at {server_of(url)} ({reason}): check "
            "RECOLLECT_OWNER_DATABASE_URL."
        ) from error
    except ValueError:  # Without its cause, which shows parts of the address: they may hold a password.
        raise InvalidInput(NO_DATABASE_ADDRESS, path="RECOLLECT_OWNER_DATABASE_URL") from None
    try:
        await _lock(connection, lock_timeout_seconds)
        yield connection
    except asyncpg.PostgresError as error:
        raise translate(error) or MigrationFailed(f"Migration stopped: {error.args[0]}") from error
    finally:
        await connection.close()


async def _lock(connection: asyncpg.Connection, seconds: float) -> None:
    """Take the lock for migrations; raises Unavailable where another migration holds it for longer than `seconds`."""
    await connection.execute(f"SET lock_timeout = {round(seconds * 1000)}")
    try:
        await connection.execute("SELECT pg_advisory_lock($1)", LOCK_KEY)
    except asyncpg.LockNotAvailableError as error:
        raise Unavailable(
            "Another migration is under way. Try again when it has ended.", code=ErrorCode.BUSY
        ) from error


async def _prepare(connection: asyncpg.Connection) -> None:
    """Create missing roles, extensions and schema; needs rights only if something is missing."""
    existing = {row["rolname"] for row in await connection.fetch("SELECT rolname FROM pg_roles")}
    missing = [role for role in ROLES if role not in existing]
    if not missing and await connection.fetchval("SELECT to_regnamespace('recollect') IS NOT NULL"):
        return
    try:
        await _create_roles(connection, missing)
        await connection.execute(schema.read("extensions"))
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS recollect AUTHORIZATION {OWNER_ROLE}")
    except asyncpg.InsufficientPrivilegeError as error:
        if 0 < len(missing) < len(ROLES):
            statements = " ".join([*(ROLES[role] for role in missing), *MEMBERSHIPS])
            raise MigrationFailed(
                f"A role is missing that this login may not create. Run as an administrator: {statements}"
            ) from error
        raise MigrationFailed(
            "The first migration needs a login that may create roles and extensions. Run it once as an administrator."
        ) from error


def _require_postgresql(major: int) -> None:
    if major < OLDEST_POSTGRESQL:
        raise MigrationFailed(f"PostgreSQL {OLDEST_POSTGRESQL} or newer is needed; this server is {major}.")


async def _require_every_script(connection: asyncpg.Connection) -> None:
    """Raise MigrationFailed for a new database that could not hold texts of every script, or fold their case.

    A database that was migrated before is accepted as it is: its encoding holds the texts that it has.
    """
    encoding: str = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8" and await connection.fetchval("SELECT to_regnamespace('recollect') IS NULL"):
        raise MigrationFailed(
            f"The database has the encoding {encoding}, which cannot store texts in every script. Create it again: "
            "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0;"
        )


async def _require_pgvector(connection: asyncpg.Connection) -> None:
    version: str = await connection.fetchval("SELECT extversion FROM pg_extension WHERE extname = 'vector'") or "none"
    if tuple(int(number) for number in re.findall(r"\d+", version)) < OLDEST_PGVECTOR:
        raise MigrationFailed(
            f"pgvector 0.8 or newer is needed; this database has {version}. Install it on the server and run, as an "
            "administrator in this database: ALTER EXTENSION vector UPDATE;"
        )


async def _forbid_temporary(connection: asyncpg.Connection) -> None:
    """Forbid the application's role to create temporary objects, so that it can create nothing in the database.

    In each new database, PostgreSQL allows them to everybody. A warning says how to revoke it where the login may not.
    """
    if not await connection.fetchval("SELECT has_database_privilege($1, current_database(), 'TEMPORARY')", APP_ROLE):
        return
    format_statement = "SELECT format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC, recollect_app', current_database())"
    statement = await connection.fetchval(format_statement)
    if await connection.fetchval(_MAY_REVOKE):
        await connection.execute(statement)
    else:
        log.warning(
            "the application role can create temporary objects: run this statement as the database owner", sql=statement
        )


_MAY_REVOKE = "SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()"


async def _create_roles(connection: asyncpg.Connection, missing: list[str]) -> None:
    for role in missing:
        try:
            await connection.execute(ROLES[role])
        except (asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
            continue  # Roles belong to the whole cluster: the migration of another database has just created it.
    if not await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
        await connection.execute(f"GRANT {OWNER_ROLE}, recollect_app TO CURRENT_USER")
    for statement in MEMBERSHIPS:
        await connection.execute(statement)


async def _pending(connection: asyncpg.Connection) -> list[Migration]:
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations "
        "(name text PRIMARY KEY, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
    )
    applied = {row["name"]: row["checksum"] for row in await connection.fetch("SELECT * FROM schema_migrations")}
    if applied and BASELINE not in applied:
        raise MigrationFailed(
            "This database was made by a version of Recollect before 0.2.0, which was never released. It cannot be "
            f"upgraded: its first migration is {min(applied)}, not {BASELINE}. Export its graphs with that version, "
            "create a new database, and import them there."
        )
    if unknown := sorted(applied.keys() - {migration.name for migration in migrations()}):
        raise MigrationFailed(f"This database is newer than this version of Recollect: it has {unknown[0]}.")
    for migration in migrations():
        if applied.get(migration.name, migration.checksum) != migration.checksum:
            raise MigrationFailed(f"{migration.name} was changed after it was applied. Write a new migration instead.")
    return [migration for migration in migrations() if migration.name not in applied]


async def _apply(connection: asyncpg.Connection, migration: Migration) -> bool:
    """Apply a migration in one transaction, tried again while its tables are in use. Raises Unavailable."""
    for _ in range(ATTEMPTS):
        try:
            async with connection.transaction():
                await connection.execute(f"SET LOCAL lock_timeout = {TABLE_LOCK_MS}")
                await connection.execute(migration.sql)
                await connection.execute(
                    "INSERT INTO schema_migrations (name, checksum) VALUES ($1, $2)", migration.name, migration.checksum
                )
            return True
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            log.info("tables are in use, will retry the migration", migration=migration.name)
            await asyncio.sleep(PAUSE_SECONDS)
    raise Unavailable(
        f"{migration.name} found its tables in use {ATTEMPTS} times. It has changed nothing: try again when there is "
        "less traffic.",
        code=ErrorCode.BUSY,
    )
