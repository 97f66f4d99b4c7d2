"""Toolset `memory`: drop-in for the official memory server.

Names, arguments, results and texts are those of https://github.com/modelcontextprotocol/servers (src/memory); the
optional filters and pages of `read_graph` and `search_nodes` are those of the mcp-memory crate.
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field

from recollect.memory import service as memory
from recollect.nodes import service as nodes
from recollect.nodes.model import Entity, NewEntity, NewObservation, unique
from recollect.relations import service as relations
from recollect.relations.model import NewRelation, Relation, Subgraph
from recollect.search import service as search
from recollect.search.model import SubstringQuery
from recollect_gateway.mcp_endpoint.tool import Arguments, Call, Reading, Reply

MAX_BATCH = 1_000
MAX_OFFSET = 10_000_000

Name = Annotated[str, Meta(min_length=1, max_length=512)]
SoughtName = Annotated[str, Meta(max_length=512)]
"""A name to look for: one that nothing can have is simply not there."""
Kind = Annotated[str, Meta(max_length=256)]
RelationType = Annotated[str, Meta(min_length=1, max_length=256)]
Text = Annotated[str, Meta(max_length=10_000)]
Tag = Annotated[str, Meta(min_length=1, max_length=128)]
Importance = Annotated[float, Meta(ge=0, le=10)]
Offset = Annotated[int, Meta(ge=0, le=MAX_OFFSET, description="Entities to pass over")]
Limit = Annotated[int, Meta(ge=1, le=MAX_BATCH, description="Entities at most")]


class EntityIn(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """An entity as it is given."""

    name: Annotated[Name, Meta(description="The name of the entity")]
    entity_type: Annotated[Kind, Meta(description="The type of the entity")]
    observations: Annotated[
        list[Text],
        Meta(max_length=MAX_BATCH, description="An array of observation contents associated with the entity"),
    ]
    tags: Annotated[list[Tag], Meta(max_length=100)] = []
    importance: Importance | None = None


class RelationItem(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """A relation, as it is given and as it comes back."""

    from_: Annotated[Name, Meta(description="The name of the entity where the relation starts")] = field(name="from")
    to: Annotated[Name, Meta(description="The name of the entity where the relation ends")]
    relation_type: Annotated[RelationType, Meta(description="The type of the relation")]


class Addition(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """Observations for one entity."""

    entity_name: Annotated[Name, Meta(description="The name of the entity to add the observations to")]
    contents: Annotated[list[Text], Meta(max_length=MAX_BATCH, description="An array of observation contents to add")]


class Deletion(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """Observations to take from one entity."""

    entity_name: Annotated[SoughtName, Meta(description="The name of the entity containing the observations")]
    observations: Annotated[list[Text], Meta(max_length=MAX_BATCH, description="An array of observations to delete")]


class CreateEntities(Arguments, frozen=True):
    """Arguments of `create_entities`."""

    entities: Annotated[list[EntityIn], Meta(max_length=MAX_BATCH)]


class CreateRelations(Arguments, frozen=True):
    """Arguments of `create_relations`."""

    relations: Annotated[list[RelationItem], Meta(max_length=MAX_BATCH)]


class AddObservations(Arguments, frozen=True):
    """Arguments of `add_observations`."""

    observations: Annotated[list[Addition], Meta(max_length=MAX_BATCH)]


class DeleteEntities(Arguments, frozen=True):
    """Arguments of `delete_entities`."""

    entity_names: Annotated[
        list[SoughtName], Meta(max_length=MAX_BATCH, description="An array of entity names to delete")
    ]


class DeleteObservations(Arguments, frozen=True):
    """Arguments of `delete_observations`."""

    deletions: Annotated[list[Deletion], Meta(max_length=MAX_BATCH)]


class DeleteRelations(Arguments, frozen=True):
    """Arguments of `delete_relations`."""

    relations: Annotated[list[RelationItem], Meta(max_length=MAX_BATCH, description="An array of relations to delete")]


class ReadGraph(Reading, frozen=True):
    """Arguments of `read_graph`."""

    entity_type: Kind | None = None
    offset: Offset = 0
    limit: Limit | None = None


class SearchNodes(Reading, frozen=True):
    """Arguments of `search_nodes`."""

    query: Annotated[
        str,
        Meta(
            max_length=1_000,
            description="Text to look for in entity names, types, and observation content, whatever its case",
        ),
    ]
    entity_type: Kind | None = None
    tags: Annotated[list[Tag], Meta(max_length=100)] = []
    min_importance: Importance | None = None
    max_importance: Importance | None = None
    offset: Offset = 0
    limit: Limit | None = None


class OpenNodes(Reading, frozen=True):
    """Arguments of `open_nodes`."""

    names: Annotated[list[SoughtName], Meta(max_length=MAX_BATCH, description="An array of entity names to retrieve")]


class EntityOut(Struct, rename="camel", frozen=True):
    """An entity as it comes back."""

    name: str
    entity_type: str
    observations: list[str]


class RelationOut(Struct, rename="camel", frozen=True):
    """A relation as it comes back."""

    from_: str = field(name="from")
    to: str
    relation_type: str


class Added(Struct, rename="camel", frozen=True):
    """What one entity did not have yet."""

    entity_name: str
    added_observations: list[str]


class Entities(Struct, frozen=True):
    """Result of `create_entities`."""

    entities: list[EntityOut]


class Relations(Struct, frozen=True):
    """Result of `create_relations`."""

    relations: list[RelationOut]


class Results(Struct, frozen=True):
    """Result of `add_observations`."""

    results: list[Added]


class Done(Struct, frozen=True):
    """Result of the deletions."""

    success: bool
    message: str


class KnowledgeGraph(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Entities and relations; `nextOffset` is there only where more entities follow."""

    entities: list[EntityOut]
    relations: list[RelationOut]
    next_offset: int | None = None


async def create_entities(call: Call, arguments: CreateEntities) -> Reply:
    """Make entities; answer those that are new."""
    wanted = [
        NewEntity(e.name, e.entity_type, tuple(e.observations), tuple(e.tags), e.importance) for e in arguments.entities
    ]
    async with call.writing(arguments.graph) as (tx, revision):
        made = await nodes.create_entities(tx, revision, wanted)
    return bare(Entities([EntityOut(e.name, e.kind or "", unique(e.observations)) for _, e in made]))


async def create_relations(call: Call, arguments: CreateRelations) -> Reply:
    """Make relations; answer those that are new."""
    wanted = [NewRelation(r.from_, r.to, r.relation_type) for r in arguments.relations]
    async with call.writing(arguments.graph) as (tx, revision):
        made = await relations.create_relations(tx, revision, wanted)
    return bare(Relations([RelationOut(r.source, r.target, r.type) for r in made]))


async def add_observations(call: Call, arguments: AddObservations) -> Reply:
    """Add observations; answer, for each entry, those that are new."""
    wanted = [NewObservation(a.entity_name, content) for a in arguments.observations for content in a.contents]
    named = unique(a.entity_name for a in arguments.observations)
    async with call.writing(arguments.graph) as (tx, revision):
        added = await nodes.add_observations(tx, revision, wanted, named=named)
    new = {(o.entity, o.content) for o in added}
    return bare(Results([_added(addition, new) for addition in arguments.observations]))


async def delete_entities(call: Call, arguments: DeleteEntities) -> Reply:
    """Delete entities with all that belongs to them."""
    async with call.writing(arguments.graph) as (tx, revision):
        await memory.delete_entities(tx, revision, arguments.entity_names)
    return _done("Entities deleted successfully")


async def delete_observations(call: Call, arguments: DeleteObservations) -> Reply:
    """Delete observations."""
    statements = [(d.entity_name, content) for d in arguments.deletions for content in d.observations]
    async with call.writing(arguments.graph) as (tx, revision):
        await nodes.remove_observations(tx, revision, statements)
    return _done("Observations deleted successfully")


async def delete_relations(call: Call, arguments: DeleteRelations) -> Reply:
    """Delete relations."""
    triples = [(r.from_, r.to, r.relation_type) for r in arguments.relations]
    async with call.writing(arguments.graph) as (tx, revision):
        await relations.delete_relations(tx, revision, triples)
    return _done("Relations deleted successfully")


async def read_graph(call: Call, arguments: ReadGraph) -> Reply:
    """Read the graph, or a page of it."""
    async with call.transaction() as tx:
        found = await memory.read_graph(
            tx,
            arguments.graph,
            kind=arguments.entity_type,
            offset=arguments.offset,
            limit=arguments.limit,
            max_items=call.settings.max_reply_items,
            as_of=arguments.as_of,
        )
    return Reply(knowledge_graph(found))


async def search_nodes(call: Call, arguments: SearchNodes) -> Reply:
    """Find entities by a substring."""
    query = SubstringQuery(
        arguments.query,
        kind=arguments.entity_type,
        tags=tuple(arguments.tags),
        min_importance=arguments.min_importance,
        max_importance=arguments.max_importance,
        offset=arguments.offset,
        limit=arguments.limit or MAX_BATCH,
    )
    async with call.transaction() as tx:
        found = await search.search_nodes(tx, arguments.graph, query, as_of=arguments.as_of)
    return Reply(knowledge_graph(found))


async def open_nodes(call: Call, arguments: OpenNodes) -> Reply:
    """Open entities by name."""
    async with call.transaction() as tx:
        found = await memory.open_nodes(tx, arguments.graph, arguments.names, as_of=arguments.as_of)
    return Reply(knowledge_graph(found))


def knowledge_graph(found: Subgraph) -> KnowledgeGraph:
    """A subgraph in the official shape."""
    return KnowledgeGraph([*map(entity_out, found.entities)], [*map(relation_out, found.relations)], found.next_offset)


def entity_out(entity: Entity) -> EntityOut:
    """An entity in the official shape."""
    return EntityOut(entity.name, entity.kind or "", list(entity.observations))


def relation_out(relation: Relation) -> RelationOut:
    """A relation in the official shape."""
    return RelationOut(relation.source, relation.target, relation.type)


def _added(addition: Addition, new: set[tuple[str, str]]) -> Added:
    fresh = [content for content in unique(addition.contents) if (addition.entity_name, content) in new]
    new.difference_update((addition.entity_name, content) for content in fresh)
    return Added(addition.entity_name, fresh)


def bare(result: Struct, note: str | None = None) -> Reply:
    """Array replies, the first field of a result, stand bare in the text, as the official server gives them."""
    array = getattr(result, result.__struct_fields__[0])
    return Reply(result, msgspec.json.format(msgspec.json.encode(array), indent=2).decode(), note)


def _done(message: str) -> Reply:
    return Reply(Done(success=True, message=message), message)
