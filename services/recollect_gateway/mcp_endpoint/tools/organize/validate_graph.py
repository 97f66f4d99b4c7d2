"""The tool `validate_graph`."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from recollect.curation.validation import service as validation
from recollect.curation.validation.model import IntegrityIssue
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import paged
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import more_note
from recollect_gateway.mcp_endpoint.tools.organize.shapes import organize_tool

MAX_FAULTS = 500

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


class ValidateGraph(ReadArguments, frozen=True):
    """Arguments of `validate_graph`."""

    offset: Annotated[int, Meta(ge=0, le=MAX_FAULTS, description="Number of faults to skip")] = 0
    limit: Annotated[int, Meta(ge=1, le=MAX_FAULTS, description="Maximum number of faults")] | None = None


class IssueDetails(Struct, rename="camel", omit_defaults=True, frozen=True):
    """The entity or the relation that has the issue."""

    entity: str | UnsetType = UNSET
    from_: str | UnsetType = field(default=UNSET, name="from")
    to: str | UnsetType = UNSET
    relation_type: str | UnsetType = UNSET


class ValidationIssue(Struct, frozen=True):
    """An integrity issue of a graph."""

    type: Literal["orphaned_relation", "missing_parent", "missing_type", "empty_observations", "isolated_entity"]
    message: str
    details: IssueDetails


class ValidationSummary(Struct, rename="camel", frozen=True):
    """The number of issues of each kind, including those that are not listed one by one."""

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


async def validate_graph(call: Call, arguments: ValidateGraph) -> Reply | PagedReply:
    """Count integrity issues of a graph, and list a page of them."""
    async with call.searching(arguments.graph, arguments.as_of) as view:
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


VALIDATE_GRAPH = organize_tool(
    description="List the faults of a graph: relations and parents that lead nowhere, and entities without a "
    "type, observations or relations.",
    result=Validation,
    handler=validate_graph,
    read_only=True,
)


def _issue(issue: IntegrityIssue, messages: dict[str, str]) -> ValidationIssue:
    if issue.target is None:
        details = IssueDetails(entity=issue.name)
    else:
        details = IssueDetails(from_=issue.name, to=issue.target, relation_type=issue.relation or "")
    return ValidationIssue(issue.fault, messages[issue.fault], details)  # type: ignore[arg-type]
