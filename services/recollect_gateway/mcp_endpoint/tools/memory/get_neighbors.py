"""The tool `get_neighbors`."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from recollect.graph.nodes.model import stored_form, unique
from recollect.graph.relations.model import Direction, Walk
from recollect.graph.traversal import service as traversal
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import (
    EntityOut,
    Limit,
    Offset,
    RelationOut,
    entity_out,
    graph_out,
    more_note,
    relation_out,
)
from recollect_http.requests.argument_types import Name, RelationType


class GetNeighbors(ReadArguments, frozen=True):
    """Arguments of `get_neighbors`."""

    name: Annotated[Name, Meta(description="The name of the entity")]
    direction: Annotated[
        Literal["outgoing", "incoming", "both"], Meta(description="Which way relations point, seen from the entity")
    ] = "both"
    relation_types: Annotated[
        list[RelationType], Meta(max_length=50, description="Only along relations of these types; default: any")
    ] = []
    offset: Offset = 0
    limit: Limit | None = None


class Neighbors(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `get_neighbors`: neighbours, and the relations that lead to them. `nextOffset`: more follow.

    `cut`: there are more relations than are shown; search_relations tells all, in pages.
    """

    entities: list[EntityOut]
    relations: list[RelationOut]
    next_offset: int | None = None
    cut: str | None = None


async def get_neighbors(call: Call, arguments: GetNeighbors) -> Reply | PagedReply:
    """Show the entities one relation away, including names that occur in relations only."""
    walk = Walk(Direction(arguments.direction), tuple(arguments.relation_types))
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await traversal.neighbours_of(
            view,
            arguments.name,
            walk,
            offset=arguments.offset,
            limit=arguments.limit or PAGE_ROWS,
        )
    entities, relations = await graph_out(found, entity_out, relation_out)
    ends = unique(end for relation in relations for end in (relation.from_, relation.to))
    start = stored_form(arguments.name, ends)
    neighbours = [end for end in ends if end != start]

    def reply(page: list[str], next_offset: int | None) -> Reply:
        names = {*page, start}
        page_entities = [entity for entity in entities if entity.name in names]
        page_relations = [relation for relation in relations if {relation.from_, relation.to} <= names]
        note = more_note(next_offset, found.cut)
        return Reply(Neighbors(page_entities, page_relations, next_offset, found.cut), note=note)

    return paged(neighbours, reply, limit=arguments.limit, offset=arguments.offset, next_offset=found.next_offset)


GET_NEIGHBORS = ToolSpec(
    description="Get the entities one relation away from an entity, and the relations that lead to them.",
    toolsets=frozenset({"memory"}),
    result=Neighbors,
    handler=get_neighbors,
    read_only=True,
)
