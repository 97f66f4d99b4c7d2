"""Use cases of the schema's version.

A database may be newer than whoever asks: while a new version is rolled out, the old one goes on beside it, and may
start again. It may not be older: a query would meet columns that are not there.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg

from recollect.errors import ErrorCode, Unavailable
from recollect.platform.db import Database
from recollect.platform.migrate import migrations
from recollect.platform.schema import store
from recollect.platform.schema.model import outdated
from recollect.platform.transactions import Session

UNDEFINED = (
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedColumnError,
    asyncpg.UndefinedFunctionError,
    asyncpg.InvalidSchemaNameError,
)
"""What a query of this version meets in a database that lacks a migration, or that was never migrated."""

ANSWERED_WITHIN = 1.0
"""Seconds within which a cell answers to be counted as usable, where there are several."""


class SchemaCheck:
    """Asks until the database has every migration of this version; from then on it is known, and nothing is asked."""

    def __init__(self, db: Database, wanted: list[str] | None = None) -> None:
        self._db = db
        self._wanted = _all_migrations() if wanted is None else wanted
        self._is_known = False

    async def require_current(self) -> None:
        """Return where the database has them all; raises Unavailable where it lacks one, or is away."""
        if self._is_known:
            return
        if lacks := await self._missing():
            raise outdated(lacks[0])
        self._is_known = True

    async def require_usable(self) -> None:
        """Return where the database has them all and answers; raises Unavailable."""
        await self.require_current()
        await self._db.ping()

    async def _missing(self) -> list[str]:
        async with self._db.system() as session:
            return await _missing_of(session, self._wanted)


@asynccontextmanager
async def told_outdated(session: Session) -> AsyncIterator[None]:
    """For what asks without a check before: raise Unavailable where it met what is not there, since a migration lacks.

    Nothing is asked unless something fails, which then has left no transaction open in this session.
    """
    try:
        yield
    except UNDEFINED as error:
        if lacks := await _missing_of(session, _all_migrations()):
            raise outdated(lacks[0]) from error
        raise


def _all_migrations() -> list[str]:
    return [migration.name for migration in migrations()]


async def _missing_of(session: Session, wanted: list[str]) -> list[str]:
    try:
        return await store.missing_migrations(session, wanted=wanted)
    except UNDEFINED:
        return wanted[-1:]  # It is older than the function, or was never migrated.


async def require_any_usable(home: SchemaCheck, others: Sequence[SchemaCheck]) -> None:
    """Return where home is usable or, while it is away, another cell, which then serves its own tenants.

    The others are asked at once; each is waited for no longer than ANSWERED_WITHIN. Raises Unavailable, for what home
    says; also where home is older than this version: whoever deploys one migrates it first.
    """
    if not others:
        await home.require_usable()
        return
    trouble = await _trouble_of(home)
    if trouble is None:
        return
    if trouble.code == ErrorCode.SCHEMA_OUTDATED:
        raise trouble
    if None not in await asyncio.gather(*map(_trouble_of, others)):
        raise trouble


async def _trouble_of(check: SchemaCheck) -> Unavailable | None:
    try:
        async with asyncio.timeout(ANSWERED_WITHIN):
            await check.require_usable()
    except Unavailable as error:
        return error
    except TimeoutError:
        return Unavailable("The database does not answer. Try again in a moment.")
    return None
