"""The tool `upsert_entities`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH, bare, require_few
from recollect_http.requests.argument_types import EntityType, Name, Text


class UpsertItem(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """An entity to make or to add to."""

    name: Annotated[Name, Meta(description="The name of the entity")]
    entity_type: Annotated[EntityType, Meta(description="The type of the entity; an existing entity keeps its own")]
    observations: Annotated[list[Text], Meta(max_length=MAX_BATCH, description="Observations that it should have")] = []


class UpsertEntities(Arguments, frozen=True):
    """Arguments of `upsert_entities`."""

    entities: Annotated[list[UpsertItem], Meta(max_length=MAX_BATCH)]


class UpsertedEntity(Struct, rename="camel", omit_defaults=True, frozen=True):
    """The outcome of one entity. `close`: entities with nearly the same name, if it is new and there are any."""

    name: str
    created: bool
    added_observations: list[str]
    close: list[str] = []


class UpsertedEntities(Struct, frozen=True):
    """Result of `upsert_entities`: one entry for each entity, in order."""

    results: list[UpsertedEntity]


async def upsert_entities(call: Call, arguments: UpsertEntities) -> Reply:
    """Create entities, or add to those that exist; answer the outcome of each."""
    require_few((entity.observations for entity in arguments.entities), "entities")
    new_entities = [NewEntity(e.name, e.entity_type, tuple(e.observations)) for e in arguments.entities]
    prepared = await call.prepare(memory for entity in new_entities for memory in entity.memories)
    async with call.writing(arguments.graph, prepared=prepared) as (tx, revision):
        upserts = await entities.upsert_entities(tx, revision, new_entities)
        new = [(up.id, up.name) for up in upserts if up.id is not None]
        similar_names = await entities.find_similar_names(tx, revision.graph, new)
    close = {name: [other.name for other in similar_names.get(node_id, ())] for node_id, name in new}
    return bare(
        UpsertedEntities(
            [
                UpsertedEntity(up.name, up.created, list(up.added), close.get(up.name, []) if up.created else [])
                for up in upserts
            ]
        )
    )


UPSERT_ENTITIES = ToolSpec(
    description="Create entities, or add observations to existing ones, which keep their type. Safe to repeat.",
    toolsets=frozenset({"memory"}),
    result=UpsertedEntities,
    handler=upsert_entities,
    idempotent=True,
)
