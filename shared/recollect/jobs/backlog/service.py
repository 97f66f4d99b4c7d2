"""Use cases of the backlog."""

from recollect.jobs.backlog import store
from recollect.jobs.backlog.model import Backlog, MovesAtStep
from recollect.postgres.database import Database

MOST_COUNTED = 100_000
"""A queue is counted up to this number: beyond it, its exact size matters to nobody."""


async def measure_backlog(db: Database) -> list[Backlog]:
    """How much waits in each queue, of all active tenants. Raises Unavailable."""
    async with db.system() as session:
        return await store.waiting_work(session, most=MOST_COUNTED)


async def measure_moves(db: Database) -> list[MovesAtStep]:
    """The moves of tenants by their steps; only the home cell has them. Raises Unavailable."""
    async with db.system() as session:
        return await store.moves_in_progress(session)
