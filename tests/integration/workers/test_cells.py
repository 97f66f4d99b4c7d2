"""Workers of a cell do the work of its tenants and of no others."""

import asyncio
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
from redis.asyncio import Redis

from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.fairness import presence
from recollect.fairness.presence import PresenceReporter
from recollect.settings import Settings
from recollect.settings.cells import HOME
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import QUEUE_NAME
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding
from recollect_workers.main import run
from tests.support.cells import OTHER
from tests.support.gateway import eventually
from tests.support.workers import begun, embedded_within, remember, waiting, working


async def test_writes_wake_the_workers_of_their_tenants_cell(
    celled: Settings,
    cells: Databases,
    native: Caller,
    resident: Caller,
    owner: asyncpg.Connection,
    owner_b: asyncpg.Connection,
    no_backlog: None,
    tmp_path: Path,
) -> None:
    async with Redis.from_url(celled.redis_url) as redis:
        await redis.delete(QUEUE_NAME, f"{QUEUE_NAME}:{OTHER}")
        await remember(cells.of(native.tenant_id), native, "Ada")
        await remember(cells.of(resident.tenant_id), resident, "Ada")

        async def is_woken() -> bool:
            return bool(await redis.zcard(QUEUE_NAME) == await redis.zcard(f"{QUEUE_NAME}:{OTHER}") == 1)

        await eventually(is_woken)
    with working(celled.model_copy(update={"cell": OTHER}), tmp_path) as worker:
        await begun(worker)
        assert await embedded_within(owner_b, resident)
    assert await waiting(owner, native) > 0


@pytest.mark.parametrize(("cell", "rests"), [(HOME, False), (OTHER, True)])
async def test_a_worker_slows_down_only_for_calls_of_its_own_cell(
    celled: Settings, monkeypatch: pytest.MonkeyPatch, cell: str, *, rests: bool
) -> None:
    monkeypatch.setattr(presence, "_KEY", f"test:{uuid4()}")  # Gateways of other tests use another key.
    monkeypatch.setattr(presence, "PRESENT_SECONDS", 1000)
    monkeypatch.setattr(presence, "READ_SECONDS", celled.redis_timeout_seconds)  # Redis may be as slow as the machine.
    monkeypatch.setattr(presence, "REPORT_SECONDS", celled.redis_timeout_seconds)
    settings = celled.model_copy(update={"cell": cell, "bulk_share_beside_calls": 0.25})
    stopping, rested = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def sweep(context: WorkerContext) -> None:
        if not rested.done():
            rested.set_result(await context.is_slow(uuid4()))
            stopping.set()

    monkeypatch.setattr(embedding, "sweep", sweep)
    async with connect_redis(celled) as redis:
        teller = PresenceReporter(redis, lambda _: OTHER)
        teller.note(uuid4())
        await teller.aclose()
        await run(settings, stopping)
    assert rested.result() is rests
