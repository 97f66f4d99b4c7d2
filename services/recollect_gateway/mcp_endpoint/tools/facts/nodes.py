"""Facts and entities by id: create, read, change and delete them."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from recollect.errors import InvalidInput, require_none
from recollect.graph.graphs import service as graphs
from recollect.graph.lineages.model import Version
from recollect.graph.nodes.model import NewFact, NodeFields
from recollect.memory import reading, revising, writing
from recollect.memory.links import RequestedLink
from recollect.memory.revising import NodePatch
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings
from recollect.text.visible import is_visible
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Reply
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    DEFAULT_SOURCE,
    ContractType,
    NodeId,
    NodeOut,
    NodeType,
    OwnedArguments,
    OwnedReadArguments,
    Status,
    Succeeded,
    Threshold,
    graph_of,
    metadata_fault,
    moment_of,
    node_fields,
    node_id,
    node_out,
)
from recollect_http.requests.argument_types import (
    EMPTY_IS_A_VALUE,
    Kind,
    ObservationsOffset,
    OmittedObservations,
    omitted_observations,
)

MAX_LINKS = 100
MAX_SUMMARIZED = 100

START_OF_TIME = -62_135_596_800_000
"""The first millisecond of the year 1."""
END_OF_TIME = 253_402_300_799_999
"""The last millisecond of the year 9999."""
NEVER = 0
"""The `expires_at` of a node that never expires; null means that the call leaves it as it is."""

Text = str
"""Its length is bounded by a setting, and not here: the contract has an error message of its own for that."""
FactKind = Annotated[str, Meta(min_length=1, max_length=256)]
Source = Annotated[str, Meta(max_length=256)]
Milliseconds = Annotated[
    int,
    Meta(ge=0, le=END_OF_TIME, description="When it expires, in milliseconds since 1970; 0: never; overrides ttl_days"),
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
KEPT_EMPTY = Meta(extra={EMPTY_IS_A_VALUE: True})
"""An empty text clears the field, or is refused."""


class LinkIn(Struct, forbid_unknown_fields=True, frozen=True):
    """A relation from the new node to one that is there."""

    node_id: NodeId
    node_type: NodeType
    relation_type: ContractType


class CreateNode(OwnedArguments, frozen=True, rename=None):
    """Arguments of `create_node`."""

    text: Annotated[Text, Meta(description="The fact, or the entity's name")] | None
    node_type: NodeType = "Fact"
    entity_type: Annotated[Kind, Meta(description="Entities only")] | None = None
    kind: Annotated[FactKind, Meta(description="Facts only; one that the graph's whitelist allows")] | None = None
    source: Annotated[Source, Meta(description="Where it comes from; default for a new node: mcp")] | None = None
    metadata: Annotated[dict[str, Any], Meta(description="Replaces the metadata of a known node")] | None = None
    status: Status | None = None
    ttl_days: TtlDays | None = None
    expires_at: Milliseconds | None = None
    auto_link: Annotated[bool, Meta(description="Facts only: relate it to the entities that it names or resembles")] = (
        True
    )
    semantic_threshold: (
        Annotated[Threshold, Meta(description="Minimum cosine similarity of an entity that it resembles; default: 0.8")]
        | None
    ) = None
    links: Annotated[list[LinkIn], Meta(max_length=MAX_LINKS)] | None = None
    thread: Thread | None = None
    at: SaidAt | None = None


class GetNode(OwnedReadArguments, frozen=True, rename=None):
    """Arguments of `get_node`."""

    node_id: NodeId
    observations_offset: ObservationsOffset = 0


class UpdateNode(OwnedArguments, frozen=True, rename=None):
    """Arguments of `update_node`."""

    node_id: NodeId
    text: Annotated[Text, KEPT_EMPTY] | None = None
    source: Annotated[Source, KEPT_EMPTY] | None = None
    metadata: Annotated[dict[str, Any], Meta(description="Replaces the old metadata")] | None = None
    status: Status | None = None
    ttl_days: TtlDays | None = None
    expires_at: Milliseconds | None = None
    entity_type: Annotated[Kind, Meta(description="Entities only"), KEPT_EMPTY] | None = None
    kind: Annotated[FactKind, Meta(description="Facts only")] | None = None
    versioning: Annotated[bool, Meta(description="Return the new version's number; history is always kept")] = False


class DeleteNode(OwnedArguments, frozen=True, rename=None):
    """Arguments of `delete_node`."""

    node_id: NodeId


class MarkOutdated(OwnedArguments, frozen=True, rename=None):
    """Arguments of `mark_outdated`."""

    fact_id: NodeId
    reason: (
        Annotated[str, Meta(max_length=1_000, description="Why; returned with the node and kept in its history")] | None
    ) = None


class CreateSummaryFact(OwnedArguments, frozen=True, rename=None):
    """Arguments of `create_summary_fact`."""

    fact_ids: Annotated[list[NodeId], Meta(min_length=1, max_length=MAX_SUMMARIZED)]
    summary_text: Text
    kind: Annotated[FactKind, Meta(description="Kind of the new fact")] | None = None


class OneNode(Struct, frozen=True):
    """Result of the tools that answer one node."""

    success: bool
    node: NodeOut


class WholeNode(NodeOut, frozen=True, omit_defaults=True, kw_only=True):
    """A fact or an entity, with what is said of the entity, oldest first.

    `omitted_observations`: where all of them would not fit an answer, the newest are told.
    """

    observations: list[str] = []
    omitted_observations: OmittedObservations | None = None


class DescribedNode(Struct, frozen=True):
    """Result of `get_node`."""

    success: bool
    node: WholeNode


class CreatedNode(Struct, frozen=True, omit_defaults=True):
    """Result of `create_node`; `updated`: it was known, and what the call says of it is its new version."""

    success: bool
    node: NodeOut
    updated: bool = False


async def create_node(call: Call, arguments: CreateNode) -> Reply:
    """Create a fact or an entity, or update one that is known already."""
    graph = graph_of(arguments)
    require_none(_create_faults(arguments, call.settings))
    text = arguments.text or ""
    links = [
        RequestedLink(node_id(link.node_id), link.relation_type, link.node_type == "Entity")
        for link in arguments.links or []
    ]
    patch = _patch(arguments)
    fields = _fields(patch)
    async with call.writing(graph, prepared=await call.prepare([(None, text)])) as (tx, revision):
        if arguments.node_type == "Entity":
            created = await writing.create_entity(tx, revision, text, fields, links, patch=patch)
        else:
            created = await writing.create_fact(
                tx,
                revision,
                _fact(text, fields),
                links,
                patch=patch,
                auto_link=arguments.auto_link,
                threshold=arguments.semantic_threshold,
            )
    return Reply(CreatedNode(True, node_out(created.node, revision.graph.name), created.updated))


async def get_node(call: Call, arguments: GetNode) -> Reply:
    """Read a fact or an entity."""
    graph = graph_of(arguments)
    id_ = node_id(arguments.node_id)
    async with call.reading(graph, arguments.as_of, keyed=True) as view:
        node, told = await reading.get_node(view, id_, skipped=arguments.observations_offset)
        owner_id = await graphs.name_of(view.tx, graph)
    told_so_far = arguments.observations_offset + len(told.texts)
    omitted = omitted_observations(told.omitted, told_so_far, "get_node with observations_offset")
    fields = node_fields(node, owner_id)
    return Reply(DescribedNode(True, WholeNode(**fields, observations=list(told.texts), omitted_observations=omitted)))


async def update_node(call: Call, arguments: UpdateNode) -> Reply:
    """Change a fact or an entity; answer the new version's number only if versioning is asked for."""
    graph = graph_of(arguments)
    text = arguments.text
    require_none(
        [
            None if text is None else _text_fault(text, "text", call.settings),
            metadata_fault(arguments.metadata, "metadata", call.settings),
            _ttl_fault(arguments.ttl_days, call.settings),
        ]
    )
    patch = replace(_patch(arguments), text=text)
    async with call.writing(graph) as (tx, revision):
        node = await revising.change(tx, revision, node_id(arguments.node_id), patch)
        return await _one_node(tx, graph, node, versioned=arguments.versioning)


async def delete_node(call: Call, arguments: DeleteNode) -> Reply:
    """Delete a fact or an entity."""
    async with call.writing(graph_of(arguments)) as (tx, revision):
        await revising.delete(tx, revision, node_id(arguments.node_id))
    return Reply(Succeeded(True))


async def mark_outdated(call: Call, arguments: MarkOutdated) -> Reply:
    """Mark a fact as no longer true."""
    graph = graph_of(arguments)
    patch = NodePatch(status="outdated", reason=arguments.reason)
    async with call.writing(graph) as (tx, revision):
        node = await revising.change(tx, revision, node_id(arguments.fact_id), patch)
        return await _one_node(tx, graph, node)


async def create_summary_fact(call: Call, arguments: CreateSummaryFact) -> Reply:
    """Create a fact that sums up others."""
    graph = graph_of(arguments)
    text = arguments.summary_text
    require_none([_text_fault(text, "summary_text", call.settings)])
    ids = [node_id(fact_id) for fact_id in arguments.fact_ids]
    summary = NewFact(text, kind=arguments.kind, source=DEFAULT_SOURCE)
    async with call.writing(graph, prepared=await call.prepare([(None, text)])) as (tx, revision):
        return await _one_node(tx, graph, await writing.summarize(tx, revision, ids, summary))


def _create_faults(arguments: CreateNode, settings: Settings) -> list[InvalidInput | None]:
    """All errors in the arguments of a new node."""
    is_fact = arguments.node_type == "Fact"
    return [
        _text_fault(arguments.text, "text", settings),
        metadata_fault(arguments.metadata, "metadata", settings),
        _ttl_fault(arguments.ttl_days, settings),
        InvalidInput("A fact has no entity type", path="entity_type") if is_fact and arguments.entity_type else None,
        None if is_fact or not arguments.kind else InvalidInput("An entity's kind is its entity_type", path="kind"),
    ]


def _text_fault(text: str | None, path: str, settings: Settings) -> InvalidInput | None:
    """The error for a text that is blank or too long."""
    if text is None or not is_visible(text):
        return InvalidInput("Text cannot be empty", path=path)
    if len(text) > settings.max_text_length:
        return InvalidInput(f"Text too long (max {settings.max_text_length} chars)", path=path)
    return None


def _ttl_fault(ttl_days: float | None, settings: Settings) -> InvalidInput | None:
    """The error for a lifetime outside the configured bounds."""
    if ttl_days is None or settings.min_ttl_days < ttl_days <= settings.max_ttl_days:
        return None
    return InvalidInput(
        f"Must be more than {settings.min_ttl_days:g} and at most {settings.max_ttl_days:g}", path="ttl_days"
    )


def _expiry(expires_at: int | None) -> datetime | None:
    """The time when a node expires; None where it is not given, or the node never expires."""
    return None if expires_at == NEVER else moment_of(expires_at)


def _patch(arguments: CreateNode | UpdateNode) -> NodePatch:
    """The values that the arguments give to a node beside its text."""
    never_expires = arguments.expires_at == NEVER
    patch = NodePatch(
        kind=arguments.entity_type,
        fact_kind=arguments.kind,
        metadata=arguments.metadata,
        status=arguments.status,
        source=arguments.source,
        ttl_days=None if never_expires else arguments.ttl_days,
        expires_at=_expiry(arguments.expires_at),
        never_expires=never_expires,
    )
    if isinstance(arguments, UpdateNode):
        return patch
    return replace(patch, thread=arguments.thread or None, said_at=moment_of(arguments.at))


def _fields(patch: NodePatch) -> NodeFields:
    """The fields of a new node, with their defaults."""
    return NodeFields(
        kind=patch.kind or patch.fact_kind,
        metadata=patch.metadata or {},
        status=patch.status or "active",
        source=patch.source or DEFAULT_SOURCE,
        ttl_days=patch.ttl_days,
        expires_at=patch.expires_at,
        thread=patch.thread,
        said_at=patch.said_at,
    )


def _fact(text: str, fields: NodeFields) -> NewFact:
    return NewFact(
        text,
        kind=fields.kind,
        metadata=fields.metadata,
        source=fields.source,
        ttl_days=fields.ttl_days,
        thread=fields.thread,
        said_at=fields.said_at,
        expires_at=fields.expires_at,
        status=fields.status,
    )


async def _one_node(tx: Transaction, graph: str | None, node: Version, *, versioned: bool = False) -> Reply:
    return Reply(OneNode(True, node_out(node, await graphs.name_of(tx, graph), versioned=versioned)))
