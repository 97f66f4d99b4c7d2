"""The tool `create_triplet`."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from recollect.graph.relations.model import NewRelation
from recollect.memory import relating
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    REPLACES,
    NodeId,
    OwnedArguments,
    TripletOut,
    checked_metadata,
    graph_of,
    node_id,
    triplet_out,
)
from recollect_http.requests.argument_types import Kind, Name, RelationType


class CreateTriplet(OwnedArguments, frozen=True, rename=None):
    """Arguments of `create_triplet`."""

    subject: Name
    predicate: RelationType
    object_value: Name
    metadata: Annotated[dict[str, Any], Meta(description=REPLACES)] | None = None
    fact_id: Annotated[NodeId, Meta(description="The fact that states it")] | None = None
    subject_type: Annotated[Kind, Meta(description="The subject's entity type, if it is new")] | None = None
    object_type: Annotated[Kind, Meta(description="The object's entity type, if it is new")] | None = None


class OneTriplet(Struct, frozen=True, omit_defaults=True):
    """Result of `create_triplet`; `updated`: the relation existed with other metadata."""

    success: bool
    triplet: TripletOut
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
    out = triplet_out(upserted.edge, triplet.source, triplet.target, revision.graph.name, stated_by_id)
    return Reply(OneTriplet(True, out, upserted.updated))


CREATE_TRIPLET = facts_tool(
    description="Relate two entities by name, in active voice. Unknown entities are created. Metadata given for "
    "an existing relation replaces its own (`updated`).",
    result=OneTriplet,
    handler=create_triplet,
    idempotent=True,
)
