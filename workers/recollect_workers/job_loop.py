"""The loop of jobs: take them from the table, run them in turns, retry what failed, and give up after some attempts.

A turn is a few seconds of one job, step by step; then the job waits behind those of the other tenants. A round gives
each tenant that has a due job one turn. So a tenant with five hundred jobs delays a tenant with one job by one turn at
most. A step is one transaction: its effect, the cursor and the progress commit together, if the worker still has the
lease. A worker that dies loses its current step only; the job is claimed again when the lease ends.

A step that leaves the job unchanged has only read its file up to the job's position, which another worker would have to
do again. Such steps do not count towards the seconds of a turn, so that every turn makes progress, however long it has
to read first.
"""

import asyncio
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

import structlog

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import worker_caller
from recollect.caller import Caller
from recollect.errors import (
    ErrorCode,
    RecollectError,
    TenantReadOnly,
    TenantSuspended,
    Unauthenticated,
    Unavailable,
)
from recollect.jobs import leases
from recollect.jobs.kinds import FINISHING
from recollect.jobs.model import (
    MAX_ATTEMPTS,
    WORKER_LOST,
    Job,
    JobBounds,
    LeaseLost,
    StepPostponed,
    StepRefused,
    failure_of,
)
from recollect.telemetry.metrics import record_job, record_job_step
from recollect.telemetry.tracing import continued_span, step_span
from recollect_workers.context import PreparedKind, WorkerContext
from recollect_workers.time_slices import TimeSlices, run_slices

SLICE_SECONDS = 5.0
"""How long a job runs before others have their turn. Its current step is finished first; see above for what counts."""

log = structlog.get_logger(__name__)


async def sweep(context: WorkerContext) -> None:
    """Run due jobs, announced or not, until none is left. Raises Unavailable if the database is unreachable.

    A worker runs one sweep at a time, which bounds the number of concurrent turns.
    """
    slices = TimeSlices(context.settings.max_jobs)
    await run_slices(slices, partial(_start_round, context, slices), due=context.jobs_due, stopping=context.stopping)


async def _start_round(context: WorkerContext, slices: TimeSlices) -> bool:
    """Begin a turn for each tenant that has a due job; True if there was any."""
    started = False
    for tenant_id in await leases.tenants_with_due(context.database):
        await slices.wait_for_capacity()
        if context.stopping.is_set():
            break
        job = await _attempt_claim(context, tenant_id)
        if job is not None:
            slices.begin(tenant_id, run_slice(context, tenant_id, job))
            started = True
    return started


async def _attempt_claim(context: WorkerContext, tenant_id: UUID) -> Job | None:
    try:
        async with context.database.transaction(worker_caller(tenant_id)) as tx:
            return await leases.claim_job(tx, context.kinds, JobBounds.of(context.settings))
    except Unavailable as error:
        if error.code is not ErrorCode.BUSY:
            raise
        # For example, a worker stalls in the middle of its claim: one tenant must not delay the turns of the others.
        log.warning("claim of a job failed, will retry", tenant=str(tenant_id), reason=str(error))
    except Exception:
        log.exception("claim of a job failed, will retry", tenant=str(tenant_id))
    return None


async def run_slice(context: WorkerContext, tenant_id: UUID, job: Job) -> None:
    """Run a claimed job for one turn, in the trace of the request that started it. Never raises."""
    caller = worker_caller(tenant_id, subject=job.created_by)
    carrier = {"traceparent": job.traceparent} if job.traceparent else {}
    with continued_span(job.kind, carrier) as span:
        span.set_attributes({"recollect.tenant.id": str(tenant_id), "recollect.job.id": str(job.id)})
        try:
            await _run_steps(context, caller, job)
        except LeaseLost:
            log.warning("job taken over by another worker", **_log_fields(caller, job))
        except RecollectError as error:
            log.warning(
                "job interrupted, will retry when its lease ends", **_log_fields(caller, job), reason=str(error)
            )
        except Exception:
            log.exception("job interrupted, will retry when its lease ends", **_log_fields(caller, job))


async def _run_steps(context: WorkerContext, caller: Caller, job: Job) -> None:
    bounds, deadline = JobBounds.of(context.settings), time.monotonic() + SLICE_SECONDS
    worker = worker_caller(caller.tenant_id)  # Its state is recorded by the worker, even while the tenant is suspended.
    if job.attempts > MAX_ATTEMPTS:
        async with context.database.transaction(worker) as tx:
            await leases.fail_lost_job(tx, job, bounds)
        _record(job, "failed", str(WORKER_LOST.code))
        log.error("job failed: no worker survived its next step", **_log_fields(caller, job))
        return
    is_over = job.cancel_requested
    while not is_over:
        previous = job
        try:
            async with context.part(caller.tenant_id):
                job = await take_step(context, caller, job)
        except LeaseLost:
            raise
        except StepPostponed as postponed:
            if postponed.counts and job.attempts >= MAX_ATTEMPTS:
                await _note_failure(context, caller, job, postponed.reason)
                return
            async with context.database.transaction(worker) as tx:
                await leases.postpone_job(tx, job, postponed)
            return
        except Exception as error:
            await _note_failure(context, caller, job, error)
            return
        is_over = job.is_finished or job.cancel_requested or context.stopping.is_set()
        if _has_progressed(previous, job):
            is_over = is_over or time.monotonic() >= deadline
        else:
            deadline = time.monotonic() + SLICE_SECONDS
    if job.is_finished:
        _record(job, "succeeded")
        log.info("job succeeded", **_log_fields(caller, job), done=job.done)
        return
    async with context.database.transaction(worker) as tx:
        await leases.release_job(tx, job, bounds)
    if job.cancel_requested:
        _record(job, "cancelled")


def _has_progressed(before: Job, after: Job) -> bool:
    return (before.cursor, before.done, before.total) != (after.cursor, after.done, after.total)


async def take_step(context: WorkerContext, caller: Caller, job: Job) -> Job:
    """Take one step in one transaction; the job as it is after it.

    Raises LeaseLost where another worker has the job, StepRefused where the key that started it is not valid any more,
    StepPostponed while the tenant is suspended, TimeoutError for a step that outlasts its lease, or the step's own
    error: then nothing of the step is left.
    """
    bounds, began, outcome = JobBounds.of(context.settings), time.perf_counter(), "failed"
    kind = context.kinds[job.kind]
    try:
        async with asyncio.timeout(bounds.lease.total_seconds()), AsyncExitStack() as stack:
            stack.enter_context(step_span(f"step {job.kind}", job_kind=job.kind, tenant_id=str(caller.tenant_id)))
            await _require_subject_active(context, caller, job)
            do_step = await kind.prepare(context, caller, job) if isinstance(kind, PreparedKind) else kind
            tx = await stack.enter_async_context(context.database.transaction(caller))
            step = await do_step(tx, job)
            job = await leases.record_step(tx, job, step, bounds)
        outcome = "finished" if job.is_finished else "done"
    except LeaseLost:
        outcome = "lost"
        raise
    except StepPostponed:
        outcome = "put_off"
        raise
    except (TenantReadOnly, TenantSuspended) as error:  # The tenant was suspended during the step.
        outcome = "put_off"
        raise _until_resumed(error) from None
    finally:
        record_job_step(job.kind, outcome, time.perf_counter() - began)
    return job


async def _require_subject_active(context: WorkerContext, caller: Caller, job: Job) -> None:
    """Raise StepRefused if the key that started the job is not valid any more, StepPostponed for a suspended tenant."""
    try:
        async with context.database.transaction(caller, read_only=True) as tx:
            await identity.require_subject_active(tx, "worker" if job.kind in FINISHING else job.created_by)
    except TenantSuspended as error:
        raise _until_resumed(error) from None
    except Unauthenticated as error:
        raise StepRefused(error.message, code=error.code) from None


def _until_resumed(error: RecollectError) -> StepPostponed:
    """Postpones the job: no job of a suspended tenant is claimed until the tenant is resumed."""
    return StepPostponed(StepRefused(error.message, code=error.code), timedelta(0))


async def _note_failure(context: WorkerContext, caller: Caller, job: Job, error: Exception) -> None:
    failure = failure_of(error)
    async with context.database.transaction(worker_caller(caller.tenant_id)) as tx:
        will_retry = await leases.record_failure(tx, job, failure, JobBounds.of(context.settings))
    fields = {**_log_fields(caller, job), "code": str(failure.code), "attempt": job.attempts}
    unexpected = None if isinstance(error, RecollectError | TimeoutError) else error
    if will_retry:
        log.warning("job step failed, will retry", **fields, exc_info=unexpected)
    else:
        _record(job, "failed", str(failure.code))
        log.error("job failed", **fields, exc_info=unexpected)


def _record(job: Job, status: str, code: str | None = None) -> None:
    began = job.started_at or job.created_at
    record_job(job.kind, status, max((datetime.now(UTC) - began).total_seconds(), 0), code)


def _log_fields(caller: Caller, job: Job) -> dict[str, str]:
    return {"tenant": str(caller.tenant_id), "job": str(job.id), "kind": job.kind}
