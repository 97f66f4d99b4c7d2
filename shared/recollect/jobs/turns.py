"""Use cases of jobs for the worker: claim one, store what a step came to, give it back, let it fail.

Every one of them is lost on whoever no longer holds the job's lease: LeaseLost takes the transaction with it.
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
    PutOff,
    Step,
    failure_of,
    wait_before,
)
from recollect.jobs.service import get_job, require_chunks, require_room
from recollect.platform.db import Database, Transaction

REMOVED_AT_ONCE = 10
"""Jobs that one transaction removes, at most: each may have stored much."""

NOW = timedelta(0)


async def tenants_with_due(db: Database) -> list[UUID]:
    """Tenants that have a job to be worked on or to be removed."""
    async with db.system() as session:
        return await store.tenants_with_due(session)


async def claim(tx: Transaction, kinds: Iterable[str], bounds: JobBounds) -> Job | None:
    """Take the tenant's next job of these kinds that is due; nobody else has it while the lease lasts.

    None where there is none, or as many run as may. Removes jobs whose time is over on the way.
    """
    await store.remove_expired(tx, limit=REMOVED_AT_ONCE)
    await store.lock_claims(tx)
    job_id = await store.claim_job(tx, sorted(kinds), bounds)
    return None if job_id is None else await get_job(tx, job_id)


async def record_step(tx: Transaction, job: Job, step: Step, bounds: JobBounds) -> Job:
    """Store what a step came to, in its own transaction and as its last statements; the job as it stands then.

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


async def give_back(tx: Transaction, job: Job, bounds: JobBounds) -> None:
    """End a turn: the job waits for its next one, or ends if that was asked for. Raises LeaseLost."""
    if job.cancel_requested:
        await _finish(tx, job, "cancelled", bounds)
    elif not await store.release_job(tx, job, attempts=0, wait=NOW):
        raise LeaseLost("Another worker has this job.")


async def note_failure(tx: Transaction, job: Job, failure: Failure, bounds: JobBounds) -> bool:
    """Store why a step failed; whether it will be tried again, after a wait. Raises LeaseLost."""
    if not failure.again or job.attempts >= MAX_ATTEMPTS:
        await _finish(tx, job, "failed", bounds, failure=failure)
        return False
    error = (str(failure.code), failure.message)
    if not await store.release_job(tx, job, attempts=job.attempts, wait=wait_before(job.attempts), error=error):
        raise LeaseLost("Another worker has this job.")
    return True


async def put_off(tx: Transaction, job: Job, put_off: PutOff) -> None:
    """Give back a job that has to wait: the attempt that was begun does not count. Raises LeaseLost."""
    failure = failure_of(put_off.reason)
    error = (str(failure.code), failure.message)
    if not await store.release_job(tx, job, attempts=job.attempts - 1, wait=put_off.wait, error=error):
        raise LeaseLost("Another worker has this job.")


async def note_worker_lost(tx: Transaction, job: Job, bounds: JobBounds) -> None:
    """Fail a job whose step no worker survived. Raises LeaseLost."""
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
