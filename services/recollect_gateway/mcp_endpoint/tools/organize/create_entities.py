"""The tool `create_entities`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs.view import GraphView
from recollect.graph.hierarchy import service as hierarchy
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH, bare, require_few
from recollect_gateway.mcp_endpoint.tools.organize.shapes import (
    OrganizedEntity,
    lowered,
    organize_tool,
    organized,
)
from recollect_http.requests.argument_types import Importance, Kind, Name, Tag, Text


class OrganizedEntityIn(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """An entity as it is given."""

    name: Annotated[Name, Meta(description="The name of the entity")]
    entity_type: Annotated[Kind, Meta(description="The type of the entity")]
    observations: Annotated[list[Text], Meta(max_length=MAX_BATCH, description="What is known about it")] = []
    tags: Annotated[list[Tag], Meta(max_length=100, description="Tags; stored in lower case")] = []
    importance: Importance | None = None
    parent_id: Annotated[Name, Meta(description="The name of its parent entity")] | None = None


class CreateOrganizedEntities(Arguments, frozen=True):
    """Arguments of `create_entities`."""

    entities: Annotated[list[OrganizedEntityIn], Meta(max_length=MAX_BATCH)]


class CreatedEntities(Struct, frozen=True):
    """Result of `create_entities`: those that are new."""

    entities: list[OrganizedEntity]


async def create_entities(call: Call, arguments: CreateOrganizedEntities) -> Reply:
    """Create entities, each under its parent; answer those that are new. Raises NotFound for a missing parent."""
    require_few((entity.observations for entity in arguments.entities), "entities")
    new_entities = [
        NewEntity(e.name, e.entity_type, tuple(e.observations), lowered(e.tags), e.importance)
        for e in arguments.entities
    ]
    prepared = await call.prepare(memory for entity in new_entities for memory in entity.memories)
    async with call.writing(arguments.graph, prepared=prepared) as (tx, revision):
        created = await entities.create_entities(tx, revision, new_entities)
        await hierarchy.set_parents_by_name(tx, revision, _parents(arguments, {entity.name for _, entity in created}))
        found = await entities.entities_by_id(GraphView(tx, revision.graph), [node_id for node_id, _ in created])
    return bare(CreatedEntities([*map(organized, found)]))


CREATE_ENTITIES_IN_ORGANIZE = organize_tool(
    description="Create entities with their observations, tags, importance and parent. Existing names are skipped.",
    result=CreatedEntities,
    handler=create_entities,
    idempotent=True,
)


def _parents(arguments: CreateOrganizedEntities, created: set[str]) -> dict[str, str]:
    """The parent of each new entity; if several items have one name, the first item counts."""
    parents = {entity.name: entity.parent_id for entity in reversed(arguments.entities)}
    return {name: parent for name, parent in parents.items() if parent is not None and name in created}
