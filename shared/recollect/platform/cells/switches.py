"""Switches of tenants that nobody ended: whoever moved one is gone, and neither of two cells serves it.

The source has said that the tenant departed, and tells since then the secret by which the target lets it be there. A
gateway ends the switch of the tenant that is asked for, and a worker of home those of all, whoever asks.
"""

from collections import defaultdict
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
    are_ended, away = False, set[str]()
    for source in sources:
        try:
            async with session_at(source) as session:
                found = await store.find_departures(session, tenants=tenants, slugs=slugs, hashes=hashes)
        except Unavailable as error:
            _put_off(source, error)
            continue
        for departure in found:
            if departure.target not in away:  # Of many that went there, one has waited for it.
                are_ended |= await _end(session_at, departure, away)
    return are_ended


async def end_open_switches(session_at: SessionAt, *, most: int) -> None:
    """Have so many tenants, at most, be where they move to whose mover is gone. Raises Unavailable where home is away.

    Of two that do so at once, the second changes nothing.
    """
    async with session_at(HOME) as session:
        found = await store.list_open_switches(session, most=most)
    leaving = defaultdict[str, list[UUID]](list)
    for switch in found:
        leaving[switch.source].append(switch.tenant_id)
    for source, tenants in leaving.items():
        await end_switches(session_at, [source], tenants=tenants)


async def _end(session_at: SessionAt, departure: Departure, away: set[str]) -> bool:
    """Each of the two may be done again, by anybody: they change nothing then. A target that is `away` is noted."""
    try:
        async with session_at(departure.target) as session:
            is_there = await store.end_switch(session, departure)
        if is_there:
            async with session_at(HOME) as session:
                await store.follow_move(session, departure)
            log.warning("ended the switch of a move that was interrupted", tenant=str(departure.tenant_id))
        return is_there
    except Unavailable as error:
        away.add(departure.target)
        _put_off(departure.target, error)
        return False


def _put_off(cell: str, error: Unavailable) -> None:
    log.warning("a move's switch waits for a cell that is away", cell=cell, reason=str(error))
