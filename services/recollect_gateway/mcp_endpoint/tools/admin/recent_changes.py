"""The tool `recent_changes`."""

from datetime import UTC
from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Change
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import Arguments, PagedReply, Reply, ToolSpec

RevisionNumber = Annotated[int, Meta(ge=0, le=2**53)]


class RecentChanges(Arguments, frozen=True, rename=None):
    """Arguments of `recent_changes`."""

    since_revision: Annotated[RevisionNumber, Meta(description="Changes after this revision; 0 for all")]
    limit: Annotated[int, Meta(ge=1, le=1_000, description="Maximum number of changes")] | None = None


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


async def recent_changes(call: Call, arguments: RecentChanges) -> Reply | PagedReply:
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


RECENT_CHANGES = ToolSpec(
    description="List the changes of a graph after a revision, oldest first, each with its operation, actor and ids.",
    toolsets=frozenset({"admin"}),
    result=Changes,
    handler=recent_changes,
    read_only=True,
)


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
