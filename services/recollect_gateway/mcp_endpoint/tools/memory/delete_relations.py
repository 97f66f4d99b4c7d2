"""The tool `delete_relations`."""

from typing import Annotated

from msgspec import Meta

from recollect.graph.relations import service as relations
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.short_lists import list_briefly
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH, Done, RelationItem, done
from recollect_gateway.mcp_endpoint.tools.organize.shapes import organize_tool


class DeleteRelations(Arguments, frozen=True):
    """Arguments of `delete_relations`."""

    relations: Annotated[list[RelationItem], Meta(max_length=MAX_BATCH, description="An array of relations to delete")]


async def delete_relations(call: Call, arguments: DeleteRelations) -> Reply:
    """Delete relations; answer which were not there."""
    triples = [(r.from_, r.to, r.relation_type) for r in arguments.relations]
    async with call.writing(arguments.graph) as (tx, revision):
        there = await relations.delete_relations(tx, revision, triples)
    unknown = [f"{s} {type_} {t}" for s, t, type_ in triples if (s, t, type_) not in there]
    if not unknown:
        return done("Relations deleted successfully")
    deleted = len(triples) - len(unknown)
    return done(f"Deleted {deleted} of {len(triples)} relations. The rest matched nothing: {list_briefly(unknown)}")


DELETE_RELATIONS_IN_ORGANIZE = organize_tool(
    description="Delete relations.",
    result=Done,
    handler=delete_relations,
    destructive=True,
    idempotent=True,
)

DELETE_RELATIONS = ToolSpec(
    description="Delete multiple relations from the knowledge graph.",
    toolsets=frozenset({"memory", "organize"}),
    result=Done,
    handler=delete_relations,
    destructive=True,
    idempotent=True,
    dialects=(DELETE_RELATIONS_IN_ORGANIZE,),
)
