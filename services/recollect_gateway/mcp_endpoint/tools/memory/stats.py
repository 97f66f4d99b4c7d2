"""Counts of what a graph holds, in all and by type."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.entities import service as entities
from recollect.graph.graphs import service as graphs
from recollect.graph.relations import service as relations
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import Arguments, Listing, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import bare, cut_note, more_note

MAX_TYPES = 1_000
"""Types of a graph that are listed, on all pages together, at most."""


class GraphStats(Arguments, frozen=True):
    """Arguments of `graph_stats`."""


class ListTypes(ReadArguments, frozen=True):
    """What `list_entity_types` and `list_relation_types` take alike."""

    offset: Annotated[int, Meta(ge=0, le=MAX_TYPES, description="Number of types to skip")] = 0
    limit: Annotated[int, Meta(ge=1, le=MAX_TYPES, description="Maximum number of types")] | None = None


class ListEntityTypes(ListTypes, frozen=True):
    """Arguments of `list_entity_types`."""


class ListRelationTypes(ListTypes, frozen=True):
    """Arguments of `list_relation_types`."""


class Stats(Struct, rename="camel", frozen=True):
    """Result of `graph_stats`, of what `read_graph` lists. Every live entity is searched; no string is interned."""

    entities: int
    relations: int
    total_observations: int
    search_index_entries: int
    interned_strings: int = 0
    interned_bytes: int = 0


class TypeCount(Struct, frozen=True):
    """A type, and how many have it."""

    type: str
    count: int


class TypeCounts(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `list_entity_types` and `list_relation_types`, most first; `nextOffset`: more follow.

    `cut`: there are more than are told.
    """

    types: list[TypeCount]
    next_offset: int | None = None
    cut: str | None = None


async def graph_stats(call: Call, arguments: GraphStats) -> Reply:
    """Count what a graph holds."""
    async with call.reading(arguments.graph) as view:
        head = await graphs.head_of(view)
        relation_count = await relations.count_named(view, head, call.services.edge_counts)
    return Reply(Stats(head.entities, relation_count, head.observations, head.entities))


async def list_entity_types(call: Call, arguments: ListEntityTypes) -> Reply | Listing:
    """Count entities by type."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        counts = await entities.count_kinds(view, limit=MAX_TYPES + 1)
    return _types(counts, arguments)


async def list_relation_types(call: Call, arguments: ListRelationTypes) -> Reply | Listing:
    """Count relations by type."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        counts = await relations.count_named_types(view, limit=MAX_TYPES + 1)
    return _types(counts, arguments)


def _types(counts: list[tuple[str, int]], arguments: ListTypes) -> Reply | Listing:
    listed, offset = counts[:MAX_TYPES], arguments.offset
    end = offset + (arguments.limit or PAGE_ROWS)
    cut = "types" if len(counts) > MAX_TYPES else None

    def reply(rows: list[TypeCount], next_offset: int | None) -> Reply:
        page_cut = cut if next_offset is None else None
        return bare(TypeCounts(rows, next_offset, page_cut), more_note(next_offset) or cut_note(page_cut))

    rows = [TypeCount(kind, count) for kind, count in listed[offset:end]]
    return paged(rows, reply, limit=arguments.limit, offset=offset, next_offset=end if len(listed) > end else None)
