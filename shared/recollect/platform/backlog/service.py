"""Use cases of the backlog."""

from recollect.platform.backlog import store
from recollect.platform.backlog.model import Backlog, MovesAtStep
from recollect.platform.db import Database

MOST_COUNTED = 100_000
"""Nobody needs to know more exactly how much too much waits."""


async def measure_backlog(db: Database) -> list[Backlog]:
    """What waits in each queue, of all tenants that are active. Raises Unavailable."""
    async with db.system() as session:
        return await store.waiting_work(session, most=MOST_COUNTED)


async def measure_moves(db: Database) -> list[MovesAtStep]:
    """The moves of tenants by their steps, which home has noted, and no other cell. Raises Unavailable."""
    async with db.system() as session:
        return await store.moves_under_way(session)
