"""The tools `get_entity` and `batch_get_entities`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.nodes.model import EntityNotFound
from recollect.memory import reading
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH, EntityOut, bare, entity_out
from recollect_http.requests.argument_types import Name, ObservationsOffset, SoughtName


class GetEntity(ReadArguments, frozen=True):
    """Arguments of `get_entity`."""

    name: Annotated[Name, Meta(description="The name of the entity")]
    observations_offset: ObservationsOffset = 0


class BatchGetEntities(ReadArguments, frozen=True):
    """Arguments of `batch_get_entities`."""

    names: Annotated[list[SoughtName], Meta(max_length=MAX_BATCH, description="Names of entities")]


class FoundEntities(Struct, frozen=True):
    """Result of `batch_get_entities`, in the order asked for; null for a name that no entity has."""

    entities: list[EntityOut | None]


async def get_entity(call: Call, arguments: GetEntity) -> Reply:
    """Open one entity; raises NotFound."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        [found] = await reading.get_entities(view, [arguments.name], skipped=arguments.observations_offset)
    if found is None:
        raise EntityNotFound(arguments.name)
    return Reply(entity_out(found, arguments.observations_offset))


GET_ENTITY = ToolSpec(
    description="Get one entity with its observations by name.",
    toolsets=frozenset({"memory"}),
    result=EntityOut,
    handler=get_entity,
    read_only=True,
    large=True,
)


async def batch_get_entities(call: Call, arguments: BatchGetEntities) -> Reply:
    """Open entities, in order, null for those that are not there; one of which a name has two forms is listed once."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await reading.get_entities(view, arguments.names)
    return bare(FoundEntities([None if entity is None else entity_out(entity) for entity in found]))


BATCH_GET_ENTITIES = ToolSpec(
    description="Get several entities by name, in the same order; null for unknown names.",
    toolsets=frozenset({"memory"}),
    result=FoundEntities,
    handler=batch_get_entities,
    read_only=True,
    large=True,
)
