"""Switches of tenants that nobody ended: whoever moved one is gone, and neither of two cells serves it.

The source has said that the tenant departed, and tells since then the secret by which the target lets it be there.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from uuid import UUID

import structlog

from recollect.errors import Unavailable
from recollect.platform.cells import store
from recollect.platform.cells.model import Departure
from recollect.platform.transactions import Session
from recollect.settings.cells import HOME

log = structlog.get_logger(__name__)

SessionAt = Callable[[str], AbstractAsyncContextManager[Session]]
"""A session of no tenant in the cell of that name; raises Unavailable."""


async def end_switches(
    session_at: SessionAt,
    sources: Iterable[str],
    *,
    tenants: Sequence[UUID] = (),
    slugs: Sequence[str] = (),
    hashes: Sequence[bytes] = (),
) -> bool:
    """Have these tenants be where they move to, as far as they departed from one of these cells; whether one is now.

    Named as for `store.find_places`. Where a cell is away, nothing becomes of it.
    """
    are_ended = False
    for source in sources:
        try:
            async with session_at(source) as session:
                found = await store.find_departures(session, tenants=tenants, slugs=slugs, hashes=hashes)
            for departure in found:
                are_ended |= await _end(session_at, departure)
        except Unavailable as error:
            log.warning("a move's switch waits for a cell that is away", cell=source, reason=str(error))
    return are_ended


async def _end(session_at: SessionAt, departure: Departure) -> bool:
    """Each of the two may be done again, by anybody: they change nothing then."""
    async with session_at(departure.target) as session:
        is_there = await store.end_switch(session, departure)
    if is_there:
        async with session_at(HOME) as session:
            await store.follow_move(session, departure)
        log.warning("ended the switch of a move that was interrupted", tenant=str(departure.tenant_id))
    return is_there
