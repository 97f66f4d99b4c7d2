"""The tool `reembed`."""

from typing import Annotated

from msgspec import Meta

from recollect.graph.passages import rebuild_jobs
from recollect.jobs.kinds import REEMBED_PASSAGES
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, LongWork, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.job_answers import JobOut, started_job, succeeded_job


class Reembed(Arguments, frozen=True, rename=None):
    """Arguments of `reembed`."""

    model: (
        Annotated[str, Meta(min_length=1, max_length=200, description="The model to embed with; default: the worker's")]
        | None
    ) = None
    drop_old: Annotated[bool, Meta(description="Then delete the vectors of other models; this cannot be undone")] = (
        False
    )


async def reembed(call: Call, arguments: Reembed) -> Reply:
    """Start a job that embeds a graph by another model."""
    name, model = call.graph_name(arguments.graph), arguments.model
    async with call.transaction() as tx:
        return started_job(await rebuild_jobs.start_reembed(tx, name, model=model, drop_old=arguments.drop_old))


REEMBED = ToolSpec(
    description="Start a job that embeds a graph with another model. Searches use the old vectors until the new "
    "ones are complete; the old ones are kept, so that you can go back. Texts that the embedder refused are tried "
    "again.",
    toolsets=frozenset({"admin"}),
    result=JobOut,
    handler=reembed,
    work=LongWork(REEMBED_PASSAGES, succeeded_job),
    idempotent=True,
)
