"""The tool `delete_entities`."""

from typing import Annotated

from msgspec import Meta

from recollect.memory import writing
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.confirmation import confirm
from recollect_gateway.mcp_endpoint.short_lists import describe_forms, list_briefly
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH, Done, done
from recollect_gateway.mcp_endpoint.tools.organize.shapes import organize_tool
from recollect_http.requests.argument_types import SoughtName


class DeleteEntities(Arguments, frozen=True):
    """Arguments of `delete_entities`."""

    entity_names: Annotated[
        list[SoughtName], Meta(max_length=MAX_BATCH, description="An array of entity names to delete")
    ]


async def delete_entities(call: Call, arguments: DeleteEntities) -> Reply:
    """Delete entities with all that belongs to them; answer which were not there."""
    async with call.writing(arguments.graph) as (tx, revision):
        there = await writing.delete_entities(tx, revision, arguments.entity_names)
    unknown = [name for name in arguments.entity_names if name not in there]
    others = describe_forms(there)
    if not unknown:
        return done(f"Entities deleted successfully{others}")
    total = len(arguments.entity_names)
    return done(f"Deleted {total - len(unknown)} of {total} entities. Not found: {list_briefly(unknown)}{others}")


async def _count_deleted(_: Call, arguments: DeleteEntities) -> int:
    return len(arguments.entity_names)


DELETE_ENTITIES_IN_ORGANIZE = organize_tool(
    description="Delete entities and their relations.",
    result=Done,
    handler=delete_entities,
    ask=confirm(
        "deletes up to {size} entities of the graph {graph}, with their observations and relations", _count_deleted
    ),
    destructive=True,
    idempotent=True,
)

DELETE_ENTITIES = ToolSpec(
    description="Delete multiple entities and their associated relations from the knowledge graph.",
    toolsets=frozenset({"memory", "organize"}),
    result=Done,
    handler=delete_entities,
    ask=confirm(
        "deletes up to {size} entities of the graph {graph}, with their observations and relations", _count_deleted
    ),
    destructive=True,
    idempotent=True,
    dialects=(DELETE_ENTITIES_IN_ORGANIZE,),
)
