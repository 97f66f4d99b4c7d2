"""A worker that does every second what is usually done every ten minutes, in small steps.

It is run by `python -m tests.support.busy_worker`. `outlived` kills such workers, and waits for the outcome.
"""

import random
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from recollect.jobs.model import Job
from recollect.retention.compaction import service as compaction
from recollect.retention.expiry import service as expiry
from recollect.settings import Settings
from recollect_workers import schedule
from recollect_workers.main import main
from tests.support.bounds import lower
from tests.support.gateway import eventually
from tests.support.jobs import Desk
from tests.support.workers import killed, working

HASTY = {"sweep_seconds": 1, "job_lease_seconds": 20, "embedding_lease_seconds": 20}
"""Short waits. A lease is long enough for a busy machine: those of killed workers are ended."""

WORKER = "tests.support.busy_worker"
KILLS = 2
STEP = 10


async def outlived(
    settings: Settings, folder: Path, chance: random.Random, holds: Callable[[], Awaitable[bool]]
) -> None:
    """Kill some workers, then let two finish the work, until the condition is true."""
    for _ in range(KILLS):
        await killed(settings, folder, chance, seconds=1, module=WORKER)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(working(settings, folder, WORKER))
        await eventually(holds)


async def has_succeeded(desk: Desk, job: Job) -> bool:
    shown = await desk.look(job)
    assert shown.status in ("queued", "running", "succeeded"), shown
    return shown.is_finished


if __name__ == "__main__":
    schedule.PURGE_SECONDS = schedule.CHECK_SECONDS = 1.0
    for step in (compaction.compact, expiry.archive_expired, expiry.purge_expired):
        lower(pytest.MonkeyPatch(), step, limit=STEP)
    main()
