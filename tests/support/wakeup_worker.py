"""A worker that looks for work only once, when it starts: later it works only after a wake-up.

Run it by `python -m tests.support.wakeup_worker`.
"""

from dataclasses import replace

import pytest
import structlog

from recollect_workers.context import WorkerContext
from recollect_workers.main import main
from recollect_workers.schedule import ScheduledJob, scheduled_jobs
from tests.support.jobs import KINDS

WORKER = "tests.support.wakeup_worker"
A_DAY = 86_400.0

log = structlog.get_logger(__name__)


def has_swept(what: str) -> str:
    """The event that is logged each time that it has looked for `passages` or `jobs`."""
    return f"sweep {what}: done"


def once(context: WorkerContext) -> list[ScheduledJob]:
    """The schedule of the worker with a day between regular runs. Work that is due at once still runs."""
    return [_rare(regular) for regular in scheduled_jobs(context)]


def _rare(regular: ScheduledJob) -> ScheduledJob:
    async def do(context: WorkerContext) -> None:
        await regular.job(context)
        log.info(f"{regular.name}: done")

    return replace(regular, job=do, seconds=A_DAY)


if __name__ == "__main__":
    pytest.MonkeyPatch().setattr("recollect_workers.main.scheduled_jobs", once)
    main(KINDS)
