"""What one call may take of its gateway: time of the event loop, and memory (docs/limits.md)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2

from tests.support.watched_gateway import read_heartbeat

MAX_HELD = 0.05
"""Seconds of processor time for which a call may block the event loop."""

MAX_TAKEN = 150 * 2**20
"""Bytes of memory that a call may take."""

MAX_TAKEN_BY_CUT = 60 * 2**20
"""Bytes for a call about more than a reply holds: what does not fit is not read."""

MAX_RESIDENT = 600 * 2**20
"""Bytes of memory that the gateway may have at any time."""


@asynccontextmanager
async def within_bounds(http: httpx2.AsyncClient, max_taken: int = MAX_TAKEN) -> AsyncIterator[None]:
    """Require that the calls inside neither block the event loop of a watched gateway nor take much memory."""
    before = await read_heartbeat(http)
    yield
    after = await read_heartbeat(http)
    assert after.loop < MAX_HELD * after.slowness, (
        f"the loop was held for {after.loop:.3f} s, {after.slowness:.1f} times slow"
    )
    taken = after.peak - before.memory
    assert taken < max_taken, f"{taken // 2**20} MB were taken"
    assert after.peak < MAX_RESIDENT, f"{after.peak // 2**20} MB in all"
