"""Handlers and shapes of upkeep: duplicates, compression, archiving, validation."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from recollect.curation.archiving import service as archiving
from recollect.curation.archiving.model import ArchiveCriteria
from recollect.curation.duplicates import deduplication
from recollect.curation.duplicates import service as duplicates
from recollect.curation.duplicates.model import CompressionResult, RequestedPass
from recollect.curation.validation import service as validation
from recollect.curation.validation.model import IntegrityIssue
from recollect.graph.graphs import service as graphs
from recollect.jobs.model import Job
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import Arguments, Listing, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools import jobs
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH, bare, more_note
from recollect_http.requests.argument_types import EMPTY_IS_A_VALUE, Importance, Tag, Time
from recollect_http.requests.parsing import utc

MAX_GROUPS = 10_000
MAX_FAULTS = 500

Threshold = Annotated[
    float,
    Meta(
        ge=0, le=1, description="Minimum similarity, 0 to 1, weighted: name 0.4, type 0.3, observations 0.2, tags 0.1"
    ),
]
DryRun = Annotated[bool, Meta(description="Only report what would be done")]

STEP_BY_STEP = "let propose_duplicates compare step by step"
"""The advice where one call would compare entities for too long."""

ERRORS = {
    "orphaned_relation": "Relation of an entity that does not exist",
    "missing_parent": "Entity under a parent that does not exist",
}
"""Kinds of issues that make a graph invalid, with their messages."""

WARNINGS = {
    "missing_type": "Entity without a type",
    "empty_observations": "Entity without observations",
    "isolated_entity": "Entity without relations",
}


class FindDuplicates(ReadArguments, frozen=True):
    """Arguments of `find_duplicates`."""

    threshold: Threshold = 0.8
    offset: Annotated[int, Meta(ge=0, le=MAX_GROUPS, description="Number of groups to skip")] = 0
    limit: Annotated[int, Meta(ge=1, le=MAX_BATCH, description="Maximum number of groups")] | None = None


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


class CompressGraph(Arguments, frozen=True):
    """Arguments of `compress_graph`."""

    threshold: Threshold = 0.8
    dry_run: DryRun = False


class ArchiveEntities(Arguments, frozen=True):
    """Arguments of `archive_entities`."""

    older_than: (
        Annotated[Time, Meta(description="Last changed before this time", extra={EMPTY_IS_A_VALUE: True})] | None
    ) = None
    importance_below: (
        Annotated[Importance, Meta(description="With an importance below this; entities without one do not match")]
        | None
    ) = None
    tags: Annotated[list[Tag], Meta(max_length=100, description="With one of these tags")] = []
    dry_run: DryRun = False


class ValidateGraph(ReadArguments, frozen=True):
    """Arguments of `validate_graph`."""

    offset: Annotated[int, Meta(ge=0, le=MAX_FAULTS, description="Number of faults to skip")] = 0
    limit: Annotated[int, Meta(ge=1, le=MAX_FAULTS, description="Maximum number of faults")] | None = None


class Duplicates(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `find_duplicates`: names, the oldest of each group first."""

    groups: list[list[str]]
    next_offset: int | None = None


class MergedGroup(Struct, frozen=True):
    """Entities that became one."""

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
    job: jobs.JobOut | UnsetType = UNSET


class ArchivedEntities(Struct, rename="camel", frozen=True):
    """Result of `archive_entities`."""

    archived: int
    entity_names: list[str]


class IssueDetails(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Which entity, or which relation."""

    entity: str | UnsetType = UNSET
    from_: str | UnsetType = field(default=UNSET, name="from")
    to: str | UnsetType = UNSET
    relation_type: str | UnsetType = UNSET


class ValidationIssue(Struct, frozen=True):
    """Something that is not as it should be."""

    type: Literal["orphaned_relation", "missing_parent", "missing_type", "empty_observations", "isolated_entity"]
    message: str
    details: IssueDetails


class ValidationSummary(Struct, rename="camel", frozen=True):
    """How many there are, also of those that are not told one by one."""

    total_errors: int
    total_warnings: int
    orphaned_relations_count: int
    entities_without_observations: int


class Validation(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `validate_graph`: errors first, then warnings; `nextOffset`: more follow, of either."""

    is_valid: bool
    issues: list[ValidationIssue]
    warnings: list[ValidationIssue]
    summary: ValidationSummary
    next_offset: int | None = None


async def find_duplicates(call: Call, arguments: FindDuplicates) -> Reply | Listing:
    """Find groups of similar entities."""
    offset, limit = arguments.offset, arguments.limit or PAGE_ROWS
    async with call.reading(arguments.graph, arguments.as_of) as view:
        search = await duplicates.open_search(view, threshold=arguments.threshold)
    groups = await call.compute(search.groups(), advice=f"Raise the threshold, or {STEP_BY_STEP}.")
    async with call.transaction() as tx:
        found = await duplicates.list_groups(tx, search, groups, offset=offset, limit=limit)
    return paged(
        found.groups,
        lambda rows, next_offset: bare(Duplicates(rows, next_offset), more_note(next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=offset + limit if found.more else None,
    )


async def propose_duplicates(call: Call, arguments: ProposeDuplicates) -> Reply:
    """Start a job that finds similar entities."""
    async with call.transaction() as tx:
        name = call.graph_name(arguments.graph)
        job = await deduplication.start_pass(tx, name, RequestedPass("propose", arguments.threshold))
    return jobs.started_job(job, note=f"{jobs.wait_hint(job)}, then find_duplicates lists the similar entities.")


async def compress_graph(call: Call, arguments: CompressGraph) -> Reply:
    """Merge similar entities; a dry run merges and rolls back. In a large graph, start a job that does it."""
    async with call.transaction() as tx:
        view = await graphs.view(tx, arguments.graph)
        if not arguments.dry_run and await duplicates.needs_a_job(view):
            job = await deduplication.start_pass(
                tx, call.graph_name(arguments.graph), RequestedPass("merge", arguments.threshold)
            )
            return Reply(_compression_by_job(job), note=f"{jobs.wait_hint(job)}.", job=job)
        search = await duplicates.open_search(view, threshold=arguments.threshold, proposed=False)
    groups = await call.compute(search.groups(), advice=f"Raise the threshold, or {STEP_BY_STEP}.")
    async with call.changing(arguments.graph, commit=not arguments.dry_run) as tx:
        result = await duplicates.merge_found(tx, search, call.operation, groups)
    return Reply(_compression(result), note="There are more: call again." if result.more else None)


async def compressed(_: Call, job: Job) -> Reply:
    """The result of a job of `compress_graph`."""
    return Reply(_compression_by_job(job))


async def archive_entities(call: Call, arguments: ArchiveEntities) -> Reply:
    """Archive entities that are no longer used."""
    criteria = ArchiveCriteria(
        utc(arguments.older_than, "olderThan"), arguments.importance_below, tuple(arguments.tags)
    )
    async with call.transaction() if arguments.dry_run else call.changing(arguments.graph) as tx:
        result = await archiving.archive_entities(
            tx, arguments.graph, call.operation, criteria, dry_run=arguments.dry_run
        )
    note = "There are more: call again." if result.more else None
    return Reply(ArchivedEntities(len(result.names), result.names), note=note)


async def validate_graph(call: Call, arguments: ValidateGraph) -> Reply | Listing:
    """Count integrity issues of a graph, and list a page of them."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        issues = await validation.validate_graph(view)
    totals = {issue.fault: issue.total for issue in issues}
    error_count = sum(totals.get(name, 0) for name in ERRORS)
    warning_count = sum(totals.get(name, 0) for name in WARNINGS)
    summary = ValidationSummary(
        error_count, warning_count, totals.get("orphaned_relation", 0), totals.get("empty_observations", 0)
    )
    unlisted = error_count + warning_count - len(issues)
    ranked = sorted(issues, key=lambda issue: issue.fault not in ERRORS)
    end = arguments.offset + (arguments.limit or MAX_FAULTS)

    def reply(page: list[IntegrityIssue], next_offset: int | None) -> Reply:
        errors = [_issue(issue, ERRORS) for issue in page if issue.fault in ERRORS]
        warnings = [_issue(issue, WARNINGS) for issue in page if issue.fault in WARNINGS]
        last_note = (
            f"{unlisted} more faults are not listed, because there are many of their kind." if unlisted else None
        )
        note = last_note if next_offset is None else more_note(next_offset)
        return Reply(Validation(not error_count, errors, warnings, summary, next_offset), note=note)

    return paged(
        ranked[arguments.offset : end],
        reply,
        limit=arguments.limit,
        offset=arguments.offset,
        next_offset=end if len(ranked) > end else None,
    )


def _compression_by_job(job: Job) -> Compression:
    """What a job has merged so far; a job counts nothing else."""
    return Compression(0, (job.result or {}).get("merged", 0), 0, 0, 0, [], jobs.job_out(job))


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


def _issue(issue: IntegrityIssue, messages: dict[str, str]) -> ValidationIssue:
    if issue.target is None:
        details = IssueDetails(entity=issue.name)
    else:
        details = IssueDetails(from_=issue.name, to=issue.target, relation_type=issue.relation or "")
    return ValidationIssue(issue.fault, messages[issue.fault], details)  # type: ignore[arg-type]
