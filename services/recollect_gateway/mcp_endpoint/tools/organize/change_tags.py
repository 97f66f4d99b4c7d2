"""The tools `add_tags` and `remove_tags`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.curation.labels import service as labels
from recollect.curation.labels.model import TagChange
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply
from recollect_gateway.mcp_endpoint.tools.organize.shapes import EntityName, lowered, organize_tool
from recollect_http.requests.argument_types import Tag

Tags = Annotated[list[Tag], Meta(min_length=1, max_length=100, description="Tags; case is ignored")]


class ChangeTags(Arguments, frozen=True):
    """Arguments of `add_tags` and `remove_tags`."""

    entity_name: EntityName
    tags: Tags


class AddedTags(Struct, rename="camel", frozen=True):
    """Result of `add_tags`: those that the entity did not have."""

    entity_name: str
    added_tags: list[str]


class RemovedTags(Struct, rename="camel", frozen=True):
    """Result of `remove_tags`: those that the entity had."""

    entity_name: str
    removed_tags: list[str]


async def add_tags(call: Call, arguments: ChangeTags) -> Reply:
    """Give an entity tags; answer those that are new."""
    change = TagChange(arguments.entity_name, add=lowered(arguments.tags))
    async with call.writing(arguments.graph) as (tx, revision):
        [result] = await labels.retag(tx, revision, [change])
    return Reply(AddedTags(result.name, list(result.added)))


ADD_TAGS = organize_tool(
    description="Add tags to an entity.",
    result=AddedTags,
    handler=add_tags,
    idempotent=True,
)


async def remove_tags(call: Call, arguments: ChangeTags) -> Reply:
    """Take tags from an entity; answer those that it had."""
    change = TagChange(arguments.entity_name, remove=lowered(arguments.tags))
    async with call.writing(arguments.graph) as (tx, revision):
        [result] = await labels.retag(tx, revision, [change])
    return Reply(RemovedTags(result.name, list(lowered(result.removed))))


REMOVE_TAGS = organize_tool(
    description="Remove tags from an entity.",
    result=RemovedTags,
    handler=remove_tags,
    destructive=True,
    idempotent=True,
)
