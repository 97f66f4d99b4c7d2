"""A worker that does every second what is done every ten minutes, in small steps (`python -m tests.restless`).

And what must come of it when such workers are killed.
"""

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from recollect.curation import expiry
from recollect.jobs.model import Job
from recollect.retention import service as compaction
from recollect.settings import Settings
from recollect_workers import schedule
from recollect_workers.main import main
from tests.bounds import lower
from tests.gateway import eventually
from tests.jobs import Desk
from tests.workers import begun, working

HASTY = {
    "sweep_seconds": 1,
    "job_lease_seconds": 4,
    "embedding_lease_seconds": 2,
    "lock_timeout_seconds": 2,
    "statement_timeout_seconds": 10,
}
"""Short waits, so that what was lost comes back soon."""

WORKER = "tests.restless"
PATIENCE_SECONDS = 60
KILLS = 2
STEP = 10


async def outlived(
    settings: Settings, folder: Path, chance: random.Random, holds: Callable[[], Awaitable[bool]]
) -> None:
    """Wait for what must hold in the end, however many workers are killed at it; two do the rest."""
    for _ in range(KILLS):
        with working(settings, folder, WORKER) as worker:
            await begun(worker)
            await asyncio.sleep(chance.uniform(0, 1))
            worker.stop(signal.SIGKILL)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(working(settings, folder, WORKER))
        await eventually(holds, seconds=PATIENCE_SECONDS)


async def has_succeeded(desk: Desk, job: Job) -> bool:
    shown = await desk.look(job)
    assert shown.status in ("queued", "running", "succeeded"), shown
    return shown.is_finished


if __name__ == "__main__":
    schedule.PURGE_SECONDS = schedule.CHECK_SECONDS = 1.0
    for step in (compaction.compact, expiry.archive_expired, expiry.purge_expired):
        lower(pytest.MonkeyPatch(), step, limit=STEP)
    main()
