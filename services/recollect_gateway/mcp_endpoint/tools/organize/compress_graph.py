"""The tool `compress_graph`."""

from msgspec import UNSET, Struct, UnsetType

from recollect.curation.duplicates import deduplication
from recollect.curation.duplicates import service as duplicates
from recollect.curation.duplicates.model import CompressionResult, RequestedPass
from recollect.graph.graphs import service as graphs
from recollect.jobs.kinds import DEDUPLICATE
from recollect.jobs.model import Job
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, LongWork, Reply
from recollect_gateway.mcp_endpoint.tools.job_answers import JobOut, job_out, wait_hint
from recollect_gateway.mcp_endpoint.tools.organize.shapes import (
    STEP_BY_STEP,
    DryRun,
    Threshold,
    organize_tool,
)


class CompressGraph(Arguments, frozen=True):
    """Arguments of `compress_graph`."""

    threshold: Threshold = 0.8
    dry_run: DryRun = False


class MergedGroup(Struct, frozen=True):
    """Entities that were merged into one."""

    kept: str
    merged: list[str]


class Compression(Struct, rename="camel", frozen=True):
    """Result of `compress_graph`. `spaceFreed` is 0: what was merged stays in history until it is compacted.

    `job`: the graph is large; nothing is merged yet, the job does it.
    """

    duplicates_found: int
    entities_merged: int
    observations_compressed: int
    relations_consolidated: int
    space_freed: int
    merged_entities: list[MergedGroup]
    job: JobOut | UnsetType = UNSET


async def compress_graph(call: Call, arguments: CompressGraph) -> Reply:
    """Merge similar entities; a dry run merges and rolls back. In a large graph, start a job that does it."""
    async with call.transaction() as tx:
        view = await graphs.view(tx, arguments.graph)
        if not arguments.dry_run and await duplicates.needs_a_job(view):
            job = await deduplication.start_pass(
                tx, call.graph_name(arguments.graph), RequestedPass("merge", arguments.threshold)
            )
            return Reply(_compression_by_job(job), note=f"{wait_hint(job)}.", job=job)
        search = await duplicates.open_search(view, threshold=arguments.threshold, proposed=False)
    groups = await call.compute(search.groups(), advice=f"Raise the threshold, or {STEP_BY_STEP}.")
    async with call.changing(arguments.graph, commit=not arguments.dry_run) as tx:
        result = await duplicates.merge_found(tx, search, call.operation, groups)
    return Reply(_compression(result), note="There are more: call again." if result.more else None)


async def compressed(_: Call, job: Job) -> Reply:
    """The result of a job of `compress_graph`."""
    return Reply(_compression_by_job(job))


COMPRESS_GRAPH = organize_tool(
    description="Merge similar entities into the oldest of each group. The others stay in history, and "
    "undo_changes restores them. In a large graph a job does the work, and the job is returned.",
    result=Compression,
    handler=compress_graph,
    work=LongWork(DEDUPLICATE, compressed, mode="merge"),
    destructive=True,
    idempotent=True,
)


def _compression_by_job(job: Job) -> Compression:
    """The result of a job so far: the entities that it merged."""
    return Compression(0, (job.result or {}).get("merged", 0), 0, 0, 0, [], job_out(job))


def _compression(result: CompressionResult) -> Compression:
    groups = [MergedGroup(name, merged_names) for name, *merged_names in result.merged]
    return Compression(
        len(groups),
        sum(len(group.merged) for group in groups),
        result.known_observations,
        result.redirected_relations,
        0,
        groups,
    )
