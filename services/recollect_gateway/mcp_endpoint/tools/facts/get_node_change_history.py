"""The tool `get_node_change_history`."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from recollect.graph.lineages.model import Version
from recollect.memory import reading
from recollect.times import milliseconds
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    DEFAULT_SOURCE,
    NodeId,
    Offset,
    OwnedArguments,
    graph_of,
    node_id,
    text_of,
)


class GetNodeChangeHistory(OwnedArguments, frozen=True, rename=None):
    """Arguments of `get_node_change_history`."""

    node_id: NodeId
    offset: Offset = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] | None = None


class VersionOut(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One version of a node: its content, when and by whom it was written, and why, if its writer gave a reason."""

    version: int
    version_id: str
    text: str
    metadata: dict[str, Any]
    source: str
    status: str
    changed_at: int
    changed_by: str
    is_current: bool
    deleted: bool = False
    type: str | None = None
    ttl_days: float | None = None
    expires_at: int | None = None
    reason: str | None = None


class Versions(Struct, frozen=True, omit_defaults=True):
    """Result of `get_node_change_history`, newest first; `next_offset` where more follow."""

    success: bool
    versions: list[VersionOut]
    next_offset: int | None = None


async def get_node_change_history(call: Call, arguments: GetNodeChangeHistory) -> Reply | PagedReply:
    """List a node's versions."""
    offset, limit = arguments.offset, arguments.limit or PAGE_ROWS
    async with call.searching(graph_of(arguments)) as view:
        found, more = await reading.history(view, node_id(arguments.node_id), offset=offset, limit=limit)
    return paged(
        [*map(_version_out, found)],
        lambda rows, next_offset: Reply(Versions(True, rows, next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=offset + limit if more else None,
    )


GET_NODE_CHANGE_HISTORY = facts_tool(
    description="List every version of a fact or an entity, newest first. Works for deleted ones, too.",
    result=Versions,
    handler=get_node_change_history,
    read_only=True,
)


def _version_out(version: Version) -> VersionOut:
    """A version in the contract's shape."""
    return VersionOut(
        version=version.version,
        version_id=str(version.id),
        text=text_of(version),
        metadata=version.metadata,
        source=version.source or DEFAULT_SOURCE,
        status=version.status,
        changed_at=milliseconds(version.created_at),
        changed_by=version.created_by,
        is_current=version.is_current,
        deleted=version.deleted,
        type=version.kind,
        ttl_days=version.ttl_days,
        expires_at=None if version.expires_at is None else milliseconds(version.expires_at),
        reason=version.reason,
    )
