"""The answers of tools that start jobs, in any toolset, and of tools that watch them."""

from datetime import datetime
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from recollect.jobs.model import Job
from recollect.transfer import file_jobs
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Reply


class JobError(Struct, frozen=True):
    """Why a job failed or, while it is running, why its current step has to be tried again."""

    code: str
    message: str


class OutputOut(Struct, frozen=True, omit_defaults=True):
    """The output of a job. A GET of `path` on the gateway's management API, with the same key, answers all of it.

    `text` is a piece of it, as far as that was asked for; the next begins at `next_offset`, unless it was the last.
    """

    path: str
    media_type: str
    text: str | UnsetType = UNSET
    next_offset: int | None = None


class JobOut(Struct, frozen=True, omit_defaults=True):
    """A job. `done` of `total` items are done, counted as its kind counts them; `output_bytes` of output are ready."""

    id: str
    kind: str
    status: str
    done: int
    created_by: str
    created_at: datetime
    total: int | None = None
    graph: str | None = None
    result: dict[str, Any] | None = None
    error: JobError | None = None
    cancel_requested: bool = False
    output_bytes: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    expires_at: datetime | None = None
    output: OutputOut | None = None


def wait_hint(job: Job) -> str:
    """How to wait for a job that was started."""
    return f"Wait for it: get_job with id {job.id} and wait_seconds"


def output_hint(job: Job) -> str:
    """How to wait for a job that was started, and to read its output then."""
    return f"{wait_hint(job)}; with output_offset 0 it also returns the job's output."


def started_job(job: Job, note: str | None = None) -> Reply:
    """The answer of a tool whose work is all done by the job."""
    return Reply(job_out(job), note=note, job=job)


async def succeeded_job(_: Call, job: Job) -> Reply:
    """The answer of such a tool once the job has succeeded."""
    note = f"get_job with id {job.id} and output_offset 0 returns the job's output." if job.output_bytes else None
    return Reply(job_out(job), note=note)


def job_out(job: Job) -> JobOut:
    """A job as tools answer it."""
    return JobOut(
        str(job.id),
        job.kind,
        job.status,
        job.done,
        job.created_by,
        job.created_at,
        job.total,
        job.graph,
        job.result,
        JobError(job.error_code, job.error_message or "") if job.error_code else None,
        job.cancel_requested,
        job.output_bytes,
        job.started_at,
        job.finished_at,
        job.expires_at,
        _output(job),
    )


def _output(job: Job) -> OutputOut | None:
    if job.status != "succeeded" or not (job.output_bytes or job.kind in file_jobs.FILES):
        return None
    return OutputOut(f"/v1/jobs/{job.id}/output", file_jobs.media_type_of(job) or "application/octet-stream")
