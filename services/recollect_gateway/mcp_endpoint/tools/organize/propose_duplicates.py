"""The tool `propose_duplicates`."""

from typing import Annotated

from msgspec import Meta

from recollect.curation.duplicates import deduplication
from recollect.curation.duplicates.model import RequestedPass
from recollect.jobs.kinds import DEDUPLICATE
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, LongWork, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.job_answers import JobOut, started_job, succeeded_job, wait_hint


class ProposeDuplicates(Arguments, frozen=True):
    """Arguments of `propose_duplicates`."""

    threshold: Annotated[
        float,
        Meta(
            ge=0.3,
            le=1,
            description="Minimum similarity, 0.3 to 1, weighted: name 0.4, type 0.3, observations 0.2, tags 0.1",
        ),
    ] = 0.8


async def propose_duplicates(call: Call, arguments: ProposeDuplicates) -> Reply:
    """Start a job that finds similar entities."""
    async with call.transaction() as tx:
        name = call.graph_name(arguments.graph)
        job = await deduplication.start_pass(tx, name, RequestedPass("propose", arguments.threshold))
    return started_job(job, note=f"{wait_hint(job)}, then find_duplicates lists the similar entities.")


PROPOSE_DUPLICATES = ToolSpec(
    description="Start a job that finds similar entities in a graph of any size and stores the result for "
    "find_duplicates. Returns the job; if an equal job is under way, that one.",
    toolsets=frozenset({"organize", "admin"}),
    result=JobOut,
    handler=propose_duplicates,
    work=LongWork(DEDUPLICATE, succeeded_job, mode="propose"),
    idempotent=True,
)
