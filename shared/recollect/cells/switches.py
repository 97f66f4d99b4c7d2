"""Unfinished switches: the process that moved a tenant has ended, and neither of the two cells serves the tenant.

The source has recorded that the tenant departed, with the secret by which the target accepts it. A gateway ends the
switch of a tenant for which it has a call, and a worker of the home cell ends those of all tenants.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from uuid import UUID

import structlog

from recollect.cells import store
from recollect.cells.model import TenantDeparture
from recollect.errors import Unavailable
from recollect.postgres.transactions import Session
from recollect.settings.cells import HOME

log = structlog.get_logger(__name__)

SessionAt = Callable[[str], AbstractAsyncContextManager[Session]]
"""Opens a session without a tenant in the cell of that name; raises Unavailable."""


async def end_switches(
    session_at: SessionAt,
    sources: Iterable[str],
    *,
    tenants: Sequence[UUID] = (),
    slugs: Sequence[str] = (),
    hashes: Sequence[bytes] = (),
) -> bool:
    """End the switches of these tenants from these source cells; whether any has ended.

    The tenants are given as for `store.find_tenant_states`. Switches whose source or target is unreachable are left for
    later.
    """
    has_ended, unreachable = False, set[str]()
    for source in sources:
        try:
            async with session_at(source) as session:
                found = await store.find_departures(session, tenants=tenants, slugs=slugs, hashes=hashes)
        except Unavailable as error:
            _log_postponed(source, error)
            continue
        for departure in found:
            if departure.target not in unreachable:  # Only one departure waits for it.
                has_ended |= await _end(session_at, departure, unreachable)
    return has_ended


async def end_open_switches(session_at: SessionAt, *, most: int) -> None:
    """End the switches of `most` tenants at most whose mover has ended. Raises Unavailable where home is unreachable.

    Of two processes that do this at once, the second changes nothing.
    """
    async with session_at(HOME) as session:
        found = await store.list_open_switches(session, most=most)
    tenants_by_source = defaultdict[str, list[UUID]](list)
    for switch in found:
        tenants_by_source[switch.source].append(switch.tenant_id)
    for source, tenants in tenants_by_source.items():
        await end_switches(session_at, [source], tenants=tenants)


async def _end(session_at: SessionAt, departure: TenantDeparture, unreachable: set[str]) -> bool:
    """End one switch; add a target that cannot be reached to `unreachable`. Both steps are idempotent."""
    try:
        async with session_at(departure.target) as session:
            has_arrived = await store.end_switch(session, departure)
        if has_arrived:
            async with session_at(HOME) as session:
                await store.follow_move(session, departure)
            log.warning("completed the switch of an interrupted move", tenant=str(departure.tenant_id))
        return has_arrived
    except Unavailable as error:
        unreachable.add(departure.target)
        _log_postponed(departure.target, error)
        return False


def _log_postponed(cell: str, error: Unavailable) -> None:
    log.warning("switch of a move waits for unavailable cell", cell=cell, reason=str(error))
