"""The tools `list_entity_types` and `list_relation_types`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.entities import service as entities
from recollect.graph.relations import service as relations
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import bare, cut_note, more_note

MAX_TYPES = 1_000
"""The maximum number of types of a graph on all pages of a list together."""


class ListTypes(ReadArguments, frozen=True):
    """The arguments that `list_entity_types` and `list_relation_types` share."""

    offset: Annotated[int, Meta(ge=0, le=MAX_TYPES, description="Number of types to skip")] = 0
    limit: Annotated[int, Meta(ge=1, le=MAX_TYPES, description="Maximum number of types")] | None = None


class ListEntityTypes(ListTypes, frozen=True):
    """Arguments of `list_entity_types`."""


class ListRelationTypes(ListTypes, frozen=True):
    """Arguments of `list_relation_types`."""


class TypeCount(Struct, frozen=True):
    """A type, and the number of entities or relations that have it."""

    type: str
    count: int


class TypeCounts(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `list_entity_types` and `list_relation_types`, most first; `nextOffset`: more follow.

    `cut`: there are more than are shown.
    """

    types: list[TypeCount]
    next_offset: int | None = None
    cut: str | None = None


async def list_entity_types(call: Call, arguments: ListEntityTypes) -> Reply | PagedReply:
    """Count entities by type."""
    async with call.searching(arguments.graph, arguments.as_of) as view:
        counts = await entities.count_kinds(view, limit=MAX_TYPES + 1)
    return _types(counts, arguments)


LIST_ENTITY_TYPES = ToolSpec(
    description="Count the entities of each type, most first.",
    toolsets=frozenset({"memory"}),
    result=TypeCounts,
    handler=list_entity_types,
    read_only=True,
)


async def list_relation_types(call: Call, arguments: ListRelationTypes) -> Reply | PagedReply:
    """Count relations by type."""
    async with call.searching(arguments.graph, arguments.as_of) as view:
        counts = await relations.count_named_types(view, limit=MAX_TYPES + 1)
    return _types(counts, arguments)


LIST_RELATION_TYPES = ToolSpec(
    description="Count the relations of each type, most first.",
    toolsets=frozenset({"memory"}),
    result=TypeCounts,
    handler=list_relation_types,
    read_only=True,
)


def _types(counts: list[tuple[str, int]], arguments: ListTypes) -> Reply | PagedReply:
    listed, offset = counts[:MAX_TYPES], arguments.offset
    end = offset + (arguments.limit or PAGE_ROWS)
    cut = "types" if len(counts) > MAX_TYPES else None

    def reply(rows: list[TypeCount], next_offset: int | None) -> Reply:
        page_cut = cut if next_offset is None else None
        return bare(TypeCounts(rows, next_offset, page_cut), more_note(next_offset) or cut_note(page_cut))

    rows = [TypeCount(kind, count) for kind, count in listed[offset:end]]
    return paged(rows, reply, limit=arguments.limit, offset=offset, next_offset=end if len(listed) > end else None)
