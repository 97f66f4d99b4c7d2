"""Use cases of the schema's version.

A database may be newer than this process: while a new version is rolled out, the old one still runs, and may
start again. It may not be older: queries would name columns that do not exist.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import asyncpg

from recollect.errors import ErrorCode, Unavailable
from recollect.postgres.clock_difference import difference
from recollect.postgres.database import Database
from recollect.postgres.migrate import migrations
from recollect.postgres.schema_version import store
from recollect.postgres.schema_version.model import outdated
from recollect.postgres.transactions import Session

UNDEFINED = (
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedColumnError,
    asyncpg.UndefinedFunctionError,
    asyncpg.InvalidSchemaNameError,
)
"""Errors of this version's queries in a database that lacks a migration, or that was never migrated."""

ANSWERED_WITHIN = 1.0
"""Seconds within which a cell must answer to count as usable, where there are several."""


class SchemaCheck:
    """Checks that the database has every migration of this version; once it has, the database is not asked again.

    `clock_ahead`: by how much the clock of this process was ahead of the database's when that last answered.
    """

    def __init__(self, db: Database, required: list[str] | None = None) -> None:
        self._db = db
        self._required = _all_migrations() if required is None else required
        self._is_current = False
        self.clock_ahead = timedelta(0)

    async def require_current(self) -> None:
        """Raise Unavailable where the database lacks a migration, or is unreachable."""
        if self._is_current:
            return
        if missing := await self._missing():
            raise outdated(missing[0])
        self._is_current = True

    async def require_usable(self) -> None:
        """Raise Unavailable where the database lacks a migration, or does not answer now."""
        await self.require_current()
        before = datetime.now(UTC)
        at = await self._db.ping()
        self.clock_ahead = difference(before, at, datetime.now(UTC))

    async def _missing(self) -> list[str]:
        async with self._db.system() as session:
            return await _missing_of(session, self._required)


@asynccontextmanager
async def translated_schema_errors(session: Session) -> AsyncIterator[None]:
    """For queries without a check before: raise Unavailable where they fail because a migration is missing.

    The migrations are only looked up after a failure, which must have left no transaction open in this session.
    """
    try:
        yield
    except UNDEFINED as error:
        if missing := await _missing_of(session, _all_migrations()):
            raise outdated(missing[0]) from error
        raise


def _all_migrations() -> list[str]:
    return [migration.name for migration in migrations()]


async def _missing_of(session: Session, required: list[str]) -> list[str]:
    try:
        return await store.missing_migrations(session, required=required)
    except UNDEFINED:
        return required[-1:]  # The database is older than the function, or was never migrated.


async def require_any_usable(home: SchemaCheck, others: Sequence[SchemaCheck]) -> None:
    """Return where home is usable or, while it is unreachable, another cell, which then serves its own tenants.

    The others are asked at once, and each has ANSWERED_WITHIN to answer. Raises the Unavailable of home, also where
    home is older than this version: a deployment migrates home first.
    """
    if not others:
        await home.require_usable()
        return
    failure = await _failure_of(home)
    if failure is None:
        return
    if failure.code == ErrorCode.SCHEMA_OUTDATED:
        raise failure
    if None not in await asyncio.gather(*map(_failure_of, others)):
        raise failure


async def _failure_of(check: SchemaCheck) -> Unavailable | None:
    try:
        async with asyncio.timeout(ANSWERED_WITHIN):
            await check.require_usable()
    except Unavailable as error:
        return error
    except TimeoutError:
        return Unavailable("The database does not answer. Try again in a moment.")
    return None
