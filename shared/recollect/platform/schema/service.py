"""Use cases of the schema's version.

A database may be newer than whoever asks: while a new version is rolled out, the old one goes on beside it, and may
start again. It may not be older: a query would meet columns that are not there.
"""

import asyncpg

from recollect.errors import Unavailable
from recollect.platform.db import Database
from recollect.platform.migrate import migrations
from recollect.platform.schema import store
from recollect.platform.schema.model import outdated


class SchemaCheck:
    """Asks until the database has every migration of this version; from then on it is known, and nothing is asked.

    `may_be_away`: it is one cell of several, without which the others are served.
    """

    def __init__(self, db: Database, wanted: list[str] | None = None, *, may_be_away: bool = False) -> None:
        self._db, self._may_be_away = db, may_be_away
        self._wanted = [migration.name for migration in migrations()] if wanted is None else wanted
        self._is_known = False

    async def require_current(self) -> None:
        """Return where the database has them all; raises Unavailable where it lacks one, or is away."""
        if self._is_known:
            return
        try:
            lacks = await self._missing()
        except Unavailable:
            if self._may_be_away:
                return
            raise
        if lacks:
            raise outdated(lacks[0])
        self._is_known = True

    async def _missing(self) -> list[str]:
        async with self._db.system() as session:
            try:
                return await store.missing_migrations(session, wanted=self._wanted)
            except (asyncpg.UndefinedFunctionError, asyncpg.InvalidSchemaNameError):
                return self._wanted[-1:]  # It is older than the function, or was never migrated.
