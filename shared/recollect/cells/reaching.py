"""Short connections from a process of one cell to another cell, without a lasting pool."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from recollect.cells.fan_out import unanswered
from recollect.postgres.database import Database
from recollect.postgres.schema_version.service import SchemaCheck
from recollect.postgres.transactions import Session
from recollect.settings import Settings


@asynccontextmanager
async def session_in_cell(settings: Settings, cell: str) -> AsyncIterator[Session]:
    """A session without a tenant in that cell.

    Raises Unavailable, also where the cell's schema is older than this version, or the block takes longer than
    `database_acquire_seconds`; InvalidInput where the settings do not know the cell.
    """
    cell_settings = settings.of_cell(cell)
    try:
        async with (
            asyncio.timeout(cell_settings.database_acquire_seconds),
            Database.connect(cell_settings.database_url, settings=cell_settings) as db,
        ):
            await SchemaCheck(db).require_current()
            async with db.system() as session:
                yield session
    except TimeoutError:
        raise unanswered() from None
