"""Take new statistics of tables where an erasure could not, because they were being analysed or vacuumed."""

from datetime import UTC, datetime, timedelta

from recollect.errors import Unavailable
from recollect.jobs.model import Job, StepPostponed, StepResult
from recollect.postgres.transactions import Transaction
from recollect.retention.erasure import service as erasure

AGAIN_AFTER = timedelta(seconds=30)
"""The time after which a table in use is tried again."""

GIVEN_UP_AFTER = timedelta(days=1)
"""Tables that remain by then are reported: such as an empty table on a server before 18, which cannot clear it."""


async def forget_statistics(tx: Transaction, job: Job) -> StepResult:
    """Take statistics of the remaining tables. Done counts tables. Raises StepPostponed while a table is locked."""
    before: list[str] = job.cursor.get("left_out", job.arguments["tables"])
    left_out = list(await erasure.forget_statistics(tx, before))
    is_given_up = datetime.now(UTC) - job.created_at > GIVEN_UP_AFTER
    if left_out and left_out == before and not is_given_up:
        raise StepPostponed(Unavailable("A table is locked by other work."), AGAIN_AFTER)
    done = job.done + len(before) - len(left_out)
    finished = not left_out or is_given_up
    return StepResult({"left_out": left_out}, done, job.total, finished=finished, result={"left_out": left_out})
