"""The tool `reindex`."""

from recollect.graph.passages import rebuild_jobs
from recollect.jobs.kinds import REINDEX_PASSAGES
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, LongWork, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.job_answers import JobOut, started_job, succeeded_job


class Reindex(Arguments, frozen=True, rename=None):
    """Arguments of `reindex`."""


async def reindex(call: Call, arguments: Reindex) -> Reply:
    """Start a job that rebuilds the passages of a graph."""
    async with call.transaction() as tx:
        return started_job(await rebuild_jobs.start_reindex(tx, call.graph_name(arguments.graph)))


REINDEX = ToolSpec(
    description="Start a job that rebuilds the search index of a graph from its memories. Returns the job; if one "
    "is under way already, that one.",
    toolsets=frozenset({"admin"}),
    result=JobOut,
    handler=reindex,
    work=LongWork(REINDEX_PASSAGES, succeeded_job),
    idempotent=True,
)
