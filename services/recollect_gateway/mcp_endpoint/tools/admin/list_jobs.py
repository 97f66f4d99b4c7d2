"""The tool `list_jobs`."""

from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct

from recollect.graph.graphs import service as graphs
from recollect.jobs import service as jobs
from recollect.jobs.kinds import known_kind
from recollect.jobs.model import JobFilter, Status
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import paged
from recollect_gateway.mcp_endpoint.tool import Arguments, PagedReply, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.job_answers import JobOut, job_out

MAX_LISTED = 20
"""The maximum number of jobs in a list, if the caller gives no limit."""


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


class Jobs(Struct, frozen=True):
    """Result of `list_jobs`, newest first."""

    jobs: list[JobOut]
    more: bool


async def list_jobs(call: Call, arguments: ListJobs) -> Reply | PagedReply:
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


LIST_JOBS = ToolSpec(
    description="List waiting, running and ended jobs, newest first.",
    toolsets=frozenset({"admin"}),
    result=Jobs,
    handler=list_jobs,
    read_only=True,
)
