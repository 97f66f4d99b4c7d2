"""The tool `get_parent`."""

from msgspec import Struct

from recollect.graph.hierarchy import service as hierarchy
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import bare
from recollect_gateway.mcp_endpoint.tools.organize.shapes import (
    EntityName,
    OrganizedEntity,
    organize_tool,
    organized,
)


class OfEntity(ReadArguments, frozen=True):
    """Arguments of `get_parent`."""

    entity_name: EntityName


class OrganizedParent(Struct, frozen=True):
    """Result of `get_parent`; null for a root."""

    parent: OrganizedEntity | None


async def get_parent(call: Call, arguments: OfEntity) -> Reply:
    """Read an entity's parent."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await hierarchy.get_parent(view, arguments.entity_name)
    return bare(OrganizedParent(None if found is None else organized(found)))


GET_PARENT = organize_tool(
    description="Get the parent of an entity.",
    result=OrganizedParent,
    handler=get_parent,
    read_only=True,
    large=True,
)
