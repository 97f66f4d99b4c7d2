"""Handlers and shapes of looking back: the log of a graph, and undoing what somebody changed."""

from datetime import UTC
from typing import Annotated

from msgspec import Meta, Struct

from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange, UndoPlan
from recollect.errors import InvalidInput
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Change
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import Arguments, Listing, Reply
from recollect_http.requests.argument_types import EMPTY_IS_A_VALUE

RevisionNumber = Annotated[int, Meta(ge=0, le=2**53)]


class RecentChanges(Arguments, frozen=True, rename=None):
    """Arguments of `recent_changes`."""

    since_revision: Annotated[RevisionNumber, Meta(description="Changes after this revision; 0 for all")]
    limit: Annotated[int, Meta(ge=1, le=1_000, description="Maximum number of changes")] | None = None


class UndoChanges(Arguments, frozen=True, rename=None):
    """Arguments of `undo_changes`."""

    since_revision: Annotated[RevisionNumber, Meta(description="Undo changes after this revision")]
    until_revision: (
        Annotated[RevisionNumber, Meta(description="Undo changes up to and including this revision; default: all")]
        | None
    ) = None
    actor: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=256,
                description="Whose changes to undo; default everybody's",
                extra={EMPTY_IS_A_VALUE: True},
            ),
        ]
        | None
    ) = None
    dry_run: Annotated[bool, Meta(description="Only report what would be done")] = False


class ChangeOut(Struct, frozen=True):
    """One entry of the log. `ids_cut`: it touched others, too."""

    revision: int
    at: str
    actor: str
    operation: str
    counts: dict[str, int]
    ids: list[str]
    ids_cut: bool


class Changes(Struct, frozen=True):
    """Result of `recent_changes`, oldest first. `more`: go on with `since_revision` of the last."""

    changes: list[ChangeOut]
    more: bool


class SkippedOut(Struct, frozen=True):
    """What was left alone, by its id, and why.

    changed_later, name_taken, compacted, gone, kind_not_allowed, cycle, or configuration: the graph's own, by its id.
    """

    id: str
    reason: str


class Undone(Struct, frozen=True):
    """Result of `undo_changes`: how much was, or would be, undone of each, and the first of what is left alone."""

    dry_run: bool
    nodes_restored: int
    nodes_removed: int
    observations_restored: int
    observations_removed: int
    relations_restored: int
    relations_removed: int
    skipped: list[SkippedOut]
    skipped_count: int


MAX_SKIPPED = 1_000
"""Items left alone that are listed, at most; the others are counted only."""


async def recent_changes(call: Call, arguments: RecentChanges) -> Reply | Listing:
    """Read the log of a graph."""
    limit = arguments.limit or PAGE_ROWS
    async with call.transaction() as tx:
        found, more = await graphs.recent_changes(tx, arguments.graph, since=arguments.since_revision, limit=limit)
    return paged(
        [_change(change) for change in found],
        lambda rows, next_offset: Reply(Changes(rows, next_offset is not None)),
        limit=arguments.limit,
        next_offset=limit if more else None,
    )


async def undo_changes(call: Call, arguments: UndoChanges) -> Reply:
    """Undo the changes of a range of revisions, of one actor or of all."""
    span = ChangeRange(arguments.since_revision, arguments.until_revision, arguments.actor)
    if span.until is not None and span.until < span.since:
        raise InvalidInput("Must not be before since_revision", path="until_revision")
    async with call.transaction() if arguments.dry_run else call.changing(arguments.graph) as tx:
        plan = await undoing.undo_changes(tx, arguments.graph, call.operation, span, dry_run=arguments.dry_run)
    return Reply(_undone(plan, arguments.dry_run))


def _change(change: Change) -> ChangeOut:
    return ChangeOut(
        change.revision,
        change.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        change.actor,
        change.operation,
        change.counts,
        [str(id_) for id_ in change.ids],
        change.cut,
    )


def _undone(plan: UndoPlan, dry_run: bool) -> Undone:
    return Undone(
        dry_run,
        nodes_restored=len(plan.restored),
        nodes_removed=len(plan.deleted),
        observations_restored=len(plan.restored_observations),
        observations_removed=len(plan.removed_observations),
        relations_restored=len(plan.restored_relations) + len(plan.rewritten_relations),
        relations_removed=len(plan.removed_relations),
        skipped=[SkippedOut(str(skipped.id), skipped.reason) for skipped in plan.skipped[:MAX_SKIPPED]],
        skipped_count=len(plan.skipped),
    )
