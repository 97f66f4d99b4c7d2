"""Workers of a cell do its tenants' work, and no others'."""

from pathlib import Path

import asyncpg
from redis.asyncio import Redis

from recollect.caller import Caller
from recollect.platform.cells.service import Cells
from recollect.platform.queue import QUEUE_NAME
from recollect.settings import Settings
from tests.support.cells import OTHER
from tests.support.gateway import eventually
from tests.support.workers import begun, embedded_within, remember, waiting, working


async def test_each_cell_has_workers_of_its_own_which_its_writes_wake(
    celled: Settings,
    cells: Cells,
    native: Caller,
    resident: Caller,
    owner: asyncpg.Connection,
    owner_b: asyncpg.Connection,
    no_backlog: None,
    tmp_path: Path,
) -> None:
    async with Redis.from_url(celled.redis_url) as redis:
        await redis.delete(QUEUE_NAME, f"{QUEUE_NAME}:{OTHER}")
        await remember(cells, native, "Ada")
        await remember(cells, resident, "Ada")

        async def is_woken() -> bool:
            return bool(await redis.zcard(QUEUE_NAME) == await redis.zcard(f"{QUEUE_NAME}:{OTHER}") == 1)

        await eventually(is_woken)
    with working(celled.model_copy(update={"cell": OTHER}), tmp_path) as worker:
        await begun(worker)
        assert await embedded_within(owner_b, resident)
    assert await waiting(owner, native) > 0
