"""The tool `describe_entity`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.nodes.model import unique
from recollect.graph.relations.model import Relation
from recollect.memory import reading
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import cut_short
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import EntityOut, RelationOut, entity_out, relation_out
from recollect_http.requests.argument_types import Name


class DescribeEntity(ReadArguments, frozen=True):
    """Arguments of `describe_entity`."""

    name: Annotated[Name, Meta(description="The name of the entity")]


class DescribedEntity(Struct, omit_defaults=True, frozen=True):
    """Result of `describe_entity`. `degree` counts the relations, up to 10,000; `cut`: it has more than are shown."""

    entity: EntityOut
    relations: list[RelationOut]
    neighbors: list[str]
    degree: int
    cut: str | None = None


async def describe_entity(call: Call, arguments: DescribeEntity) -> Reply | PagedReply:
    """Show an entity with its relations and neighbours, as far as they fill a page; raises NotFound."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await reading.describe(view, arguments.name)
    degree = len(found.relations)

    def reply(page: list[Relation], cut: str | None) -> Reply:
        entity = entity_out(found.entities[0])
        neighbours = unique(
            end for relation in page for end in (relation.source, relation.target) if end != entity.name
        )
        count = f"{'more than ' if found.cut else ''}{degree}"
        note = None if cut is None else f"{len(page)} of {count} relations: search_relations lists all."
        return Reply(DescribedEntity(entity, [*map(relation_out, page)], neighbours, degree, cut), note=note)

    return cut_short(found.relations, reply, limit=None, cut=found.cut)


DESCRIBE_ENTITY = ToolSpec(
    description="Get an entity with its relations, neighbours and degree.",
    toolsets=frozenset({"memory"}),
    result=DescribedEntity,
    handler=describe_entity,
    read_only=True,
)
