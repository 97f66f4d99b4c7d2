"""The tool `set_entity_parent`."""

from typing import Annotated

from msgspec import Meta

from recollect.graph.hierarchy import service as hierarchy
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply
from recollect_gateway.mcp_endpoint.tools.organize.shapes import (
    EntityName,
    OrganizedEntity,
    organize_tool,
    organized,
)
from recollect_http.requests.argument_types import SoughtName


class SetEntityParent(Arguments, frozen=True):
    """Arguments of `set_entity_parent`."""

    entity_name: EntityName
    parent_name: Annotated[SoughtName, Meta(description="The new parent; null or empty: makes it a root")] | None


async def set_entity_parent(call: Call, arguments: SetEntityParent) -> Reply:
    """Move an entity with all that is below it."""
    async with call.writing(arguments.graph) as (tx, revision):
        entity = await hierarchy.set_parent(tx, revision, arguments.entity_name, arguments.parent_name or None)
    return Reply(organized(entity))


SET_ENTITY_PARENT = organize_tool(
    description="Move an entity, with all its descendants, under another entity; null makes it a root.",
    result=OrganizedEntity,
    handler=set_entity_parent,
    idempotent=True,
)
