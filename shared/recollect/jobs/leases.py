"""Use cases of jobs for the worker: claim a job, record the result of a step, release the job, fail it.

Each of them checks the job's lease. If another worker has it, LeaseLost is raised and the transaction rolls back.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from recollect.jobs import store
from recollect.jobs.model import (
    MAX_ATTEMPTS,
    WORKER_LOST,
    Failure,
    Job,
    JobBounds,
    LeaseLost,
    StepPostponed,
    StepResult,
    failure_of,
    wait_before,
)
from recollect.jobs.service import announce_end, get_job, require_chunks, require_room
from recollect.postgres.database import Database
from recollect.postgres.transactions import Transaction

REMOVED_AT_ONCE = 10
"""The most jobs that one transaction removes: each may have stored much."""

NOW = timedelta(0)


async def tenants_with_due(db: Database) -> list[UUID]:
    """Tenants that have a due job, or one to remove."""
    async with db.system() as session:
        return await store.tenants_with_due(session)


async def claim_job(tx: Transaction, kinds: Iterable[str], bounds: JobBounds) -> Job | None:
    """Claim the tenant's next due job of these kinds; no other worker gets it while the lease lasts.

    None if no job is due, or if the limit of running jobs is reached. Also removes jobs beyond their retention.
    """
    await store.remove_expired(tx, limit=REMOVED_AT_ONCE)
    await store.lock_claims(tx)
    job_id = await store.claim_job(tx, sorted(kinds), bounds)
    return None if job_id is None else await get_job(tx, job_id)


async def record_step(tx: Transaction, job: Job, step: StepResult, bounds: JobBounds) -> Job:
    """Record the result of a step, as the last statements of the step's transaction; the job as it is after it.

    Raises LeaseLost, or TooLarge where the tenant's jobs would store too much.
    """
    cancel_requested = await store.record_step(tx, job, step, lease=bounds.lease)
    if cancel_requested is None:
        raise LeaseLost("Another worker has this job.")
    if step.output:
        require_chunks(step.output)
        await store.insert_outputs(tx, job.id, step.output)
        await require_room(tx, bounds)
    if step.finished:
        await _finish(tx, job, "succeeded", bounds, result=step.result)
    return replace(
        job,
        cursor=step.cursor,
        done=step.done,
        total=step.total,
        attempts=1,
        cancel_requested=cancel_requested,
        finished_at=datetime.now(UTC) if step.finished else None,
    )


async def release_job(tx: Transaction, job: Job, bounds: JobBounds) -> None:
    """End a turn: the job waits for its next turn, or ends if its cancellation was requested. Raises LeaseLost."""
    if job.cancel_requested:
        await _finish(tx, job, "cancelled", bounds)
    elif not await store.release_job(tx, job, attempts=0, wait=NOW):
        raise LeaseLost("Another worker has this job.")


async def record_failure(tx: Transaction, job: Job, failure: Failure, bounds: JobBounds) -> bool:
    """Record why a step failed; True if it will be retried after a wait. Raises LeaseLost."""
    if not failure.is_retryable or job.attempts >= MAX_ATTEMPTS:
        await _finish(tx, job, "failed", bounds, failure=failure)
        return False
    error = (str(failure.code), failure.message)
    if not await store.release_job(tx, job, attempts=job.attempts, wait=wait_before(job.attempts), error=error):
        raise LeaseLost("Another worker has this job.")
    return True


async def postpone_job(tx: Transaction, job: Job, postponed: StepPostponed) -> None:
    """Release a job that has to wait; the current attempt counts only where that says so. Raises LeaseLost."""
    failure = failure_of(postponed.reason)
    error = (str(failure.code), failure.message)
    attempts = job.attempts if postponed.counts else job.attempts - 1
    if not await store.release_job(tx, job, attempts=attempts, wait=postponed.wait, error=error):
        raise LeaseLost("Another worker has this job.")


async def fail_lost_job(tx: Transaction, job: Job, bounds: JobBounds) -> None:
    """Fail a job whose next step no worker survived. Raises LeaseLost."""
    await _finish(tx, job, "failed", bounds, failure=WORKER_LOST)


async def _finish(
    tx: Transaction,
    job: Job,
    status: str,
    bounds: JobBounds,
    *,
    result: dict[str, Any] | None = None,
    failure: Failure | None = None,
) -> None:
    error = (str(failure.code), failure.message) if failure else None
    if not await store.finish_job(tx, job, status, retention=bounds.retention, result=result, error=error):
        raise LeaseLost("Another worker has this job.")
    await store.drop_stored(tx, job.id, output=status != "succeeded")
    announce_end(tx, job)
