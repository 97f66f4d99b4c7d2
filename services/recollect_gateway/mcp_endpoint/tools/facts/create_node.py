"""The tool `create_node`."""

from dataclasses import replace
from typing import Annotated, Any

from msgspec import Meta, Struct

from recollect.errors import InvalidInput, require_none
from recollect.graph.nodes.model import NewFact, NodeFields
from recollect.memory import writing
from recollect.memory.links import RequestedLink
from recollect.memory.revising import NodePatch
from recollect.settings import Settings
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool
from recollect_gateway.mcp_endpoint.tools.facts.node_arguments import (
    END_OF_TIME,
    FactKind,
    Milliseconds,
    Source,
    Text,
    TtlDays,
    patch_of,
    text_fault,
    ttl_fault,
)
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    DEFAULT_SOURCE,
    ContractType,
    NodeId,
    NodeOut,
    NodeType,
    OwnedArguments,
    Status,
    Threshold,
    graph_of,
    metadata_fault,
    moment_of,
    node_id,
    node_out,
)
from recollect_http.requests.argument_types import Kind

MAX_LINKS = 100

START_OF_TIME = -62_135_596_800_000
"""The first millisecond of the year 1."""

SaidAt = Annotated[
    int,
    Meta(
        ge=START_OF_TIME,
        le=END_OF_TIME,
        description="When it was said, in milliseconds since 1970; default now",
    ),
]
Thread = Annotated[str, Meta(max_length=256, description="Conversation or document it came from")]


class LinkIn(Struct, forbid_unknown_fields=True, frozen=True):
    """A relation from the new node to an existing one."""

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


class CreatedNode(Struct, frozen=True, omit_defaults=True):
    """Result of `create_node`; `updated`: the node was known, and the call gave it a new version."""

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
    patch = replace(patch_of(arguments), thread=arguments.thread or None, said_at=moment_of(arguments.at))
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


CREATE_NODE = facts_tool(
    description="Create a Fact, or an Entity whose name is the text. A known one (same text and status, or same "
    "name) is not duplicated: what you give becomes its new version (`updated`), what you omit stays. A fact is "
    "related to the entities that it names (MENTIONS_ENTITY).",
    result=CreatedNode,
    handler=create_node,
    idempotent=True,
)


def _create_faults(arguments: CreateNode, settings: Settings) -> list[InvalidInput | None]:
    """All errors in the arguments of a new node."""
    is_fact = arguments.node_type == "Fact"
    return [
        text_fault(arguments.text, "text", settings),
        metadata_fault(arguments.metadata, "metadata", settings),
        ttl_fault(arguments.ttl_days, settings),
        InvalidInput("A fact has no entity type", path="entity_type") if is_fact and arguments.entity_type else None,
        None if is_fact or not arguments.kind else InvalidInput("An entity's kind is its entity_type", path="kind"),
    ]


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
