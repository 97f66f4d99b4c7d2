"""Relations, between nodes by id, and as triplets of names."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from recollect.errors import NotFound
from recollect.graph.graphs import service as graphs
from recollect.graph.relations.model import Edge, NewEdge, NewRelation, RelationFilter
from recollect.memory import relating
from recollect.times import milliseconds
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import Listing, Reply
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    ContractType,
    NodeId,
    Offset,
    OwnedArguments,
    OwnedReadArguments,
    Succeeded,
    checked_metadata,
    graph_of,
    node_id,
)
from recollect_http.requests.argument_types import EMPTY_IS_A_VALUE, Kind, Name, RelationType, SoughtName

REPLACES = "Replaces the properties of an existing relation; omitted: they stay"


class CreateTriplet(OwnedArguments, frozen=True, rename=None):
    """Arguments of `create_triplet`."""

    subject: Name
    predicate: RelationType
    object_value: Name
    metadata: Annotated[dict[str, Any], Meta(description=REPLACES)] | None = None
    fact_id: Annotated[NodeId, Meta(description="The fact that states it")] | None = None
    subject_type: Annotated[Kind, Meta(description="The subject's entity type, if it is new")] | None = None
    object_type: Annotated[Kind, Meta(description="The object's entity type, if it is new")] | None = None


class SearchTriplets(OwnedReadArguments, frozen=True, rename=None):
    """Arguments of `search_triplets`."""

    subject: SoughtName | None = None
    predicate: SoughtName | None = None
    object_value: SoughtName | None = None
    offset: Offset = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] | None = None


class CreateRelation(OwnedArguments, frozen=True, rename=None):
    """Arguments of `create_relation`."""

    from_id: NodeId
    to_id: NodeId
    relation_type: ContractType
    properties: Annotated[dict[str, Any], Meta(description=REPLACES)] | None = None


class DeleteRelation(OwnedArguments, frozen=True, rename=None):
    """Arguments of `delete_relation`."""

    from_id: NodeId
    to_id: NodeId
    relation_type: (
        Annotated[SoughtName, Meta(description="Only relations of this type", extra={EMPTY_IS_A_VALUE: True})] | None
    ) = None


class TripletOut(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A relation between two entities, by their names. `fact_id`: the fact that says so, while it is there."""

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


class OneTriplet(Struct, frozen=True, omit_defaults=True):
    """Result of `create_triplet`; `updated`: the relation was there with other metadata."""

    success: bool
    triplet: TripletOut
    updated: bool = False


class Triplets(Struct, frozen=True, omit_defaults=True):
    """Result of `search_triplets`; `next_offset` where more follow."""

    success: bool
    triplets: list[TripletOut]
    next_offset: int | None = None


class OneRelation(Struct, frozen=True, omit_defaults=True):
    """Result of `create_relation`; `updated`: it was there with other properties."""

    success: bool
    relation_type: str
    id: str
    created_at: int
    updated: bool = False


async def create_triplet(call: Call, arguments: CreateTriplet) -> Reply:
    """Relate two entities by name, or replace the metadata of their relation."""
    graph = graph_of(arguments)
    metadata = checked_metadata(arguments.metadata, "metadata", call.settings)
    triplet = NewRelation(arguments.subject, arguments.object_value, arguments.predicate, metadata)
    fact_id = None if arguments.fact_id is None else node_id(arguments.fact_id)
    kinds = arguments.subject_type, arguments.object_type
    async with call.writing(graph) as (tx, revision):
        upserted, stated_by = await relating.create_triplet(tx, revision, triplet, fact_id, kinds)
    stated_by_id = None if stated_by is None else str(stated_by)
    out = _triplet_out(upserted.edge, triplet.source, triplet.target, revision.graph.name, stated_by_id)
    return Reply(OneTriplet(True, out, upserted.updated))


async def search_triplets(call: Call, arguments: SearchTriplets) -> Reply | Listing:
    """Find relations between names."""
    graph = graph_of(arguments)
    filter_ = RelationFilter(arguments.subject, arguments.object_value, arguments.predicate)
    offset, limit = arguments.offset, arguments.limit or PAGE_ROWS
    async with call.reading(graph, arguments.as_of) as view:
        found, more = await relating.search_triplets(view, filter_, offset=offset, limit=limit)
        owner_id = await graphs.name_of(view.tx, graph)
    triplets = [
        _triplet_out(
            triplet.edge,
            triplet.named.source,
            triplet.named.target,
            owner_id,
            None if triplet.fact_id is None else str(triplet.fact_id),
        )
        for triplet in found
    ]
    return paged(
        triplets,
        lambda rows, next_offset: Reply(Triplets(True, rows, next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=offset + limit if more else None,
    )


async def create_relation(call: Call, arguments: CreateRelation) -> Reply:
    """Relate two nodes by id, or replace the properties of their relation."""
    metadata = checked_metadata(arguments.properties, "properties", call.settings)
    edge = NewEdge(node_id(arguments.from_id), node_id(arguments.to_id), arguments.relation_type, metadata=metadata)
    async with call.writing(graph_of(arguments)) as (tx, revision):
        upserted = await relating.relate(tx, revision, edge)
    stored = upserted.edge
    return Reply(OneRelation(True, stored.type, str(stored.id), milliseconds(stored.created_at), upserted.updated))


async def delete_relation(call: Call, arguments: DeleteRelation) -> Reply:
    """Delete relations between two nodes; succeeds where there are none."""
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
