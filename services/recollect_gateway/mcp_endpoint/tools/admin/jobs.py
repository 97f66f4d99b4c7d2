"""Handlers and shapes of jobs: list, watch and cancel jobs, and start those that rebuild passages and vectors."""

import asyncio
import codecs
import time
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta, Struct, structs

from recollect.errors import ErrorCode, NotFound
from recollect.fairness.slots import released_slot
from recollect.graph.graphs import service as graphs
from recollect.graph.passages import rebuild_jobs
from recollect.jobs import service as jobs
from recollect.jobs.kinds import known_kind
from recollect.jobs.model import Job, JobBounds, JobFilter, Status
from recollect.postgres.transactions import Transaction
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import paged
from recollect_gateway.mcp_endpoint.tool import Arguments, Listing, Reply
from recollect_gateway.mcp_endpoint.tools.jobs import JobOut, OutputOut, job_out, started_job

MAX_WAIT_SECONDS = 60.0
POLL_SECONDS = 0.5

MAX_LISTED = 20
"""Jobs of a list, at most, if the caller gives no limit."""

MAX_PIECE = 1_000_000
"""Bytes of a job's output that one call answers, at most; fewer where they would exceed the bound of a reply."""

JobId = Annotated[UUID, Meta(description="The job's id")]


class ListJobs(Arguments, frozen=True, rename=None):
    """Arguments of `list_jobs`; without a graph, jobs of every graph that the credential reaches."""

    status: Annotated[Status, Meta(description="Only jobs with this status")] | None = None
    kind: Annotated[str, Meta(max_length=64, description="Only jobs of this kind")] | None = None
    limit: (
        Annotated[
            int, Meta(ge=1, le=100, description="Maximum number of jobs", extra_json_schema={"default": MAX_LISTED})
        ]
        | None
    ) = None
    before: (
        Annotated[UUID, Meta(description="Only jobs older than this one; for the next page, the last job of this page")]
        | None
    ) = None


class GetJob(Arguments, frozen=True, rename=None):
    """Arguments of `get_job`."""

    id: JobId
    wait_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=MAX_WAIT_SECONDS,
            description="Wait up to this long for the job to end, reporting progress meanwhile",
        ),
    ] = 0.0
    output_offset: (
        Annotated[
            int,
            Meta(ge=0, le=2**53, description="Also return the job's output from this byte on; 0: from its beginning"),
        ]
        | None
    ) = None
    output_limit: Annotated[int, Meta(ge=100, le=MAX_PIECE, description="Maximum number of bytes of the output")] = (
        50_000
    )


class CancelJob(Arguments, frozen=True, rename=None):
    """Arguments of `cancel_job`."""

    id: JobId


class Reindex(Arguments, frozen=True, rename=None):
    """Arguments of `reindex`."""


class Reembed(Arguments, frozen=True, rename=None):
    """Arguments of `reembed`."""

    model: (
        Annotated[str, Meta(min_length=1, max_length=200, description="The model to embed with; default: the worker's")]
        | None
    ) = None
    drop_old: Annotated[bool, Meta(description="Then delete the vectors of other models; this cannot be undone")] = (
        False
    )


class Jobs(Struct, frozen=True):
    """Result of `list_jobs`, newest first."""

    jobs: list[JobOut]
    more: bool


async def list_jobs(call: Call, arguments: ListJobs) -> Reply | Listing:
    """List jobs, newest first."""
    limit = arguments.limit or MAX_LISTED
    kind = known_kind(arguments.kind)
    async with call.transaction() as tx:
        graph = None if arguments.graph is None else await graphs.open_graph(tx, arguments.graph)
        if arguments.graph is not None and graph is None:
            return Reply(Jobs([], more=False))
        filter_ = JobFilter(graph.id if graph else None, kind, arguments.status)
        found = await jobs.list_jobs(tx, filter_, before=arguments.before, limit=limit + 1)
    return paged(
        [*map(job_out, found[:limit])],
        lambda rows, next_offset: Reply(Jobs(rows, next_offset is not None)),
        limit=arguments.limit,
        next_offset=limit if len(found) > limit else None,
    )


async def get_job(call: Call, arguments: GetJob) -> Reply:
    """Show a job, with a piece of its output if asked for; `wait_seconds`: first wait for the job's end."""
    job = await _wait_for_end(call, arguments)
    out = job_out(job)
    if arguments.output_offset is None or out.output is None:
        return Reply(out)
    async with call.transaction() as tx:
        piece = await jobs.read_output_piece(tx, job, arguments.output_offset, arguments.output_limit)
    max_bytes = call.settings.max_reply_bytes - len(msgspec.json.encode(out)) - _FRAME
    output = _output_piece(out.output, piece, arguments.output_offset, job, max_bytes)
    return Reply(structs.replace(out, output=output))


async def cancel_job(call: Call, arguments: CancelJob) -> Reply:
    """Ask a job to end."""
    async with call.transaction() as tx:
        await _find(tx, arguments.id, arguments.graph)
        return Reply(job_out(await jobs.cancel_job(tx, arguments.id, JobBounds.of(call.settings))))


async def reindex(call: Call, arguments: Reindex) -> Reply:
    """Start a job that rebuilds the passages of a graph."""
    async with call.transaction() as tx:
        return started_job(await rebuild_jobs.start_reindex(tx, call.graph_name(arguments.graph)))


async def reembed(call: Call, arguments: Reembed) -> Reply:
    """Start a job that embeds a graph by another model."""
    name, model = call.graph_name(arguments.graph), arguments.model
    async with call.transaction() as tx:
        return started_job(await rebuild_jobs.start_reembed(tx, name, model=model, drop_old=arguments.drop_old))


_FRAME = 100
"""Bytes that the fields of a piece of output take beside its text."""


def _output_piece(output: OutputOut, piece: bytes, start: int, job: Job, max_bytes: int) -> OutputOut:
    """A piece of output as whole characters of at most `max_bytes` bytes of JSON, and the offset of the next piece."""
    text, incomplete = _decode_whole(piece)
    while len(msgspec.json.encode(text)) > max_bytes and len(piece) > 4:
        piece = piece[: len(piece) // 2]
        text, incomplete = _decode_whole(piece)
    end = start + len(piece) - incomplete
    return structs.replace(output, text=text, next_offset=end if start < end < job.output_bytes else None)


def _decode_whole(piece: bytes) -> tuple[str, int]:
    """Decode the whole characters of UTF-8; also return how many bytes at the end are part of an incomplete one."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(piece), len(decoder.getstate()[0])


async def _wait_for_end(call: Call, arguments: GetJob) -> Job:
    """The job once it has ended or the wait is over. Each poll is a transaction; none is open in between."""
    deadline = time.monotonic() + arguments.wait_seconds
    last_progress = -1
    while True:
        async with call.transaction() as tx:
            job = await _find(tx, arguments.id, arguments.graph)
        if job.done > last_progress:  # Progress must rise with each notification.
            await call.progress(job.done, job.total)
            last_progress = job.done
        remaining = deadline - time.monotonic()
        if job.is_finished or remaining <= 0:
            return job
        async with released_slot():
            await asyncio.sleep(min(POLL_SECONDS, remaining))


async def _find(tx: Transaction, job_id: UUID, graph: str | None) -> Job:
    """The job, which must belong to the graph if one is named; raises NotFound."""
    job = await jobs.get_job(tx, job_id)
    if graph is not None and job.graph != await graphs.name_of(tx, graph):
        raise NotFound(f"There is no such job in the graph {graph!r}.", code=ErrorCode.JOB_NOT_FOUND)
    return job
