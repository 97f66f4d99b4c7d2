"""Many nodes or relations in one request: the bodies, and the calls of the use cases."""

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Struct

from recollect.errors import InvalidInput, RecollectError
from recollect.graph.relations.model import EdgeUpsert
from recollect.memory import batches
from recollect.memory.batches import NodeWrite, RelationWrite, WrittenNode
from recollect.times import offset_minutes
from recollect_gateway.calls import Call
from recollect_gateway.operations.explore import target_of
from recollect_gateway.operations.relate import status_of
from recollect_http.requests.argument_types import (
    VISIBLE,
    Importance,
    Kind,
    Name,
    Reason,
    RelationType,
    Tag,
    Text,
    Time,
    Ttl,
    check_metadata,
)
from recollect_http.requests.parsing import utc

MAX_BATCH = 500
"""The maximum number of items of one batch."""

MAX_OBSERVATIONS = 20
"""The maximum number of observations of one item."""

FAILED = "failed"

End = Annotated[str, Meta(min_length=1, max_length=512), VISIBLE]
NodeId = Annotated[UUID, Meta(description="Id of the node to change; null: see `name`")]
EntityName = Annotated[
    Name, Meta(description="Name of the entity, which is created if there is none; null: see `id`, or a new fact")
]
NodeKind = Annotated[Kind, Meta(description="Type of the node, such as `person`; null: it stays")]
Content = Annotated[str, Meta(min_length=1, max_length=100_000, description="Text of the node; null: stays"), VISIBLE]
Observations = Annotated[
    list[Text],
    Meta(
        max_length=MAX_OBSERVATIONS,
        description="Statements about the entity, which are added if it lacks them; none are removed",
    ),
]
Tags = Annotated[list[Tag], Meta(max_length=50, description="Tags, which replace all that it has; null: they stay")]
NewImportance = Annotated[Importance, Meta(description="Importance from 0 to 10; null: it stays")]
Metadata = Annotated[
    dict[str, Any], Meta(description="JSON object that clients define, which replaces the former one; null: it stays")
]
Source = Annotated[str, Meta(max_length=256, description="Where it comes from, such as a document; null: it stays")]
Thread = Annotated[
    str,
    Meta(max_length=256, description="Conversation or document of the fact or of new observations; null: it stays"),
]
SaidAt = Annotated[
    Time, Meta(description="Time at which the fact or new observations were said; null: now, or as before")
]
Lifetime = Annotated[Ttl, Meta(description="Days from now until the node expires; 0: never; null: as before, or never")]
WhyChanged = Annotated[Reason, Meta(description="Why it is changed, stored with the version; null: not stated")]
BasedOn = Annotated[
    int,
    Meta(
        ge=1,
        description="Number of the version that you read: the node is written only if there is no newer one; null: in "
        "any case",
    ),
]


class NodeIn(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A node to write."""

    id: NodeId | None = None
    name: EntityName | None = None
    kind: NodeKind | None = None
    content: Content | None = None
    observations: Observations = []
    tags: Tags | None = None
    importance: NewImportance | None = None
    metadata: Metadata | None = None
    source: Source | None = None
    thread: Thread | None = None
    at: SaidAt | None = None
    ttl_days: Lifetime | None = None
    reason: WhyChanged | None = None
    based_on_version: BasedOn | None = None


class NodesIn(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Nodes to write, each independently."""

    items: Annotated[
        list[NodeIn],
        Meta(
            min_length=1,
            max_length=MAX_BATCH,
            description=f"Nodes to write, 1 to {MAX_BATCH}, in one revision; one that fails leaves out itself only",
        ),
    ]


class RelationIn(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A relation to write."""

    source: Annotated[End, Meta(description="Id of the node, or name of the entity, at which the relation starts")]
    type: Annotated[RelationType, Meta(description="Type of the relation, such as `works_at`")]
    target: Annotated[End, Meta(description="Id of the node, or name of the entity, at which the relation ends")]
    metadata: Metadata | None = None


class RelationsIn(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Relations to write, each independently."""

    items: Annotated[
        list[RelationIn],
        Meta(
            min_length=1,
            max_length=MAX_BATCH,
            description=f"Relations to write, 1 to {MAX_BATCH}, in one revision; one that fails leaves out itself only",
        ),
    ]


class ItemErrorBody(Struct, frozen=True):
    """Why an item was not written."""

    code: Annotated[str, Meta(description="Stable code for programs, such as `node_not_found`")]
    detail: Annotated[str, Meta(description="Sentence for people that says what is wrong")]
    path: Annotated[str | None, Meta(description="Field of the item that is invalid; null: none alone")]


Fault = Annotated[ItemErrorBody | None, Meta(description="Why it was not written; null: it was")]


class WrittenNodeBody(Struct, frozen=True):
    """The outcome of one node."""

    status: Annotated[
        str, Meta(description="`new`, `updated`, `known` (it says that already), `conflict` or `failed` (see `error`)")
    ]
    id: Annotated[str | None, Meta(description="Id of the node, a UUID; null: it failed")]
    version: Annotated[int | None, Meta(description="Number of its newest version; null: it failed")]
    observations_added: Annotated[int, Meta(description="Number of the observations that it lacked")]
    error: Fault


class WrittenNodesBody(Struct, frozen=True):
    """The outcomes of all nodes, in order."""

    items: Annotated[list[WrittenNodeBody], Meta(description="One entry for each item, in their order")]


class WrittenRelationBody(Struct, frozen=True):
    """The outcome of one relation."""

    status: Annotated[
        str, Meta(description="`new`, `updated` (it had other metadata), `known` or `failed` (see `error`)")
    ]
    id: Annotated[str | None, Meta(description="Id of the relation, a UUID; null: it failed")]
    error: Fault


class WrittenRelationsBody(Struct, frozen=True):
    """The outcomes of all relations, in order."""

    items: Annotated[list[WrittenRelationBody], Meta(description="One entry for each item, in their order")]


async def write_nodes(call: Call, graph: str | None, body: NodesIn) -> WrittenNodesBody:
    """Write nodes, each independently, in one revision. Raises InvalidInput for an item with both an id and a name."""
    largest = call.settings.max_metadata_size
    writes = [_node_write(item, index, largest) for index, item in enumerate(body.items)]
    texts = [(write.name, text) for write in writes for text in (write.content, *write.observations) if text]
    prepared = await call.prepare(texts)
    async with call.writing(graph, prepared=prepared) as (tx, revision):
        written = await batches.write_nodes(tx, revision, writes)
    return WrittenNodesBody([_node_body(outcome) for outcome in written])


async def write_relations(call: Call, graph: str | None, body: RelationsIn) -> WrittenRelationsBody:
    """Write relations, each independently, in one revision."""
    for index, item in enumerate(body.items):
        check_metadata(item.metadata, f"items.{index}.metadata", call.settings.max_metadata_size)
    writes = [
        RelationWrite(target_of(item.source), item.type, target_of(item.target), item.metadata) for item in body.items
    ]
    async with call.writing(graph) as (tx, revision):
        written = await batches.write_relations(tx, revision, writes)
    return WrittenRelationsBody([_relation_body(outcome) for outcome in written])


def _node_write(item: NodeIn, index: int, largest: int) -> NodeWrite:
    if item.id is not None and item.name is not None:
        raise InvalidInput("Give either id or name", path=f"items.{index}.id")
    check_metadata(item.metadata, f"items.{index}.metadata", largest)
    return NodeWrite(
        id=item.id,
        name=item.name,
        kind=item.kind,
        content=item.content,
        observations=tuple(item.observations),
        tags=None if item.tags is None else tuple(item.tags),
        importance=item.importance,
        metadata=item.metadata,
        source=item.source,
        thread=item.thread or None,
        said_at=utc(item.at, f"items.{index}.at"),
        said_offset=None if item.at is None else offset_minutes(item.at),
        ttl_days=item.ttl_days,
        reason=item.reason,
        based_on=item.based_on_version,
    )


def _node_body(written: WrittenNode | RecollectError) -> WrittenNodeBody:
    if isinstance(written, RecollectError):
        return WrittenNodeBody(FAILED, None, None, 0, _error_body(written))
    return WrittenNodeBody(written.outcome, str(written.id), written.version, written.observations_added, None)


def _relation_body(written: EdgeUpsert | RecollectError) -> WrittenRelationBody:
    if isinstance(written, RecollectError):
        return WrittenRelationBody(FAILED, None, _error_body(written))
    return WrittenRelationBody(status_of(written), str(written.edge.id), None)


def _error_body(error: RecollectError) -> ItemErrorBody:
    return ItemErrorBody(str(error.code), error.message, error.path)
