"""A process of one cell reaches another one for a moment, without a pool that stays."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from recollect.errors import ErrorCode, Unavailable
from recollect.platform.db import Database
from recollect.platform.schema.service import SchemaCheck
from recollect.platform.transactions import Session
from recollect.settings import Settings


@asynccontextmanager
async def reached(settings: Settings, cell: str) -> AsyncIterator[Session]:
    """A session of no tenant in that cell.

    Raises Unavailable, also where the cell is older than this version, or what is done takes longer than
    `database_acquire_seconds`; InvalidInput where the settings do not know it.
    """
    its = settings.of_cell(cell)
    try:
        async with (
            asyncio.timeout(its.database_acquire_seconds),
            Database.connect(its.database_url, settings=its) as db,
        ):
            await SchemaCheck(db).require_current()
            async with db.system() as session:
                yield session
    except TimeoutError:
        raise Unavailable("The database is busy. Try again in a moment.", code=ErrorCode.BUSY) from None
