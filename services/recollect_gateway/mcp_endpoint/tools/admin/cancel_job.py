"""The tool `cancel_job`."""

from recollect.jobs import service as jobs
from recollect.jobs.model import JobBounds
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.admin.get_job import JobId, find_job
from recollect_gateway.mcp_endpoint.tools.job_answers import JobOut, job_out


class CancelJob(Arguments, frozen=True, rename=None):
    """Arguments of `cancel_job`."""

    id: JobId


async def cancel_job(call: Call, arguments: CancelJob) -> Reply:
    """Ask a job to end."""
    async with call.transaction() as tx:
        await find_job(tx, arguments.id, arguments.graph)
        return Reply(job_out(await jobs.cancel_job(tx, arguments.id, JobBounds.of(call.settings))))


CANCEL_JOB = ToolSpec(
    description="Cancel a job after its current step. What it has done stays. A job that has ended is left as it is.",
    toolsets=frozenset({"organize", "admin"}),
    result=JobOut,
    handler=cancel_job,
    idempotent=True,
)
