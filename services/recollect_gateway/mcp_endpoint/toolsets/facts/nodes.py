"""Facts and entities by id: make, read, change and delete them."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from recollect.errors import InvalidInput
from recollect.lineages.model import Version
from recollect.memory import facts
from recollect.memory.facts import Change
from recollect.memory.links import Link
from recollect.nodes.model import NewFact, NodeFields
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.tool import Call, Reply
from recollect_gateway.mcp_endpoint.toolsets.facts.shapes import (
    DEFAULT_SOURCE,
    ContractType,
    NodeId,
    NodeOut,
    NodeType,
    Owned,
    OwnedReading,
    Status,
    Succeeded,
    Threshold,
    checked_metadata,
    from_milliseconds,
    graph_of,
    node_id,
    node_out,
)
from recollect_gateway.mcp_endpoint.toolsets.memory.shapes import Kind

MAX_LINKS = 100
MAX_SUMMARIZED = 100

START_OF_TIME = -62_135_596_800_000
"""The first millisecond of the year 1."""
END_OF_TIME = 253_402_300_799_999
"""The last millisecond of the year 9999."""

Text = Annotated[str, Meta(max_length=100_000)]
Source = Annotated[str, Meta(max_length=256)]
Milliseconds = Annotated[
    int, Meta(ge=0, le=END_OF_TIME, description="When it expires, in milliseconds since 1970; wins over ttl_days")
]
SaidAt = Annotated[
    int,
    Meta(
        ge=START_OF_TIME,
        le=END_OF_TIME,
        description="When it was said, in milliseconds since 1970; default now",
    ),
]
Thread = Annotated[str, Meta(max_length=256, description="Conversation or document it came from")]
TtlDays = Annotated[float, Meta(description="Days until it expires")]


class LinkIn(Struct, forbid_unknown_fields=True, frozen=True):
    """A relation from the new node to one that is there."""

    node_id: NodeId
    node_type: NodeType
    relation_type: ContractType


class CreateNode(Owned, frozen=True, rename=None):
    """Arguments of `create_node`."""

    text: Annotated[Text, Meta(description="The fact, or the entity's name")] | None
    node_type: NodeType = "Fact"
    entity_type: Annotated[Kind, Meta(description="Entities only")] | None = None
    source: Source = "mcp"
    metadata: dict[str, Any] | None = None
    status: Status | None = None
    ttl_days: TtlDays | None = None
    expires_at: Milliseconds | None = None
    auto_link: Annotated[bool, Meta(description="Facts only: relate it to the entities that it names or resembles")] = (
        True
    )
    semantic_threshold: (
        Annotated[Threshold, Meta(description="Least cosine of an entity that it resembles; 0.8 where none is given")]
        | None
    ) = None
    links: Annotated[list[LinkIn], Meta(max_length=MAX_LINKS)] | None = None
    thread: Thread | None = None
    at: SaidAt | None = None


class GetNode(OwnedReading, frozen=True, rename=None):
    """Arguments of `get_node`."""

    node_id: NodeId


class UpdateNode(Owned, frozen=True, rename=None):
    """Arguments of `update_node`."""

    node_id: NodeId
    text: Text | None = None
    source: Source | None = None
    metadata: Annotated[dict[str, Any], Meta(description="Replaces what there was")] | None = None
    status: Status | None = None
    ttl_days: TtlDays | None = None
    expires_at: Milliseconds | None = None
    entity_type: Annotated[Kind, Meta(description="Entities only")] | None = None
    versioning: Annotated[bool, Meta(description="Tell the new version's number; history is always kept")] = False


class DeleteNode(Owned, frozen=True, rename=None):
    """Arguments of `delete_node`."""

    node_id: NodeId


class MarkOutdated(Owned, frozen=True, rename=None):
    """Arguments of `mark_outdated`."""

    fact_id: NodeId
    reason: Annotated[str, Meta(max_length=1_000, description="Kept in the metadata")] | None = None


class CreateSummaryFact(Owned, frozen=True, rename=None):
    """Arguments of `create_summary_fact`."""

    fact_ids: Annotated[list[NodeId], Meta(min_length=1, max_length=MAX_SUMMARIZED)]
    summary_text: Text


class OneNode(Struct, frozen=True):
    """Result of the tools that answer one node."""

    success: bool
    node: NodeOut


async def create_node(call: Call, arguments: CreateNode) -> Reply:
    """Make a fact or an entity."""
    graph = graph_of(arguments)
    text = _required_text(arguments.text, "text", call.settings)
    given = [Link(node_id(one.node_id), one.relation_type, one.node_type == "Entity") for one in arguments.links or []]
    fields = _given(call, arguments)
    if arguments.node_type == "Fact" and arguments.entity_type is not None:
        raise InvalidInput("A fact has no entity type", path="entity_type")
    async with call.writing(graph) as (tx, revision):
        if arguments.node_type == "Entity":
            made = await facts.create_entity(tx, revision, text, fields, given)
        else:
            made = await facts.create_fact(
                tx,
                revision,
                _fact(text, fields),
                given,
                auto_link=arguments.auto_link,
                threshold=arguments.semantic_threshold,
            )
    return _one(call, graph, made)


async def get_node(call: Call, arguments: GetNode) -> Reply:
    """Read a fact or an entity."""
    graph = graph_of(arguments)
    wanted = node_id(arguments.node_id)
    async with call.transaction() as tx:
        node = await facts.get_node(tx, graph, wanted, as_of=arguments.as_of)
    return _one(call, graph, node)


async def update_node(call: Call, arguments: UpdateNode) -> Reply:
    """Change a fact or an entity; the new version's number only where versioning is asked for."""
    graph = graph_of(arguments)
    metadata = arguments.metadata
    wanted = Change(
        text=None if arguments.text is None else _required_text(arguments.text, "text", call.settings),
        kind=arguments.entity_type,
        metadata=None if metadata is None else checked_metadata(metadata, "metadata", call.settings),
        status=arguments.status,
        source=arguments.source,
        ttl_days=_checked_ttl(arguments.ttl_days, call.settings),
        expires_at=from_milliseconds(arguments.expires_at),
    )
    async with call.writing(graph) as (tx, revision):
        node = await facts.change(tx, revision, node_id(arguments.node_id), wanted)
    return _one(call, graph, node, versioned=arguments.versioning)


async def delete_node(call: Call, arguments: DeleteNode) -> Reply:
    """Delete a fact or an entity."""
    async with call.writing(graph_of(arguments)) as (tx, revision):
        await facts.delete(tx, revision, node_id(arguments.node_id))
    return Reply(Succeeded(True))


async def mark_outdated(call: Call, arguments: MarkOutdated) -> Reply:
    """Say that a fact no longer holds."""
    graph = graph_of(arguments)
    outdated = Change(status="outdated", reason=arguments.reason)
    async with call.writing(graph) as (tx, revision):
        node = await facts.change(tx, revision, node_id(arguments.fact_id), outdated)
    return _one(call, graph, node)


async def create_summary_fact(call: Call, arguments: CreateSummaryFact) -> Reply:
    """Make a fact that sums up others."""
    graph = graph_of(arguments)
    text = _required_text(arguments.summary_text, "summary_text", call.settings)
    summed = [node_id(one) for one in arguments.fact_ids]
    async with call.writing(graph) as (tx, revision):
        made = await facts.summarize(tx, revision, summed, NewFact(text, source=DEFAULT_SOURCE))
    return _one(call, graph, made)


def _required_text(text: str | None, path: str, settings: Settings) -> str:
    """A text that says something and is not too long; raises InvalidInput."""
    if text is None or not text.strip():
        raise InvalidInput("Text cannot be empty", path=path)
    if len(text) > settings.max_text_length:
        raise InvalidInput(f"Text too long (max {settings.max_text_length} chars)", path=path)
    return text


def _checked_ttl(ttl_days: float | None, settings: Settings) -> float | None:
    """Days until something expires, within the bounds; raises InvalidInput."""
    if ttl_days is not None and not settings.min_ttl_days < ttl_days <= settings.max_ttl_days:
        raise InvalidInput(
            f"Must be more than {settings.min_ttl_days:g} and at most {settings.max_ttl_days:g}", path="ttl_days"
        )
    return ttl_days


def _given(call: Call, arguments: CreateNode) -> NodeFields:
    return NodeFields(
        kind=arguments.entity_type,
        metadata=checked_metadata(arguments.metadata, "metadata", call.settings),
        status=arguments.status or "active",
        source=arguments.source,
        ttl_days=_checked_ttl(arguments.ttl_days, call.settings),
        expires_at=from_milliseconds(arguments.expires_at),
        thread=arguments.thread,
        said_at=from_milliseconds(arguments.at),
    )


def _fact(text: str, fields: NodeFields) -> NewFact:
    return NewFact(
        text,
        metadata=fields.metadata,
        source=fields.source,
        ttl_days=fields.ttl_days,
        thread=fields.thread,
        said_at=fields.said_at,
        expires_at=fields.expires_at,
        status=fields.status,
    )


def _one(call: Call, graph: str | None, node: Version, *, versioned: bool = False) -> Reply:
    return Reply(OneNode(True, node_out(node, call.graph_name(graph), versioned=versioned)))
