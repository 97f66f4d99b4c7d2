"""Use cases of jobs for the callers that start and watch them; `leases` has those of the worker that does them."""

from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime, timedelta
from itertools import count
from uuid import UUID

from recollect.caller import Caller, Scope
from recollect.errors import Conflict, ErrorCode, NotFound, TooLarge
from recollect.jobs import store
from recollect.jobs.model import MAX_CHUNK, MAX_PENDING, MAX_STORED, RUN_JOBS, Job, JobBounds, JobFilter, NewJob
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import Transaction
from recollect.telemetry.tracing import inject_context

FULL = ErrorCode.JOB_STORAGE_FULL

REMOVED_AT_ONCE = 20
"""The most finished jobs that one new job replaces."""

HELD_FOR = timedelta(hours=24)
"""How long a job waits for its input before it is removed."""


async def schedule(tx: Transaction, new: NewJob, *, most_pending: int = MAX_PENDING) -> Job:
    """Create a job that begins once this transaction has committed, in its trace and in its caller's name.

    Returns an equal job that is under way instead, if there is one. Raises Conflict where the tenant has too many jobs,
    Forbidden where the caller's allow-list lacks the graph; a job without a graph needs a caller without an allow-list.
    """
    tx.caller.require_graph(new.graph_id)
    job = await get_job(tx, await _find_or_create(tx, new, most_pending))
    if not new.is_held:
        tx.wake(RUN_JOBS)
    return job


async def find_equal(tx: Transaction, new: NewJob) -> Job | None:
    """The job under way that `schedule` would return instead of a new one; None: there is none."""
    equal = await store.find_equal(tx, new.digest) if new.digest else None
    return None if equal is None else await get_job(tx, equal)


async def get_job(tx: Transaction, job_id: UUID) -> Job:
    """The current state of a job; raises NotFound, also for one of a graph that the caller does not reach."""
    found = await store.find_jobs(tx, [job_id])
    if not found:
        raise NotFound("There is no such job. Finished jobs are removed after a while.", code=ErrorCode.JOB_NOT_FOUND)
    return found[0]


async def find_jobs(tx: Transaction, job_ids: Sequence[UUID]) -> dict[UUID, Job]:
    """Those of these jobs that exist and are of graphs that the caller reaches, by their ids."""
    return {job.id: job for job in await store.find_jobs(tx, job_ids)}


async def list_jobs(
    tx: Transaction, job_filter: JobFilter | None = None, *, before: UUID | None = None, limit: int = 50
) -> list[Job]:
    """Jobs, newest first, before the id `before`; those of graphs that the caller does not reach are left out."""
    return await store.list_jobs(tx, job_filter or JobFilter(), before=before, limit=limit)


async def busy_graphs(tx: Transaction, kind: str, graph_ids: Sequence[UUID], since: datetime) -> set[UUID]:
    """The graphs among these that have a job of this kind under way, or had one that ended after `since`."""
    return await store.busy_graphs(tx, kind, graph_ids, since)


async def cancel_job(tx: Transaction, job_id: UUID, bounds: JobBounds) -> Job:
    """Request a job to end; its finished steps stay. A running job ends after its current step, a waiting one at once.

    A job that has finished is left unchanged. Raises NotFound.
    """
    job = await get_job(tx, job_id)
    if await store.cancel_job(tx, job_id, retention=bounds.retention):
        await store.drop_stored(tx, job_id, output=True)
        announce_end(tx, job)
    return await get_job(tx, job_id)


async def append_input(tx: Transaction, job_id: UUID, chunks: Sequence[bytes], bounds: JobBounds) -> None:
    """Append chunks of 1 to MAX_CHUNK bytes to the input of a held job.

    Raises NotFound, Conflict if the job is not held, TooLarge where the tenant's jobs would store too much.
    """
    require_chunks(chunks)
    await get_job(tx, job_id)
    if chunks and not await store.insert_inputs(tx, job_id, chunks):
        raise Conflict("This job accepts no more input.", code=ErrorCode.JOB_TAKES_NO_INPUT)
    await require_room(tx, bounds)


async def start(tx: Transaction, job_id: UUID) -> Job:
    """Let a held job begin, since its input is complete. Doing it twice changes nothing. Raises NotFound."""
    if await store.start_job(tx, job_id):
        tx.wake(RUN_JOBS)
    return await get_job(tx, job_id)


async def read_input(tx: Transaction, job: Job, ordinal: int) -> bytes | None:
    """A chunk of a job's input, counted from 0; None past the last."""
    return await store.find_input(tx, job.id, ordinal)


async def open_output(tx: Transaction, job_id: UUID, *, files: Collection[str] = ()) -> Job:
    """A job that has output; raises NotFound, or Conflict if it has not succeeded.

    Jobs of the kinds `files` always have a file as output, which may be empty.
    """
    job = await get_job(tx, job_id)
    if job.status != "succeeded":
        raise Conflict(f"This job is {job.status}: there is nothing to fetch.", code=ErrorCode.JOB_NOT_FINISHED)
    if job.output_deleted:
        raise NotFound("The output of this job was deleted. Start another job.", code=ErrorCode.JOB_HAS_NO_OUTPUT)
    if not job.output_bytes and job.kind not in files:
        raise NotFound("This job has no output.", code=ErrorCode.JOB_HAS_NO_OUTPUT)
    return job


async def delete_output(tx: Transaction, job_id: UUID) -> tuple[Job, bool]:
    """Delete a job's output before its time; the job, and whether there was any. Doing it twice changes nothing.

    Allowed to the caller that started the job, and to callers that may write memory. Raises NotFound, Forbidden, or
    Conflict if the job has not succeeded.
    """
    job = await get_job(tx, job_id)
    if job.created_by != tx.caller.subject:
        tx.caller.require(Scope.MEMORY_WRITE)
    if job.status != "succeeded":
        raise Conflict(f"This job is {job.status}: there is nothing to delete.", code=ErrorCode.JOB_NOT_FINISHED)
    deleted = await store.delete_output(tx, job_id)
    return await get_job(tx, job_id), deleted


async def require_below_file_limit(tx: Transaction, new: NewJob, most: int) -> None:
    """Raise Conflict where the caller has `most` jobs of this kind that are under way or keep a file.

    Not where an equal job is under way, which `schedule` returns. It holds a lock until the transaction ends, so that
    several calls at once do not exceed the limit.
    """
    await store.lock_stored_files(tx, new.kind)
    if new.digest and await store.find_equal(tx, new.digest):
        return
    if await store.count_stored_files(tx, new.kind) >= most:
        raise Conflict(
            f"{most} of your jobs of this kind are running or keep a file. Delete their output, or wait.",
            code=ErrorCode.TOO_MANY_JOBS,
        )


async def read_output(db: TenantDatabase, caller: Caller, job: Job) -> AsyncIterator[bytes]:
    """A job's output, chunk by chunk.

    Each chunk is read in a short transaction of its own, and none is open between them: the reader may be slow.
    """
    for ordinal in count():
        async with db.transaction(caller, read_only=True) as tx:
            chunk = await store.find_output(tx, job.id, ordinal)
        if chunk is None:
            return
        yield chunk


async def read_output_piece(tx: Transaction, job: Job, start: int, size: int) -> bytes:
    """A piece of a job's output: at most `size` bytes from `start` on; empty past its end."""
    return await store.find_output_piece(tx, job.id, start, size)


async def erase(tx: Transaction, graph_id: UUID | None = None) -> int:
    """Remove every job of the tenant, or of one graph, that stored input or output or ended with an error; how many.

    Their input and output are removed, too. A removed job that is running cannot commit another step.
    """
    return await store.erase_jobs(tx, graph_id)


def announce_end(tx: Transaction, job: Job) -> None:
    """Notify listeners of the job's graph, once this transaction has committed, that the job has ended."""
    if job.graph_id is not None:
        tx.announce(job.graph_id)


def require_chunks(chunks: Sequence[bytes]) -> None:
    """Raise ValueError for a chunk that cannot be stored, which is a programming error."""
    if any(not 1 <= len(chunk) <= MAX_CHUNK for chunk in chunks):
        raise ValueError(f"a chunk has 1 to {MAX_CHUNK} bytes")


async def require_room(tx: Transaction, bounds: JobBounds) -> None:
    """Raise TooLarge where the tenant's jobs store more than allowed, including the data of this transaction.

    Call it after the data was stored, and before the transaction takes any other lock: from here to its end, one
    transaction of the tenant at a time stores data of jobs, so that several do not exceed the limit together.
    """
    await store.lock_storage(tx)
    await require_room_for(tx, 0, bounds)


async def require_room_for(tx: Transaction, size: int, bounds: JobBounds) -> None:
    """Raise TooLarge where the tenant's jobs would store more than allowed with `size` bytes that are announced.

    A caller that is confined to some graphs does not see what the jobs of all graphs store.
    """
    storage = await store.find_storage(tx, least=MAX_CHUNK, most=bounds.most_bytes)
    if storage.stored + size > storage.allowed:
        stored_bytes = storage.stored if size and tx.caller.graphs is None else None
        raise TooLarge(_no_room(storage.allowed, stored_bytes, by_plan=storage.allowed < bounds.most_bytes), code=FULL)


def _no_room(allowed: int, stored_bytes: int | None, *, by_plan: bool) -> str:
    who = "the plan of this tenant" if by_plan else "this service"
    there = "" if stored_bytes is None else f" They take {stored_bytes:,} already."
    return (
        f"The inputs and outputs of this tenant's jobs would take more than the {allowed:,} bytes that {who} allows."
        f"{there} Delete outputs of other jobs (DELETE /v1/jobs/{{id}}/output), wait until waiting imports have ended, "
        "or import a smaller file."
    )


async def _find_or_create(tx: Transaction, new: NewJob, most: int) -> UUID:
    traceparent = inject_context().get("traceparent")
    for _ in range(2):  # Another call may create an equal job between the two statements.
        equal = await store.find_equal(tx, new.digest) if new.digest else None
        if equal is not None:
            return equal
        job_id = await store.insert_job(tx, new, most=most, held_for=HELD_FOR, traceparent=traceparent)
        if job_id is not None:
            await store.remove_oldest_finished(tx, most=MAX_STORED, limit=REMOVED_AT_ONCE)
            return job_id
    raise Conflict(
        f"There are {most} unfinished jobs. Wait until some of them have ended.", code=ErrorCode.TOO_MANY_JOBS
    )
