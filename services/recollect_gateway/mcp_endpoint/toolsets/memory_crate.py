"""Toolset `memory`, the rest: what the mcp-memory crate adds to the official memory server.

Names, arguments and results are the crate's (https://crates.io/crates/mcp-memory). Array replies stand bare in the
text; what a bound left out is said in `structuredContent` and in a second text.
"""

from typing import Annotated

from msgspec import Meta, Struct, field

from recollect.graphs import service as graphs
from recollect.memory import service as memory
from recollect.nodes import service as nodes
from recollect.nodes.model import EntityNotFound, NewEntity, unique
from recollect.relations import service as relations
from recollect.relations.model import RelationFilter
from recollect.traversal import service as traversal
from recollect_gateway.mcp_endpoint.tool import Arguments, Call, Reading, Reply
from recollect_gateway.mcp_endpoint.toolsets.memory import (
    MAX_BATCH,
    MAX_OFFSET,
    EntityOut,
    Kind,
    Limit,
    Name,
    RelationOut,
    SoughtName,
    Text,
    bare,
    entity_out,
    relation_out,
)

MAX_TYPES = 1_000

From = Annotated[Name, Meta(description="Name of the entity where the path starts")]
To = Annotated[Name, Meta(description="Name of the entity where the path ends")]


class UpsertItem(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """An entity to make or to add to."""

    name: Annotated[Name, Meta(description="The name of the entity")]
    entity_type: Annotated[Kind, Meta(description="The type of the entity; one that exists keeps its own")]
    observations: Annotated[list[Text], Meta(max_length=MAX_BATCH, description="Observations that it should have")] = []


class UpsertEntities(Arguments, frozen=True):
    """Arguments of `upsert_entities`."""

    entities: Annotated[list[UpsertItem], Meta(max_length=MAX_BATCH)]


class GetEntity(Reading, frozen=True):
    """Arguments of `get_entity`."""

    name: Annotated[Name, Meta(description="The name of the entity")]


class BatchGetEntities(Reading, frozen=True):
    """Arguments of `batch_get_entities`."""

    names: Annotated[list[SoughtName], Meta(max_length=MAX_BATCH, description="Names of entities")]


class GraphStats(Arguments, frozen=True):
    """Arguments of `graph_stats`."""


class SearchRelations(Reading, frozen=True):
    """Arguments of `search_relations`; what is left out or empty matches all."""

    from_: Annotated[SoughtName, Meta(description="Name of the entity where it starts")] | None = field(
        default=None, name="from"
    )
    to: Annotated[SoughtName, Meta(description="Name of the entity where it ends")] | None = None
    relation_type: Annotated[str, Meta(max_length=256, description="The type of the relation")] | None = None
    offset: Annotated[int, Meta(ge=0, le=MAX_OFFSET, description="Relations to pass over")] = 0
    limit: Annotated[int, Meta(ge=1, le=relations.MAX_RELATIONS, description="Relations at most")] = MAX_BATCH


class FindPath(Reading, frozen=True):
    """Arguments of `find_path`."""

    from_: From = field(name="from")
    to: To


class FindAllPaths(Reading, frozen=True):
    """Arguments of `find_all_paths`."""

    from_: From = field(name="from")
    to: To
    max_depth: Annotated[int, Meta(ge=1, le=12, description="Relations on one path at most")] = 6
    max_paths: Annotated[int, Meta(ge=1, le=MAX_BATCH, description="Paths at most")] = 50


class ExtractSubgraph(Reading, frozen=True):
    """Arguments of `extract_subgraph`."""

    names: Annotated[list[SoughtName], Meta(max_length=MAX_BATCH, description="Names of the entities to start from")]
    depth: Annotated[int, Meta(ge=0, le=10, description="Relations away at most")] = 1
    limit: Limit = MAX_BATCH


class DescribeEntity(Reading, frozen=True):
    """Arguments of `describe_entity`."""

    name: Annotated[Name, Meta(description="The name of the entity")]


class ListEntityTypes(Reading, frozen=True):
    """Arguments of `list_entity_types`."""


class ListRelationTypes(Reading, frozen=True):
    """Arguments of `list_relation_types`."""


class UpsertedEntity(Struct, rename="camel", frozen=True):
    """What became of one entity."""

    name: str
    created: bool
    added_observations: list[str]


class UpsertedEntities(Struct, frozen=True):
    """Result of `upsert_entities`, one entry an entity, in order."""

    results: list[UpsertedEntity]


class FoundEntities(Struct, frozen=True):
    """Result of `batch_get_entities`, in the order asked for; null for a name that no entity has."""

    entities: list[EntityOut | None]


class Stats(Struct, rename="camel", frozen=True):
    """Result of `graph_stats`. Every live entity is searched. Strings are not interned here."""

    entities: int
    relations: int
    total_observations: int
    search_index_entries: int
    interned_strings: int = 0
    interned_bytes: int = 0


class FoundRelations(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `search_relations`; `nextOffset` is there only where more follow."""

    relations: list[RelationOut]
    next_offset: int | None = None


class FoundPath(Struct, omit_defaults=True, frozen=True):
    """Result of `find_path`: names from one end to the other; none where there is no path. `cut`: a bound ended it."""

    path: list[str]
    cut: str | None = None


class FoundPaths(Struct, omit_defaults=True, frozen=True):
    """Result of `find_all_paths`, shortest first. `cut`: which bound left some out."""

    paths: list[list[str]]
    cut: str | None = None


class ExtractedGraph(Struct, omit_defaults=True, frozen=True):
    """Result of `extract_subgraph`, nearest first. `cut`: which bound left some out."""

    entities: list[EntityOut]
    relations: list[RelationOut]
    cut: str | None = None


class DescribedEntity(Struct, frozen=True):
    """Result of `describe_entity`. `degree` counts the relations."""

    entity: EntityOut
    relations: list[RelationOut]
    neighbors: list[str]
    degree: int


class TypeCount(Struct, frozen=True):
    """A type, and how many have it."""

    type: str
    count: int


class TypeCounts(Struct, omit_defaults=True, frozen=True):
    """Result of `list_entity_types` and `list_relation_types`, most first. `cut`: there are more."""

    types: list[TypeCount]
    cut: str | None = None


async def upsert_entities(call: Call, arguments: UpsertEntities) -> Reply:
    """Make entities, or add to those that exist; answer what became of each."""
    wanted = [NewEntity(e.name, e.entity_type, tuple(e.observations)) for e in arguments.entities]
    async with call.writing(arguments.graph) as (tx, revision):
        upserted = await nodes.upsert_entities(tx, revision, wanted)
    return bare(UpsertedEntities([UpsertedEntity(one.name, one.created, list(one.added)) for one in upserted]))


async def get_entity(call: Call, arguments: GetEntity) -> Reply:
    """Open one entity; raises NotFound."""
    async with call.transaction() as tx:
        [found] = await memory.get_entities(tx, arguments.graph, [arguments.name], as_of=arguments.as_of)
    if found is None:
        raise EntityNotFound(arguments.name)
    return Reply(entity_out(found))


async def batch_get_entities(call: Call, arguments: BatchGetEntities) -> Reply:
    """Open entities, in order, null for those that are not there."""
    async with call.transaction() as tx:
        found = await memory.get_entities(tx, arguments.graph, arguments.names, as_of=arguments.as_of)
    return bare(FoundEntities([None if entity is None else entity_out(entity) for entity in found]))


async def graph_stats(call: Call, arguments: GraphStats) -> Reply:
    """Count what a graph holds."""
    async with call.transaction() as tx:
        graph = await graphs.open_graph(tx, arguments.graph)
        head = await graphs.head_of(tx, graph) if graph else None
    if head is None:
        return Reply(Stats(0, 0, 0, 0))
    return Reply(Stats(head.entities, head.relations, head.observations, head.entities))


async def search_relations(call: Call, arguments: SearchRelations) -> Reply:
    """Find relations by their ends and type, oldest first."""
    only = RelationFilter(arguments.from_ or None, arguments.to or None, arguments.relation_type or None)
    async with call.transaction() as tx:
        found, more = await relations.find_relations(
            tx, arguments.graph, only, offset=arguments.offset, limit=arguments.limit, as_of=arguments.as_of
        )
    following = arguments.offset + arguments.limit if more else None
    note = f"More follow: offset={following}." if more else None
    return bare(FoundRelations([*map(relation_out, found)], following), note)


async def find_path(call: Call, arguments: FindPath) -> Reply:
    """Find a shortest path, whichever way relations point."""
    async with call.transaction() as tx:
        found = await traversal.find_path(tx, arguments.graph, arguments.from_, arguments.to, as_of=arguments.as_of)
    return bare(FoundPath(found.paths[0] if found.paths else [], found.cut), _note(found.cut))


async def find_all_paths(call: Call, arguments: FindAllPaths) -> Reply:
    """Find simple paths, shortest first, whichever way relations point."""
    async with call.transaction() as tx:
        found = await traversal.find_all_paths(
            tx,
            arguments.graph,
            arguments.from_,
            arguments.to,
            max_depth=arguments.max_depth,
            max_paths=arguments.max_paths,
            as_of=arguments.as_of,
        )
    return bare(FoundPaths(found.paths, found.cut), _note(found.cut))


async def extract_subgraph(call: Call, arguments: ExtractSubgraph) -> Reply:
    """Show what lies around entities."""
    async with call.transaction() as tx:
        found = await traversal.extract_subgraph(
            tx,
            arguments.graph,
            arguments.names,
            depth=arguments.depth,
            max_nodes=arguments.limit,
            as_of=arguments.as_of,
        )
    entities = [*map(entity_out, found.subgraph.entities)]
    return Reply(
        ExtractedGraph(entities, [*map(relation_out, found.subgraph.relations)], found.cut), note=_note(found.cut)
    )


async def describe_entity(call: Call, arguments: DescribeEntity) -> Reply:
    """Show an entity with its relations and neighbours; raises NotFound."""
    async with call.transaction() as tx:
        found = await memory.open_nodes(tx, arguments.graph, [arguments.name], as_of=arguments.as_of)
    if not found.entities:
        raise EntityNotFound(arguments.name)
    far = unique(end for r in found.relations for end in (r.source, r.target) if end != arguments.name)
    incident = [*map(relation_out, found.relations)]
    return Reply(DescribedEntity(entity_out(found.entities[0]), incident, far, len(incident)))


async def list_entity_types(call: Call, arguments: ListEntityTypes) -> Reply:
    """Count entities by type."""
    async with call.transaction() as tx:
        graph = await graphs.open_graph(tx, arguments.graph)
        at = await graphs.moment(tx, graph, arguments.as_of) if graph else None
        counts = await nodes.count_kinds(tx, graph, limit=MAX_TYPES + 1, at=at) if graph else []
    return _types(counts)


async def list_relation_types(call: Call, arguments: ListRelationTypes) -> Reply:
    """Count relations by type."""
    async with call.transaction() as tx:
        graph = await graphs.open_graph(tx, arguments.graph)
        at = await graphs.moment(tx, graph, arguments.as_of) if graph else None
        counts = await relations.count_types(tx, graph, limit=MAX_TYPES + 1, at=at) if graph else []
    return _types(counts)


def _types(counts: list[tuple[str, int]]) -> Reply:
    cut = "types" if len(counts) > MAX_TYPES else None
    return bare(TypeCounts([TypeCount(kind, count) for kind, count in counts[:MAX_TYPES]], cut), _note(cut))


def _note(cut: str | None) -> str | None:
    return None if cut is None else f"Not everything: the bound on {cut} was reached."
