"""Handlers and shapes of jobs: list, watch and cancel them, and start one that makes the search index anew."""

import asyncio
import codecs
import time
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta, Struct, structs

from recollect.errors import ErrorCode, NotFound
from recollect.graph.graphs import service as graphs
from recollect.graph.passages import rebuild_jobs
from recollect.jobs import service as jobs
from recollect.jobs.kinds import known_kind
from recollect.jobs.model import Job, JobBounds, JobFilter, Status
from recollect.platform.slots import elsewhere
from recollect.platform.transactions import Transaction
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import paged
from recollect_gateway.mcp_endpoint.tool import Arguments, Listing, Reply
from recollect_gateway.mcp_endpoint.toolsets.jobs import JobOut, OutputOut, job_out, started_job

MAX_WAIT_SECONDS = 60.0
POLL_SECONDS = 0.5

MAX_LISTED = 20
"""Jobs of a list, where nobody says how many."""

MAX_PIECE = 1_000_000
"""Bytes of a job's output that one call answers, at most; less where they take more than one reply may."""

JobId = Annotated[UUID, Meta(description="The job's id")]


class ListJobs(Arguments, frozen=True, rename=None):
    """Arguments of `list_jobs`; without a graph, jobs of every graph that the credential reaches."""

    status: Annotated[Status, Meta(description="Only those that stand so")] | None = None
    kind: Annotated[str, Meta(max_length=64, description="Only jobs of this kind")] | None = None
    limit: (
        Annotated[int, Meta(ge=1, le=100, description="Jobs at most", extra_json_schema={"default": MAX_LISTED})] | None
    ) = None
    before: Annotated[UUID, Meta(description="Only jobs older than this one: the last of the page before")] | None = (
        None
    )


class GetJob(Arguments, frozen=True, rename=None):
    """Arguments of `get_job`."""

    id: JobId
    wait_seconds: Annotated[
        float, Meta(ge=0, le=MAX_WAIT_SECONDS, description="Wait so long for its end, telling progress meanwhile")
    ] = 0.0
    output_offset: (
        Annotated[
            int, Meta(ge=0, le=2**53, description="Answer what it left, too: from this byte on, 0 for its beginning")
        ]
        | None
    ) = None
    output_limit: Annotated[int, Meta(ge=100, le=MAX_PIECE, description="Bytes of it at most")] = 50_000


class CancelJob(Arguments, frozen=True, rename=None):
    """Arguments of `cancel_job`."""

    id: JobId


class Reindex(Arguments, frozen=True, rename=None):
    """Arguments of `reindex`."""


class Reembed(Arguments, frozen=True, rename=None):
    """Arguments of `reembed`."""

    model: (
        Annotated[str, Meta(min_length=1, max_length=200, description="Whose vectors it shall have; else the worker's")]
        | None
    ) = None
    drop_old: Annotated[bool, Meta(description="Forget those of other models then: there is no way back")] = False


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
        wanted = JobFilter(graph.id if graph else None, kind, arguments.status)
        found = await jobs.list_jobs(tx, wanted, before=arguments.before, limit=limit + 1)
    return paged(
        [*map(job_out, found[:limit])],
        lambda rows, following: Reply(Jobs(rows, following is not None)),
        limit=arguments.limit,
        next_offset=limit if len(found) > limit else None,
    )


async def get_job(call: Call, arguments: GetJob) -> Reply:
    """Show a job, if asked after waiting for its end."""
    job = await _watched(call, arguments)
    shown = job_out(job)
    if arguments.output_offset is None or shown.output is None:
        return Reply(shown)
    async with call.transaction() as tx:
        piece = await jobs.read_output_piece(tx, job, arguments.output_offset, arguments.output_limit)
    room = call.settings.max_reply_bytes - len(msgspec.json.encode(shown)) - _FRAME
    return Reply(structs.replace(shown, output=_shown(shown.output, piece, arguments.output_offset, job, room)))


async def cancel_job(call: Call, arguments: CancelJob) -> Reply:
    """Ask a job to end."""
    async with call.transaction() as tx:
        await _find(tx, arguments.id, arguments.graph)
        return Reply(job_out(await jobs.cancel_job(tx, arguments.id, JobBounds.of(call.settings))))


async def reindex(call: Call, arguments: Reindex) -> Reply:
    """Start a job that makes the passages of a graph anew."""
    async with call.transaction() as tx:
        return started_job(await rebuild_jobs.start_reindex(tx, call.graph_name(arguments.graph)))


async def reembed(call: Call, arguments: Reembed) -> Reply:
    """Start a job that gives a graph vectors of another model."""
    name, model = call.graph_name(arguments.graph), arguments.model
    async with call.transaction() as tx:
        return started_job(await rebuild_jobs.start_reembed(tx, name, model=model, drop_old=arguments.drop_old))


_FRAME = 100
"""Bytes that a piece of text takes beside itself."""


def _shown(output: OutputOut, piece: bytes, start: int, job: Job, room: int) -> OutputOut:
    """The piece as whole characters that take no more than so many bytes of JSON, and where the next begins."""
    text, left = _whole_characters(piece)
    while len(msgspec.json.encode(text)) > room and len(piece) > 4:
        piece = piece[: len(piece) // 2]
        text, left = _whole_characters(piece)
    ends = start + len(piece) - left
    return structs.replace(output, text=text, next_offset=ends if start < ends < job.output_bytes else None)


def _whole_characters(piece: bytes) -> tuple[str, int]:
    """The text, and how many bytes at its end begin a character that goes on behind."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(piece), len(decoder.getstate()[0])


async def _watched(call: Call, arguments: GetJob) -> Job:
    """The job when it has ended or the wait is over. Each look is a transaction of its own, none is open between."""
    gives_up = time.monotonic() + arguments.wait_seconds
    told = -1
    while True:
        async with call.transaction() as tx:
            job = await _find(tx, arguments.id, arguments.graph)
        if job.done > told:  # Progress must rise with each notification.
            await call.progress(job.done, job.total)
            told = job.done
        left = gives_up - time.monotonic()
        if job.is_finished or left <= 0:
            return job
        async with elsewhere():
            await asyncio.sleep(min(POLL_SECONDS, left))


async def _find(tx: Transaction, job_id: UUID, graph: str | None) -> Job:
    """The job, which must be of the graph where one is named; raises NotFound."""
    job = await jobs.get_job(tx, job_id)
    if graph is not None and job.graph != await graphs.name_of(tx, graph):
        raise NotFound(f"There is no such job of the graph {graph!r}.", code=ErrorCode.JOB_NOT_FOUND)
    return job
