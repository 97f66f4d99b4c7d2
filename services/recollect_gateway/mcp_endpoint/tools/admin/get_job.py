"""The tool `get_job`."""

import asyncio
import codecs
import time
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta, structs

from recollect.errors import ErrorCode, NotFound
from recollect.fairness.slots import released_slot
from recollect.graph.graphs import service as graphs
from recollect.jobs import service as jobs
from recollect.jobs.model import Job
from recollect.postgres.transactions import Transaction
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.job_answers import JobOut, OutputOut, job_out

MAX_WAIT_SECONDS = 60.0
POLL_SECONDS = 0.5

MAX_PIECE = 1_000_000
"""The maximum number of bytes of a job's output in one answer; fewer if they would exceed the bound of a reply."""

JobId = Annotated[UUID, Meta(description="The job's id")]


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


GET_JOB = ToolSpec(
    description="Get a job's progress and result. It can wait for the job to end, and read the job's output piece "
    "by piece.",
    toolsets=frozenset({"organize", "admin"}),
    result=JobOut,
    handler=get_job,
    read_only=True,
    large=True,
)

_FRAME = 100
"""The number of bytes that a piece of output takes in addition to its text."""


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
            job = await find_job(tx, arguments.id, arguments.graph)
        if job.done > last_progress:  # Progress must rise with each notification.
            await call.progress(job.done, job.total)
            last_progress = job.done
        remaining = deadline - time.monotonic()
        if job.is_finished or remaining <= 0:
            return job
        async with released_slot():
            await asyncio.sleep(min(POLL_SECONDS, remaining))


async def find_job(tx: Transaction, job_id: UUID, graph: str | None) -> Job:
    """The job, which must belong to the graph if one is named; raises NotFound."""
    job = await jobs.get_job(tx, job_id)
    if graph is not None and job.graph != await graphs.name_of(tx, graph):
        raise NotFound(f"There is no such job in the graph {graph!r}.", code=ErrorCode.JOB_NOT_FOUND)
    return job
