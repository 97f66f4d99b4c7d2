"""The tool `put_node`."""

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Struct

from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft, PutOutcome, Version
from recollect.graph.nodes.model import NodeFields
from recollect.times import offset_minutes
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import (
    CreatedBy,
    Kind,
    NodeVersionOut,
    Tag,
    node_out,
    require_small,
)
from recollect_http.requests.argument_types import VISIBLE, Time
from recollect_http.requests.parsing import utc

Content = Annotated[str, Meta(min_length=1, max_length=100_000, description="The node's text"), VISIBLE]
Summary = Annotated[str, Meta(max_length=1_000, description="A short form of the content, for lists")]
NodeTags = Annotated[list[Tag], Meta(max_length=100, description="Labels, such as topic:tea")]
Metadata = Annotated[dict[str, Any], Meta(description="Any data to store with it")]
Freshness = Annotated[Time, Meta(description="When it becomes stale")]
BasedOn = Annotated[int, Meta(ge=1, description="The version that you read before this write")]
Thread = Annotated[str, Meta(max_length=256, description="Conversation or document it came from")]
SaidAt = Annotated[Time, Meta(description="When it was said; default now")]
Lineage = Annotated[UUID, Meta(description="The node to write a new version of; omitted: a new node")]


class PutNode(Arguments, frozen=True, rename=None):
    """Arguments of `put_node`. A new version holds what is given here and no more; an entity keeps its name."""

    kind: Kind
    content: Content
    lineage_id: Lineage | None = None
    summary: Summary = ""
    tags: NodeTags = []
    metadata: Metadata = {}
    freshness_at: Freshness | None = None
    created_by: CreatedBy | None = None
    based_on_version: BasedOn | None = None
    thread: Thread | None = None
    at: SaidAt | None = None


class ManualConflict(Struct, frozen=True):
    """A concurrent put that was recorded as a conflict. `heads`: the conflicting versions, newest first."""

    code: str
    message: str
    heads: list[str]


class PutResult(Struct, frozen=True, omit_defaults=True):
    """Result of `put_node`. `conflict`: the node was written beside other heads, and waits to be settled.

    `unchanged`: it says just that already, and nothing was written.
    """

    node: NodeVersionOut
    created: bool
    conflict: ManualConflict | None = None
    unchanged: bool = False


async def put_node(call: Call, arguments: PutNode) -> Reply:
    """Write a version of a node."""
    require_small(call, arguments.metadata, "metadata")
    draft = draft_of(arguments, arguments.lineage_id, path="")
    prepared = await call.prepare([(None, arguments.content)])
    async with call.writing(arguments.graph, prepared=prepared) as (tx, revision):
        put = await lineages.put_node(tx, revision, draft)
        node = await lineages.get_node(GraphView(tx, revision.graph), put.node_id)
        graph = revision.graph.name
    return Reply(PutResult(node_out(node, graph), put.created, _conflict(put, node), put.unchanged))


PUT_NODE = ToolSpec(
    title="Put a node",
    description="Create a node, or write a new version of one (lineage_id). A version holds only what this call "
    "gives; one equal to the newest is not written (`unchanged`). Pass the version that you read "
    "(based_on_version), so that concurrent writes are detected.",
    toolsets=frozenset({"lineage"}),
    result=PutResult,
    handler=put_node,
)


def draft_of(node: Any, lineage_id: UUID | None, *, path: str) -> Draft:
    """Make the draft of a version from a struct with a node's fields; `path`: the prefix of field names in errors."""
    fields = NodeFields(
        kind=node.kind,
        content=node.content,
        summary=node.summary or None,
        tags=tuple(node.tags),
        metadata=node.metadata,
        freshness_at=utc(node.freshness_at, f"{path}freshness_at"),
        thread=node.thread or None,
        said_at=utc(node.at, f"{path}at"),
        said_offset=None if node.at is None else offset_minutes(node.at),
    )
    return Draft(fields, lineage_id, node.based_on_version, node.created_by, content_only=True)


def _conflict(put: PutOutcome, node: Version) -> ManualConflict | None:
    if not put.conflict:
        return None
    return ManualConflict(
        MANUAL_CONFLICT,
        f"Written next to other versions. Read them, then put one that is based on version {node.version} to resolve "
        "the conflict.",
        [str(node.id), *(str(version_id) for version_id in node.conflicts)],
    )


MANUAL_CONFLICT = "manual_conflict"
"""The code of a concurrent put that the `manual` policy recorded; the call itself has succeeded."""
