"""Counts of what a graph holds, in all and by type."""

from msgspec import Struct

from recollect.graph.entities import service as entities
from recollect.graph.graphs import service as graphs
from recollect.graph.relations import service as relations
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.toolsets.memory.shapes import bare, cut_note

MAX_TYPES = 1_000


class GraphStats(Arguments, frozen=True):
    """Arguments of `graph_stats`."""


class ListEntityTypes(ReadArguments, frozen=True):
    """Arguments of `list_entity_types`."""


class ListRelationTypes(ReadArguments, frozen=True):
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


class TypeCounts(Struct, omit_defaults=True, frozen=True):
    """Result of `list_entity_types` and `list_relation_types`, most first. `cut`: there are more."""

    types: list[TypeCount]
    cut: str | None = None


async def graph_stats(call: Call, arguments: GraphStats) -> Reply:
    """Count what a graph holds."""
    async with call.reading(arguments.graph) as view:
        head = await graphs.head_of(view)
        types = await relations.count_named_types(view)
    return Reply(Stats(head.entities, sum(count for _, count in types), head.observations, head.entities))


async def list_entity_types(call: Call, arguments: ListEntityTypes) -> Reply:
    """Count entities by type."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        counts = await entities.count_kinds(view, limit=MAX_TYPES + 1)
    return _types(counts)


async def list_relation_types(call: Call, arguments: ListRelationTypes) -> Reply:
    """Count relations by type."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        counts = await relations.count_named_types(view, limit=MAX_TYPES + 1)
    return _types(counts)


def _types(counts: list[tuple[str, int]]) -> Reply:
    cut = "types" if len(counts) > MAX_TYPES else None
    return bare(TypeCounts([TypeCount(kind, count) for kind, count in counts[:MAX_TYPES]], cut), cut_note(cut))
