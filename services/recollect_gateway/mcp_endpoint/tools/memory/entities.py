"""Entities by name: create, read, describe and delete them."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.fairness.computing import map_yielding
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.nodes.model import EntityNotFound, unique
from recollect.memory import reading, writing
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.listed import listed, told_forms
from recollect_gateway.mcp_endpoint.pages import cut_short
from recollect_gateway.mcp_endpoint.tool import Arguments, Listing, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import (
    MAX_BATCH,
    Content,
    EntityOut,
    RelationOut,
    bare,
    done,
    entity_out,
    relation_out,
)
from recollect_http.requests.argument_types import (
    EntityType,
    Importance,
    Name,
    ObservationsOffset,
    SoughtName,
    Tag,
    Text,
)


class EntityIn(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """An entity as it is given."""

    name: Annotated[Name, Meta(description="The name of the entity")]
    entity_type: Annotated[EntityType, Meta(description="The type of the entity")]
    observations: Annotated[
        list[Text],
        Meta(max_length=MAX_BATCH, description="An array of observation contents associated with the entity"),
    ]
    tags: Annotated[list[Tag], Meta(max_length=100)] = []
    importance: Importance | None = None
    content: Content | None = None


class CreateEntities(Arguments, frozen=True):
    """Arguments of `create_entities`."""

    entities: Annotated[list[EntityIn], Meta(max_length=MAX_BATCH)]


class UpsertItem(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """An entity to make or to add to."""

    name: Annotated[Name, Meta(description="The name of the entity")]
    entity_type: Annotated[EntityType, Meta(description="The type of the entity; an existing entity keeps its own")]
    observations: Annotated[list[Text], Meta(max_length=MAX_BATCH, description="Observations that it should have")] = []


class UpsertEntities(Arguments, frozen=True):
    """Arguments of `upsert_entities`."""

    entities: Annotated[list[UpsertItem], Meta(max_length=MAX_BATCH)]


class DeleteEntities(Arguments, frozen=True):
    """Arguments of `delete_entities`."""

    entity_names: Annotated[
        list[SoughtName], Meta(max_length=MAX_BATCH, description="An array of entity names to delete")
    ]


class GetEntity(ReadArguments, frozen=True):
    """Arguments of `get_entity`."""

    name: Annotated[Name, Meta(description="The name of the entity")]
    observations_offset: ObservationsOffset = 0


class BatchGetEntities(ReadArguments, frozen=True):
    """Arguments of `batch_get_entities`."""

    names: Annotated[list[SoughtName], Meta(max_length=MAX_BATCH, description="Names of entities")]


class DescribeEntity(ReadArguments, frozen=True):
    """Arguments of `describe_entity`."""

    name: Annotated[Name, Meta(description="The name of the entity")]


class CloseName(Struct, frozen=True):
    """A new name, and entities whose names differ from it in case, in width and the like only."""

    name: str
    entities: list[str]


class Entities(Struct, omit_defaults=True, frozen=True):
    """Result of `create_entities`. `close`: entities with nearly the same name as a new one, where there are any."""

    entities: list[EntityOut]
    close: list[CloseName] = []


class UpsertedEntity(Struct, rename="camel", omit_defaults=True, frozen=True):
    """What became of one entity. `close`: entities with nearly the same name, where it is new and there are any."""

    name: str
    created: bool
    added_observations: list[str]
    close: list[str] = []


class UpsertedEntities(Struct, frozen=True):
    """Result of `upsert_entities`, one entry an entity, in order."""

    results: list[UpsertedEntity]


class FoundEntities(Struct, frozen=True):
    """Result of `batch_get_entities`, in the order asked for; null for a name that no entity has."""

    entities: list[EntityOut | None]


class DescribedEntity(Struct, omit_defaults=True, frozen=True):
    """Result of `describe_entity`. `degree` counts the relations, up to 10,000; `cut`: it has more than are told."""

    entity: EntityOut
    relations: list[RelationOut]
    neighbors: list[str]
    degree: int
    cut: str | None = None


async def create_entities(call: Call, arguments: CreateEntities) -> Reply:
    """Create entities; answer those that are new."""
    new_entities = [
        NewEntity(e.name, e.entity_type, tuple(e.observations), tuple(e.tags), e.importance, content=e.content)
        for e in arguments.entities
    ]
    prepared = await call.prepare(memory for entity in new_entities for memory in entity.memories)
    async with call.writing(arguments.graph, prepared=prepared) as (tx, revision):
        created = await entities.create_entities(tx, revision, new_entities)
        new = [(node_id, entity.name) for node_id, entity in created]
        look_alikes = await entities.find_look_alikes(tx, revision.graph, new)
    made = [EntityOut(e.name, e.kind or "", unique(e.observations), e.content) for _, e in created]
    close = [CloseName(name, [o.name for o in look_alikes[i]]) for i, name in new if i in look_alikes]
    return bare(Entities(made, close), note=_close_note(close))


def _close_note(close: list[CloseName]) -> str | None:
    """What the text says of similar names; the array in it stays as the official server has it."""
    if not close:
        return None
    pairs = [f"{item.name!r} and {other!r}" for item in close for other in item.entities]
    return f"Nearly the same name, if the same is meant, merge_entities makes them one: {listed(pairs)}"


async def upsert_entities(call: Call, arguments: UpsertEntities) -> Reply:
    """Create entities, or add to those that exist; answer the outcome of each."""
    new_entities = [NewEntity(e.name, e.entity_type, tuple(e.observations)) for e in arguments.entities]
    prepared = await call.prepare(memory for entity in new_entities for memory in entity.memories)
    async with call.writing(arguments.graph, prepared=prepared) as (tx, revision):
        upserts = await entities.upsert_entities(tx, revision, new_entities)
        new = [(up.id, up.name) for up in upserts if up.id is not None]
        look_alikes = await entities.find_look_alikes(tx, revision.graph, new)
    close = {name: [other.name for other in look_alikes.get(node_id, ())] for node_id, name in new}
    return bare(
        UpsertedEntities(
            [
                UpsertedEntity(up.name, up.created, list(up.added), close.get(up.name, []) if up.created else [])
                for up in upserts
            ]
        )
    )


async def delete_entities(call: Call, arguments: DeleteEntities) -> Reply:
    """Delete entities with all that belongs to them; answer which were not there."""
    async with call.writing(arguments.graph) as (tx, revision):
        there = await writing.delete_entities(tx, revision, arguments.entity_names)
    unknown = [name for name in arguments.entity_names if name not in there]
    others = told_forms(there)
    if not unknown:
        return done(f"Entities deleted successfully{others}")
    total = len(arguments.entity_names)
    return done(f"Deleted {total - len(unknown)} of {total} entities. Not found: {listed(unknown)}{others}")


async def get_entity(call: Call, arguments: GetEntity) -> Reply:
    """Open one entity; raises NotFound."""
    async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
        [found] = await reading.get_entities(view, [arguments.name], skipped=arguments.observations_offset)
    if found is None:
        raise EntityNotFound(arguments.name)
    return Reply(entity_out(found, arguments.observations_offset))


async def batch_get_entities(call: Call, arguments: BatchGetEntities) -> Reply:
    """Open entities, in order, null for those that are not there; one of which a name has two forms is told once."""
    async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
        found = await reading.get_entities(view, arguments.names)
    return bare(FoundEntities([None if entity is None else entity_out(entity) for entity in found]))


async def describe_entity(call: Call, arguments: DescribeEntity) -> Reply | Listing:
    """Show an entity with its relations and neighbours, as far as they fill a page; raises NotFound."""
    async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
        found = await reading.describe(view, arguments.name)
    relations = await map_yielding(found.relations, relation_out)

    def reply(page: list[RelationOut], cut: str | None) -> Reply:
        entity = entity_out(found.entities[0])
        neighbours = unique(end for relation in page for end in (relation.from_, relation.to) if end != entity.name)
        count = f"{'more than ' if found.cut else ''}{len(relations)}"
        note = None if cut is None else f"{len(page)} of {count} relations: search_relations lists all."
        return Reply(DescribedEntity(entity, page, neighbours, len(relations), cut), note=note)

    return cut_short(relations, reply, limit=None, cut=found.cut)
