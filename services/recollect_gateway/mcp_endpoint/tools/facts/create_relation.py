"""The tool `create_relation`."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from recollect.graph.relations.model import NewEdge
from recollect.memory import relating
from recollect.times import milliseconds
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    REPLACES,
    ContractType,
    NodeId,
    OwnedArguments,
    checked_metadata,
    graph_of,
    node_id,
)


class CreateRelation(OwnedArguments, frozen=True, rename=None):
    """Arguments of `create_relation`."""

    from_id: NodeId
    to_id: NodeId
    relation_type: ContractType
    properties: Annotated[dict[str, Any], Meta(description=REPLACES)] | None = None


class OneRelation(Struct, frozen=True, omit_defaults=True):
    """Result of `create_relation`; `updated`: the relation existed with other properties."""

    success: bool
    relation_type: str
    id: str
    created_at: int
    updated: bool = False


async def create_relation(call: Call, arguments: CreateRelation) -> Reply:
    """Relate two nodes by id, or replace the properties of their relation."""
    metadata = checked_metadata(arguments.properties, "properties", call.settings)
    edge = NewEdge(node_id(arguments.from_id), node_id(arguments.to_id), arguments.relation_type, metadata=metadata)
    async with call.writing(graph_of(arguments)) as (tx, revision):
        upserted = await relating.relate(tx, revision, edge)
    stored = upserted.edge
    return Reply(OneRelation(True, stored.type, str(stored.id), milliseconds(stored.created_at), upserted.updated))


CREATE_RELATION = facts_tool(
    description="Relate two nodes by their ids. Properties given for an existing relation replace its own (`updated`).",
    result=OneRelation,
    handler=create_relation,
    idempotent=True,
)
