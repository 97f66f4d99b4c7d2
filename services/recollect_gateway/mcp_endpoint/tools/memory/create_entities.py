"""The tool `create_entities`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.nodes.model import unique
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.short_lists import list_briefly
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH, Content, EntityOut, bare, require_few
from recollect_gateway.mcp_endpoint.tools.organize.create_entities import CREATE_ENTITIES_IN_ORGANIZE
from recollect_http.requests.argument_types import EntityType, Importance, Name, Tag, Text


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


class CloseName(Struct, frozen=True):
    """A new name, and entities whose names differ from it in case, in width and the like only."""

    name: str
    entities: list[str]


class Entities(Struct, omit_defaults=True, frozen=True):
    """Result of `create_entities`. `close`: entities with nearly the same name as a new one, where there are any."""

    entities: list[EntityOut]
    close: list[CloseName] = []


async def create_entities(call: Call, arguments: CreateEntities) -> Reply:
    """Create entities; answer those that are new."""
    require_few((entity.observations for entity in arguments.entities), "entities")
    new_entities = [
        NewEntity(e.name, e.entity_type, tuple(e.observations), tuple(e.tags), e.importance, content=e.content)
        for e in arguments.entities
    ]
    prepared = await call.prepare(memory for entity in new_entities for memory in entity.memories)
    async with call.writing(arguments.graph, prepared=prepared) as (tx, revision):
        created = await entities.create_entities(tx, revision, new_entities)
        new = [(node_id, entity.name) for node_id, entity in created]
        similar_names = await entities.find_similar_names(tx, revision.graph, new)
    made = [EntityOut(e.name, e.kind or "", unique(e.observations), e.content) for _, e in created]
    close = [CloseName(name, [o.name for o in similar_names[i]]) for i, name in new if i in similar_names]
    return bare(Entities(made, close), note=_close_note(close))


CREATE_ENTITIES = ToolSpec(
    description="Create multiple new entities in the knowledge graph. Existing names are skipped.",
    toolsets=frozenset({"memory", "organize"}),
    result=Entities,
    handler=create_entities,
    idempotent=True,
    dialects=(CREATE_ENTITIES_IN_ORGANIZE,),
)


def _close_note(close: list[CloseName]) -> str | None:
    """The note on similar names, which follows the array that the official server answers."""
    if not close:
        return None
    pairs = [f"{item.name!r} and {other!r}" for item in close for other in item.entities]
    return f"Nearly the same name, if the same is meant, merge_entities makes them one: {list_briefly(pairs)}"
