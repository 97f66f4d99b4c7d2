"""The tool `search_relations`."""

from typing import Annotated

from msgspec import Meta, Struct, field

from recollect.graph.relations import service as relations
from recollect.graph.relations import subgraphs
from recollect.graph.relations.model import RelationFilter
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_OFFSET, RelationOut, bare, more_note, relation_out
from recollect_http.requests.argument_types import SoughtName


class SearchRelations(ReadArguments, frozen=True):
    """Arguments of `search_relations`; what is left out or empty matches all."""

    from_: Annotated[SoughtName, Meta(description="Name of the entity where it starts")] | None = field(
        default=None, name="from"
    )
    to: Annotated[SoughtName, Meta(description="Name of the entity where it ends")] | None = None
    relation_type: Annotated[str, Meta(max_length=256, description="The type of the relation")] | None = None
    offset: Annotated[int, Meta(ge=0, le=MAX_OFFSET, description="Number of relations to skip")] = 0
    limit: Annotated[int, Meta(ge=1, le=subgraphs.MAX_RELATIONS, description="Maximum number of relations")] | None = (
        None
    )


class FoundRelations(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `search_relations`; `nextOffset` is there only where more follow."""

    relations: list[RelationOut]
    next_offset: int | None = None


async def search_relations(call: Call, arguments: SearchRelations) -> Reply | PagedReply:
    """Find relations by their ends and type, oldest first."""
    filter_ = RelationFilter(arguments.from_ or None, arguments.to or None, arguments.relation_type or None)
    async with call.searching(arguments.graph, arguments.as_of) as view:
        limit = arguments.limit or PAGE_ROWS
        found, has_more = await relations.find_relations(view, filter_, offset=arguments.offset, limit=limit)
    return paged(
        [*map(relation_out, found)],
        lambda rows, next_offset: bare(FoundRelations(rows, next_offset), more_note(next_offset)),
        limit=arguments.limit,
        offset=arguments.offset,
        next_offset=arguments.offset + limit if has_more else None,
    )


SEARCH_RELATIONS = ToolSpec(
    description="Find relations by start, end and type.",
    toolsets=frozenset({"memory"}),
    result=FoundRelations,
    handler=search_relations,
    read_only=True,
)
