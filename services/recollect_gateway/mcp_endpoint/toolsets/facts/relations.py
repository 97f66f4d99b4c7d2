"""Relations, between nodes by id, and as triplets of names."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from recollect.errors import NotFound
from recollect.memory import relating
from recollect.relations.model import Edge, NewEdge, NewRelation, RelationFilter
from recollect_gateway.mcp_endpoint.tool import Call, Reply
from recollect_gateway.mcp_endpoint.toolsets.facts.shapes import (
    ContractType,
    NodeId,
    Offset,
    Owned,
    OwnedReading,
    Succeeded,
    checked_metadata,
    graph_of,
    milliseconds,
    node_id,
)
from recollect_gateway.mcp_endpoint.toolsets.memory.shapes import Name, RelationType, SoughtName


class CreateTriplet(Owned, frozen=True, rename=None):
    """Arguments of `create_triplet`."""

    subject: Name
    predicate: RelationType
    object_value: Name
    metadata: dict[str, Any] | None = None
    fact_id: Annotated[NodeId, Meta(description="The fact that says so")] | None = None


class SearchTriplets(OwnedReading, frozen=True, rename=None):
    """Arguments of `search_triplets`."""

    subject: SoughtName | None = None
    predicate: SoughtName | None = None
    object_value: SoughtName | None = None
    offset: Offset = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class CreateRelation(Owned, frozen=True, rename=None):
    """Arguments of `create_relation`."""

    from_id: NodeId
    to_id: NodeId
    relation_type: ContractType
    properties: dict[str, Any] | None = None


class DeleteRelation(Owned, frozen=True, rename=None):
    """Arguments of `delete_relation`."""

    from_id: NodeId
    to_id: NodeId
    relation_type: Annotated[SoughtName, Meta(description="Only relations of this type")] | None = None


class TripletOut(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A relation between two entities, by their names."""

    id: str
    owner_id: str
    subject: str
    predicate: str
    object: str
    subject_id: str
    object_id: str
    metadata: dict[str, Any]
    created_at: int
    fact_id: str | None = None


class OneTriplet(Struct, frozen=True):
    """Result of `create_triplet`."""

    success: bool
    triplet: TripletOut


class Triplets(Struct, frozen=True, omit_defaults=True):
    """Result of `search_triplets`; `next_offset` where more follow."""

    success: bool
    triplets: list[TripletOut]
    next_offset: int | None = None


class OneRelation(Struct, frozen=True):
    """Result of `create_relation`."""

    success: bool
    relation_type: str


async def create_triplet(call: Call, arguments: CreateTriplet) -> Reply:
    """Relate two entities by name."""
    graph = graph_of(arguments)
    metadata = checked_metadata(arguments.metadata, "metadata", call.settings)
    triplet = NewRelation(arguments.subject, arguments.object_value, arguments.predicate, metadata)
    fact_id = None if arguments.fact_id is None else node_id(arguments.fact_id)
    async with call.writing(graph) as (tx, revision):
        edge = await relating.create_triplet(tx, revision, triplet, fact_id)
    said = None if fact_id is None else str(fact_id)
    return Reply(OneTriplet(True, _triplet_out(edge, triplet.source, triplet.target, call.graph_name(graph), said)))


async def search_triplets(call: Call, arguments: SearchTriplets) -> Reply:
    """Find relations between names."""
    graph = graph_of(arguments)
    only = RelationFilter(arguments.subject, arguments.object_value, arguments.predicate)
    offset, limit = arguments.offset, arguments.limit
    async with call.transaction() as tx:
        found, more = await relating.search_triplets(tx, graph, only, offset=offset, limit=limit, as_of=arguments.as_of)
    triplets = [_triplet_out(edge, named.source, named.target, call.graph_name(graph)) for named, edge in found]
    return Reply(Triplets(True, triplets, offset + limit if more else None))


async def create_relation(call: Call, arguments: CreateRelation) -> Reply:
    """Relate two nodes by id."""
    metadata = checked_metadata(arguments.properties, "properties", call.settings)
    edge = NewEdge(node_id(arguments.from_id), node_id(arguments.to_id), arguments.relation_type, metadata=metadata)
    async with call.writing(graph_of(arguments)) as (tx, revision):
        made = await relating.relate(tx, revision, edge)
    return Reply(OneRelation(True, made.type))


async def delete_relation(call: Call, arguments: DeleteRelation) -> Reply:
    """Take relations between two nodes away; what is not there is passed over."""
    graph = graph_of(arguments)
    try:
        ends = node_id(arguments.from_id), node_id(arguments.to_id)
    except NotFound:
        return Reply(Succeeded(True))
    async with call.writing(graph) as (tx, revision):
        await relating.unrelate(tx, revision, *ends, arguments.relation_type)
    return Reply(Succeeded(True))


def _triplet_out(edge: Edge, subject: str, object_: str, owner_id: str, fact_id: str | None = None) -> TripletOut:
    """A relation between two names."""
    return TripletOut(
        id=str(edge.id),
        owner_id=owner_id,
        subject=subject,
        predicate=edge.type,
        object=object_,
        subject_id=str(edge.from_node),
        object_id=str(edge.to_node),
        metadata=edge.metadata,
        created_at=milliseconds(edge.created_at),
        fact_id=fact_id,
    )
