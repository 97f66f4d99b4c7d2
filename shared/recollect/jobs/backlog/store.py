"""Queries of the backlog."""

from recollect.jobs.backlog.model import Backlog, MovesAtStep
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session

queries = Queries(__package__)


async def waiting_work(session: Session, *, most: int) -> list[Backlog]:
    """Each queue, counted up to `most`."""
    return [Backlog(**row) for row in await session.fetch(queries.waiting_work, most=most)]


async def moves_in_progress(session: Session) -> list[MovesAtStep]:
    """Each step of moves."""
    return [MovesAtStep(**row) for row in await session.fetch(queries.moves_in_progress)]
