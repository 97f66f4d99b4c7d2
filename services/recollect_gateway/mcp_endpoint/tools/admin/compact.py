"""The tool `compact`."""

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

from msgspec import Meta, Struct, structs

from recollect.accounts.tenants import service as tenants
from recollect.graph.graphs import moments
from recollect.graph.graphs import service as graphs
from recollect.jobs import service as jobs
from recollect.jobs.kinds import COMPACT_GRAPH
from recollect.jobs.model import Job, NewJob
from recollect.retention.compaction import service as compaction
from recollect.retention.compaction.model import Compaction, FreedRows
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.confirmation import confirm
from recollect_gateway.mcp_endpoint.tool import Arguments, LongWork, Reply, ToolSpec


class Compact(Arguments, frozen=True, rename=None):
    """Arguments of `compact`."""

    dry_run: Annotated[bool, Meta(description="Only report what would be freed")] = False


class FreedOut(Struct, frozen=True):
    """The number of rows that were freed, by table."""

    nodes: int
    versions: int
    observations: int
    relations: int
    aliases: int
    passages: int
    vectors: int


class Compacted(Struct, frozen=True):
    """Result of `compact`. The past can be read from `readable_from_revision` on; 0: all of it. `job` does the rest."""

    dry_run: bool
    freed: FreedOut
    readable_from_revision: int
    job: str | None


async def compact(call: Call, arguments: Compact) -> Reply:
    """Remove rows deleted or superseded longer ago than the retention; what one call cannot remove follows by a job."""
    async with call.transaction() if arguments.dry_run else call.changing(arguments.graph) as tx:
        graph = await graphs.open_graph(tx, arguments.graph)
        if graph is None:
            return Reply(_compacted(Compaction(None, FreedRows()), dry_run=arguments.dry_run))
        retention = await tenants.retention_of(tx, timedelta(days=call.settings.retention_days))
        before = await compaction.retained_since(tx, retention)
        if arguments.dry_run:
            return Reply(_compacted(await compaction.preview(tx, graph, before=before), dry_run=True))
        result = await compaction.compact(tx, graph.id, before=before)
        job_arguments = {"retention_days": retention / timedelta(days=1)}
        new_job = NewJob(COMPACT_GRAPH, graph.id, job_arguments, cursor={"call": asdict(result.freed)})
        job = await jobs.schedule(tx, new_job) if result.more else None
    note = "This call removed only the first part; a job removes the rest." if job else None
    return Reply(_compacted(result, dry_run=arguments.dry_run, job=str(job.id) if job else None), note=note, job=job)


async def compacted(call: Call, job: Job) -> Reply:
    """The rows freed by a call together with those freed by the job that did its rest."""
    assert job.graph_id is not None, "one graph is compacted at a time"
    freed = FreedRows(**job.cursor.get("call", {})) + FreedRows(**job.result or {})
    async with call.transaction() as tx:
        horizon = await moments.horizon_of(tx, await graphs.graph_of(tx, job.graph_id))
    return Reply(_compacted(Compaction(horizon, freed), dry_run=False))


async def _count_compacted(call: Call, arguments: Compact) -> int:
    if arguments.dry_run:
        return 0
    reply = await compact(call, structs.replace(arguments, dry_run=True))
    assert isinstance(reply.structured, Compacted)
    return sum(structs.astuple(reply.structured.freed))


COMPACT = ToolSpec(
    description="Permanently remove what was deleted or superseded longer ago than the retention, and report what "
    "was freed.",
    toolsets=frozenset({"memory", "admin"}),
    result=Compacted,
    handler=compact,
    ask=confirm("removes {size} entries from the history of the graph {graph} for good", _count_compacted),
    work=LongWork(COMPACT_GRAPH, compacted),
    destructive=True,
    idempotent=True,
)


def _compacted(result: Compaction, *, dry_run: bool, job: str | None = None) -> Compacted:
    freed = result.freed
    counts = FreedOut(
        freed.nodes,
        freed.versions,
        freed.observations,
        freed.relations,
        freed.aliases,
        freed.passages,
        freed.vectors,
    )
    return Compacted(dry_run, counts, result.horizon.revision if result.horizon else 0, job)
