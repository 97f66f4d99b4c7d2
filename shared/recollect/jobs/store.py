"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from recollect.ids import new_id
from recollect.jobs.model import Job, JobBounds, JobFilter, JobStorage, NewJob, StepResult
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


async def tenants_with_due(session: Session) -> list[UUID]:
    """Tenants that have a due job, or one to remove."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_due)]


async def find_equal(tx: Transaction, digest: bytes) -> UUID | None:
    """The job under way that has this digest."""
    return await tx.fetchval(queries.find_equal, digest=digest)


async def insert_job(
    tx: Transaction, new: NewJob, *, most: int, held_for: timedelta, traceparent: str | None
) -> UUID | None:
    """Create a job; None if an equal one is under way, or `most` jobs are."""
    return await tx.fetchval(
        queries.insert_job,
        id=new_id(),
        graph_id=new.graph_id,
        kind=new.kind,
        digest=new.digest,
        arguments=new.arguments,
        cursor=new.cursor,
        total=new.total,
        held=new.is_held,
        max_open=most,
        held_for=held_for,
        traceparent=traceparent,
        subject=tx.caller.subject,
    )


async def find_jobs(tx: Transaction, job_ids: Sequence[UUID]) -> list[Job]:
    """Those of these jobs that the caller may see."""
    return await tx.fetch_objects(queries.find_jobs, Job, job_ids=job_ids, allowed_graphs=_allowed(tx))


async def list_jobs(tx: Transaction, job_filter: JobFilter, *, before: UUID | None, limit: int) -> list[Job]:
    """Jobs that the caller may see, newest first, before the id `before`."""
    return await tx.fetch_objects(
        queries.list_jobs,
        Job,
        before=before,
        limit=limit,
        allowed_graphs=_allowed(tx),
        graph_id=job_filter.graph_id,
        kind=job_filter.kind,
        status=job_filter.status,
    )


async def busy_graphs(tx: Transaction, kind: str, graph_ids: Sequence[UUID], since: datetime) -> set[UUID]:
    """The graphs among these that have a job of this kind under way, or had one that ended after a time."""
    rows = await tx.fetch(queries.busy_graphs, kind=kind, graph_ids=graph_ids, since=since)
    return {row["graph_id"] for row in rows}


async def start_job(tx: Transaction, job_id: UUID) -> bool:
    """Let a held job begin; False if it was not held."""
    return await tx.fetchval(queries.start_job, job_id=job_id) is not None


async def cancel_job(tx: Transaction, job_id: UUID, *, retention: timedelta) -> bool | None:
    """Request a job to end; whether it has ended. None if it had finished before, or does not exist."""
    return await tx.fetchval(queries.cancel_job, job_id=job_id, retention=retention)


async def lock_claims(tx: Transaction) -> None:
    """Wait until no other worker claims jobs of this tenant."""
    await tx.execute(queries.lock_claims)


async def claim_job(tx: Transaction, kinds: Sequence[str], bounds: JobBounds) -> UUID | None:
    """Claim the tenant's next due job."""
    return await tx.fetchval(
        queries.claim_job, kinds=kinds, max_running=bounds.most_running, lease_id=new_id(), lease=bounds.lease
    )


async def record_step(tx: Transaction, job: Job, step: StepResult, *, lease: timedelta) -> bool | None:
    """Store the progress of a job; whether its cancellation was requested. None if another worker has the lease."""
    return await tx.fetchval(
        queries.record_step,
        job_id=job.id,
        lease_id=job.lease,
        cursor=step.cursor,
        done=step.done,
        total=step.total,
        lease=lease,
    )


async def finish_job(
    tx: Transaction,
    job: Job,
    status: str,
    *,
    retention: timedelta,
    result: dict[str, Any] | None = None,
    error: tuple[str, str] | None = None,
) -> bool:
    """End a job; False if another worker has the lease. `error` is its code and a sentence."""
    code, message = error or (None, None)
    finished_at = await tx.fetchval(
        queries.finish_job,
        job_id=job.id,
        lease_id=job.lease,
        status=status,
        result=result,
        error_code=code,
        error_message=message,
        retention=retention,
    )
    return finished_at is not None


async def release_job(
    tx: Transaction, job: Job, *, attempts: int, wait: timedelta, error: tuple[str, str] | None = None
) -> bool:
    """Release a job; False if another worker has the lease. `error` is a code and a sentence."""
    code, message = error or (None, None)
    released = await tx.fetchval(
        queries.release_job,
        job_id=job.id,
        lease_id=job.lease,
        attempts=attempts,
        wait=wait,
        error_code=code,
        error_message=message,
    )
    return released is not None


async def insert_inputs(tx: Transaction, job_id: UUID, chunks: Sequence[bytes]) -> bool:
    """Append chunks to a job's input; False if it does not wait for any."""
    size = sum(map(len, chunks))
    return await tx.fetchval(queries.insert_inputs, job_id=job_id, chunks=chunks, size=size) is not None


async def insert_outputs(tx: Transaction, job_id: UUID, chunks: Sequence[bytes]) -> None:
    """Append chunks to a job's output."""
    await tx.execute(queries.insert_outputs, job_id=job_id, chunks=chunks, size=sum(map(len, chunks)))


async def find_input(tx: Transaction, job_id: UUID, ordinal: int) -> bytes | None:
    """One chunk of a job's input, counted from 0."""
    return await tx.fetchval(queries.find_input, job_id=job_id, ordinal=ordinal)


async def find_output(tx: Transaction, job_id: UUID, ordinal: int) -> bytes | None:
    """One chunk of a job's output, counted from 0."""
    return await tx.fetchval(queries.find_output, job_id=job_id, ordinal=ordinal)


async def find_output_piece(tx: Transaction, job_id: UUID, start: int, size: int) -> bytes:
    """At most `size` bytes of a job's output from `start` on; empty past its end."""
    return await tx.fetchval(queries.find_output_piece, job_id=job_id, start=start, size=size) or b""


async def lock_storage(tx: Transaction) -> None:
    """Wait until no other transaction adds to what the tenant's jobs keep."""
    await tx.execute(queries.lock_storage)


async def find_storage(tx: Transaction, *, least: int, most: int) -> JobStorage:
    """The bytes that all jobs of the tenant keep, and that they may keep by its plan, from `least` to `most`."""
    row = await tx.fetchrow(queries.find_storage, least=least, most=most)
    assert row is not None
    return JobStorage(**row)


async def remove_oldest_finished(tx: Transaction, *, most: int, limit: int) -> None:
    """Remove up to `limit` of the oldest finished jobs where the tenant has more than `most` jobs."""
    await tx.execute(queries.remove_oldest_finished, most=most, limit=limit)


async def delete_output(tx: Transaction, job_id: UUID) -> bool:
    """Delete the output of a job that succeeded; False where that was done before."""
    return await tx.fetchval(queries.delete_output, job_id=job_id) is not None


async def lock_stored_files(tx: Transaction, kind: str) -> None:
    """Lock the caller's jobs of this kind against other calls that count them and start another."""
    await tx.execute(queries.lock_stored_files, subject=tx.caller.subject, kind=kind)


async def count_stored_files(tx: Transaction, kind: str) -> int:
    """How many jobs of this kind that the caller started are under way or keep a file."""
    return await tx.fetchval(queries.count_stored_files, subject=tx.caller.subject, kind=kind)


async def drop_stored(tx: Transaction, job_id: UUID, *, output: bool) -> None:
    """Remove a job's input and, if `output`, its output."""
    await tx.execute(queries.drop_stored, job_id=job_id, output=output)


async def remove_expired(tx: Transaction, *, limit: int) -> None:
    """Remove jobs beyond their retention, with their input and output."""
    await tx.execute(queries.remove_expired, limit=limit)


async def erase_jobs(tx: Transaction, graph_id: UUID | None) -> int:
    """Remove every job that stored input or output, with that data, or ended with an error; how many."""
    return len(await tx.fetch(queries.erase_jobs, graph_id=graph_id))


def _allowed(tx: Transaction) -> list[UUID] | None:
    return None if tx.caller.graphs is None else list(tx.caller.graphs)
