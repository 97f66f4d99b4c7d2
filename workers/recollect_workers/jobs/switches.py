"""End the switches of moves whose mover has ended, even of tenants for which no calls come."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from recollect.cells.reaching import session_in_cell
from recollect.cells.switches import end_open_switches
from recollect.errors import InvalidInput, Unavailable
from recollect.postgres.transactions import Session
from recollect.settings.cells import HOME
from recollect_workers.context import WorkerContext

MOST = 100
"""The most switches that one sweep ends."""


async def end(context: WorkerContext) -> None:
    """End open switches, which the home cell lists, this worker's own. Raises Unavailable where that is unreachable."""

    @asynccontextmanager
    async def session_at(cell: str) -> AsyncIterator[Session]:
        if cell == HOME:
            async with context.database.system() as session:
                yield session
            return
        try:
            async with session_in_cell(context.settings, cell) as session:
                yield session
        except InvalidInput as error:
            raise Unavailable(f"RECOLLECT_CELLS does not say where the cell {cell!r} is.") from error

    await end_open_switches(session_at, most=MOST)
