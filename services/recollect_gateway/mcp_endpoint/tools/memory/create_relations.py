"""The tool `create_relations`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.relations import service as relations
from recollect.graph.relations.model import NewRelation
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH, RelationItem, RelationOut, bare
from recollect_gateway.mcp_endpoint.tools.organize.shapes import OrganizedRelation, iso, organize_tool


class CreateRelations(Arguments, frozen=True):
    """Arguments of `create_relations`."""

    relations: Annotated[list[RelationItem], Meta(max_length=MAX_BATCH)]


class Relations(Struct, frozen=True):
    """Result of `create_relations`."""

    relations: list[RelationOut]


async def create_relations(call: Call, arguments: CreateRelations) -> Reply:
    """Create relations; answer those that are new."""
    new_relations = [NewRelation(r.from_, r.to, r.relation_type) for r in arguments.relations]
    async with call.writing(arguments.graph) as (tx, revision):
        created = await relations.create_relations(tx, revision, new_relations)
    return bare(Relations([RelationOut(r.source, r.target, r.type) for r in created]))


class CreatedRelations(Struct, frozen=True):
    """Result of `create_relations`: those that are new."""

    relations: list[OrganizedRelation]


async def create_organized_relations(call: Call, arguments: CreateRelations) -> Reply:
    """Create relations; answer those that are new."""
    new_relations = [NewRelation(r.from_, r.to, r.relation_type) for r in arguments.relations]
    async with call.writing(arguments.graph) as (tx, revision):
        created = await relations.create_relations(tx, revision, new_relations)
    now = iso(revision.at)
    return bare(CreatedRelations([OrganizedRelation(r.source, r.target, r.type, now, now) for r in created]))


CREATE_RELATIONS_IN_ORGANIZE = organize_tool(
    name="create_relations",
    description="Create relations between entities, which need not exist yet. Existing relations are skipped.",
    result=CreatedRelations,
    handler=create_organized_relations,
    idempotent=True,
)

CREATE_RELATIONS = ToolSpec(
    description="Create multiple new relations between entities in the knowledge graph, in active voice. "
    "Entities need not exist yet; existing relations are skipped.",
    toolsets=frozenset({"memory", "organize"}),
    result=Relations,
    handler=create_relations,
    idempotent=True,
    dialects=(CREATE_RELATIONS_IN_ORGANIZE,),
)
