"""Queries of the backlog."""

from datetime import datetime

from recollect.jobs.backlog.model import Backlog, FailedWork, MovesAtStep
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session

queries = Queries(__package__)


async def waiting_work(session: Session, *, most: int) -> list[Backlog]:
    """Each queue, counted up to `most`."""
    return [Backlog(**row) for row in await session.fetch(queries.waiting_work, most=most)]


async def failed_work(session: Session, since: datetime) -> list[FailedWork]:
    """Failed jobs by their kind and error."""
    return [FailedWork(**row) for row in await session.fetch(queries.failed_work, since=since)]


async def moves_in_progress(session: Session) -> list[MovesAtStep]:
    """Each step of moves."""
    return [MovesAtStep(**row) for row in await session.fetch(queries.moves_in_progress)]
