"""Nodes: write versions, read any of them, list and search them."""

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Struct

from recollect.errors import InvalidInput
from recollect.graph.entities import service as entities
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft, PutOutcome, Version, VersionFilter
from recollect.graph.nodes.model import NodeFields
from recollect.memory import searching
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.recall.prompts import MAX_QUESTION
from recollect.times import offset_minutes
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import Arguments, Listing, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import (
    CreatedBy,
    Kind,
    Kinds,
    LineageId,
    NodeVersionOut,
    Offset,
    Tag,
    Tags,
    node_out,
    require_small,
)
from recollect_http.requests.argument_types import VISIBLE, ObservationsOffset, Time, Until
from recollect_http.requests.parsing import utc, utc_through

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


class GetNodeById(Arguments, frozen=True, rename=None):
    """Arguments of `get_node_by_id`."""

    id: Annotated[UUID, Meta(description="A version's own id")]


class GetNodeByLineage(Arguments, frozen=True, rename=None):
    """Arguments of `get_node_by_lineage`."""

    lineage_id: LineageId
    at_version: Annotated[int, Meta(ge=1, le=2**31 - 1, description="The version with this number")] | None = None
    at_time: Annotated[Until, Meta(description="The newest version at this time")] | None = None
    observations_offset: ObservationsOffset = 0


class ListNodes(ReadArguments, frozen=True, rename=None):
    """Arguments of `list_nodes`."""

    kinds: Kinds = []
    tags: Tags = []
    compact: Annotated[bool, Meta(description="Without content, observations, metadata and provenance")] = False
    limit: Annotated[int, Meta(ge=1, le=500, description="Maximum number of nodes")] | None = None
    offset: Offset = 0


MAX_HITS = 20
"""Nodes of a search, if the caller gives no limit: the memgraph package's default."""


class SearchGraph(ReadArguments, frozen=True, rename=None):
    """Arguments of `search_graph`."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_QUESTION, description="A question or a few words")]
    kinds: Kinds = []
    tags: Tags = []
    fresh_only: Annotated[bool, Meta(description="Leave out stale nodes")] = False
    limit: (
        Annotated[
            int, Meta(ge=1, le=50, description="Maximum number of nodes", extra_json_schema={"default": MAX_HITS})
        ]
        | None
    ) = None
    offset: Annotated[int, Meta(ge=0, le=1_000, description="Number of nodes to skip")] = 0


class ManualConflict(Struct, frozen=True):
    """A concurrent put that was recorded. `heads`: the versions that stand side by side, newest first."""

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


class OneNodeVersion(Struct, frozen=True):
    """Result of `get_node_by_id` and `get_node_by_lineage`."""

    node: NodeVersionOut


class Nodes(Struct, frozen=True, omit_defaults=True):
    """Result of `list_nodes`, oldest first; `next_offset` where there are `more`."""

    nodes: list[NodeVersionOut]
    more: bool
    next_offset: int | None = None


class SearchHit(Struct, frozen=True):
    """A node that was found, and the text of it that answers best.

    That is a piece of its content, an observation, a name, its summary, or those of its tags that were meant.
    """

    node: NodeVersionOut
    score: float
    text: str


class SearchHits(Struct, frozen=True, omit_defaults=True):
    """Result of `search_graph`, best first; 100 nodes at most on all pages, `next_offset` where there are `more`.

    `waiting`: texts that are found by their words only, for now.
    """

    hits: list[SearchHit]
    more: bool
    waiting: int
    next_offset: int | None = None


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


async def get_node_by_id(call: Call, arguments: GetNodeById) -> Reply:
    """Show one version, exactly as written."""
    async with call.reading(arguments.graph, keyed=True) as view:
        node = await lineages.get_version(view.tx, view.graph, arguments.id)
        observations = await entities.observations_of(view, [node.node_id])
    return Reply(OneNodeVersion(node_out(node, view.graph.name, told=observations.get(node.node_id))))


async def get_node_by_lineage(call: Call, arguments: GetNodeByLineage) -> Reply:
    """Show a node as it is, or at a version or a time."""
    if arguments.at_version is not None and arguments.at_time is not None:
        raise InvalidInput("Give at_version or at_time, not both", path="at_version")
    at_time = utc_through(arguments.at_time, "at_time")
    skipped = arguments.observations_offset
    async with call.reading(arguments.graph, at_time, keyed=True) as view:
        if arguments.at_version is not None:
            node = await lineages.get_numbered(view.tx, view.graph, arguments.lineage_id, arguments.at_version)
        elif view.at is not None:
            node = await lineages.get_past_version(view, arguments.lineage_id)
        else:
            node = await lineages.get_node(view, arguments.lineage_id)
        observations = await entities.observations_of(view, [node.node_id], skipped=skipped)
    told = observations.get(node.node_id)
    return Reply(OneNodeVersion(node_out(node, view.graph.name, told=told, skipped=skipped)))


async def list_nodes(call: Call, arguments: ListNodes) -> Reply | Listing:
    """List nodes by kinds and tags."""
    offset, limit = arguments.offset, arguments.limit or PAGE_ROWS
    filter_ = VersionFilter(tuple(arguments.kinds), tuple(arguments.tags), limit, offset)
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found, more = await lineages.list_nodes(view, filter_)
        entity_ids = [] if arguments.compact else [node.node_id for node in found if node.name is not None]
        observations = await entities.observations_of(view, entity_ids) if entity_ids else {}
    nodes = [
        node_out(node, view.graph.name, compact=arguments.compact, told=observations.get(node.node_id))
        for node in found
    ]
    return paged(
        nodes,
        lambda rows, next_offset: Reply(Nodes(rows, next_offset is not None, next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=offset + limit if more else None,
    )


async def search_graph(call: Call, arguments: SearchGraph) -> Reply | Listing:
    """Find nodes by words and meaning."""
    offset, limit = arguments.offset, arguments.limit or MAX_HITS
    (question,) = await call.questions([arguments.text])
    filter_ = RecallFilter(kinds=tuple(arguments.kinds), tags=tuple(arguments.tags), fresh_only=arguments.fresh_only)
    async with call.recalling(arguments.graph, [question], filter_, as_of=arguments.as_of) as (view, cached):
        found = await searching.search_nodes(
            view,
            question,
            filter_,
            offset=offset,
            limit=limit,
            cached=cached,
        )
        graph = await graphs.name_of(view.tx, arguments.graph)
    return paged(
        [SearchHit(node_out(node, graph), round(score, 4), text) for node, score, text in found.nodes],
        lambda rows, next_offset: Reply(SearchHits(rows, next_offset is not None, found.waiting, next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=offset + limit if found.more else None,
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
