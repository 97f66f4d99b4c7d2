"""The tool `undo_changes`."""

from typing import Annotated

from msgspec import Meta, Struct, structs

from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange, UndoPlan
from recollect.errors import InvalidInput
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.confirmation import confirm
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.admin.recent_changes import RevisionNumber
from recollect_http.requests.argument_types import EMPTY_IS_A_VALUE


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


class SkippedOut(Struct, frozen=True):
    """An item that was not undone, by its id, and the reason.

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
"""The maximum number of items that were not undone in a list; the others are only counted."""


async def undo_changes(call: Call, arguments: UndoChanges) -> Reply:
    """Undo the changes of a range of revisions, of one actor or of all."""
    span = ChangeRange(arguments.since_revision, arguments.until_revision, arguments.actor)
    if span.until is not None and span.until < span.since:
        raise InvalidInput("Must not be before since_revision", path="until_revision")
    async with call.transaction() if arguments.dry_run else call.changing(arguments.graph) as tx:
        plan = await undoing.undo_changes(tx, arguments.graph, call.operation, span, dry_run=arguments.dry_run)
    return Reply(_undone(plan, arguments.dry_run))


async def _count_undone(call: Call, arguments: UndoChanges) -> int:
    if arguments.dry_run:
        return 0
    reply = await undo_changes(call, structs.replace(arguments, dry_run=True))
    plan = reply.structured
    assert isinstance(plan, Undone)
    restored = plan.nodes_restored + plan.observations_restored + plan.relations_restored
    return restored + plan.nodes_removed + plan.observations_removed + plan.relations_removed


UNDO_CHANGES = ToolSpec(
    description="Undo the changes after a revision, of one actor or of everybody, including merges. Not undone, "
    "but reported: what others changed later, names that are taken by now, what compaction removed, and the "
    "graph's configuration.",
    toolsets=frozenset({"admin"}),
    result=Undone,
    handler=undo_changes,
    ask=confirm("undoes changes of {size} nodes, observations and relations in the graph {graph}", _count_undone),
    destructive=True,
    idempotent=True,
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
