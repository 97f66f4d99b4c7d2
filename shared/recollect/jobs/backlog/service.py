"""Use cases of the backlog."""

from datetime import datetime

from recollect.jobs.backlog import store
from recollect.jobs.backlog.model import Backlog, FailedWork, MovesAtStep
from recollect.postgres.database import Database
from recollect.postgres.transactions import Session

MOST_COUNTED = 100_000
"""A queue is counted up to this number: beyond it, its exact size matters to nobody."""


async def measure_backlog(db: Database) -> list[Backlog]:
    """How much waits in each queue, of all active tenants. Raises Unavailable."""
    async with db.system() as session:
        return await read_backlog(session)


async def read_backlog(session: Session) -> list[Backlog]:
    """The same, by a session that is open already, such as an operator's."""
    return await store.waiting_work(session, most=MOST_COUNTED)


async def list_failed_work(session: Session, since: datetime) -> list[FailedWork]:
    """Jobs of all tenants that failed since then, by their kind and error, the most frequent first, 100 at most."""
    return await store.failed_work(session, since)


async def measure_moves(db: Database) -> list[MovesAtStep]:
    """The moves of tenants by their steps; only the home cell has them. Raises Unavailable."""
    async with db.system() as session:
        return await store.moves_in_progress(session)
