"""Toolset `organize`: hierarchy, tags and importance, as in the enhanced memory server.

Its entities carry tags (in lower case), importance, times in ISO 8601, and the name of their parent. Lists stand bare
in the text; where one was cut, `nextOffset` and a second text say how to go on.
"""

from datetime import UTC, datetime
from typing import Annotated

from mcp_types import CallToolResult, TextContent
from msgspec import UNSET, Meta, Struct, UnsetType

from recollect.curation import service as curation
from recollect.curation.model import Merged, Retagging
from recollect.errors import InvalidInput, RecollectError
from recollect.hierarchy import service as hierarchy
from recollect.hierarchy.model import EntityPage, Page
from recollect.nodes.model import Entity, EntityNotFound, unique
from recollect_gateway.mcp_endpoint.errors import tool_error
from recollect_gateway.mcp_endpoint.tool import Arguments, Call, Reading, Reply
from recollect_gateway.mcp_endpoint.toolsets.memory import (
    MAX_BATCH,
    Importance,
    Limit,
    Name,
    Offset,
    RelationOut,
    Tag,
    bare,
    relation_out,
)

EntityName = Annotated[Name, Meta(description="The name of the entity")]
Tags = Annotated[list[Tag], Meta(min_length=1, max_length=100, description="Tags, whatever their case")]


class SetEntityParent(Arguments, frozen=True):
    """Arguments of `set_entity_parent`."""

    entity_name: EntityName
    parent_name: Annotated[Name, Meta(description="The entity to put it under; null makes it a root")] | None


class OfEntity(Reading, frozen=True):
    """Arguments of what reads the entities above one."""

    entity_name: EntityName


class Below(Reading, frozen=True):
    """Arguments of what reads the entities below one."""

    entity_name: EntityName
    offset: Offset = 0
    limit: Limit = MAX_BATCH


class GetRootEntities(Reading, frozen=True):
    """Arguments of `get_root_entities`."""

    offset: Offset = 0
    limit: Limit = MAX_BATCH


class ChangeTags(Arguments, frozen=True):
    """Arguments of `add_tags` and `remove_tags`."""

    entity_name: EntityName
    tags: Tags


class SetImportance(Arguments, frozen=True):
    """Arguments of `set_importance`."""

    entity_name: EntityName
    importance: Importance


class MergeEntities(Arguments, frozen=True):
    """Arguments of `merge_entities`, in either shape."""

    source: Annotated[Name, Meta(description="The entity to merge into target")] | None = None
    target: Annotated[Name, Meta(description="The entity that stays")] | None = None
    entity_names: Annotated[
        list[Name], Meta(max_length=MAX_BATCH, description="Or: the entities to make one, at least two")
    ] = []
    target_name: (
        Annotated[Name, Meta(description="With entityNames: the name of the one; default the first's")] | None
    ) = None


class OrganizedEntity(Struct, rename="camel", omit_defaults=True, frozen=True):
    """An entity as it comes back. `parentId` is the parent's name."""

    name: str
    entity_type: str
    observations: list[str]
    tags: list[str]
    created_at: str
    last_modified: str
    importance: float | None = None
    parent_id: str | None = None


class OrganizedParent(Struct, frozen=True):
    """Result of `get_parent`; null for a root."""

    parent: OrganizedEntity | None


class OrganizedEntities(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Entities; `nextOffset` is there only where more follow."""

    entities: list[OrganizedEntity]
    next_offset: int | None = None


class Subtree(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `get_subtree`: entities, depth first, and the relations among them."""

    entities: list[OrganizedEntity]
    relations: list[RelationOut]
    next_offset: int | None = None


class AddedTags(Struct, rename="camel", frozen=True):
    """Result of `add_tags`: those that the entity did not have."""

    entity_name: str
    added_tags: list[str]


class RemovedTags(Struct, rename="camel", frozen=True):
    """Result of `remove_tags`: those that the entity had."""

    entity_name: str
    removed_tags: list[str]


class ChangedImportance(Struct, rename="camel", frozen=True):
    """Result of `set_importance`."""

    entity_name: str
    importance: float


class MergedEntities(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `merge_entities`: counts for source and target, the entity that is left for entityNames."""

    source: str | UnsetType = UNSET
    target: str | UnsetType = UNSET
    moved_observations: int | UnsetType = UNSET
    added_observations: int | UnsetType = UNSET
    redirected_relations: int | UnsetType = UNSET
    name: str | UnsetType = UNSET
    entity_type: str | UnsetType = UNSET
    observations: list[str] | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    created_at: str | UnsetType = UNSET
    last_modified: str | UnsetType = UNSET
    importance: float | UnsetType = UNSET
    parent_id: str | UnsetType = UNSET


async def set_entity_parent(call: Call, arguments: SetEntityParent) -> Reply:
    """Move an entity with all that is below it."""
    async with call.writing(arguments.graph) as (tx, revision):
        entity = await hierarchy.set_parent(tx, revision, arguments.entity_name, arguments.parent_name)
    return Reply(organized(entity))


async def get_parent(call: Call, arguments: OfEntity) -> Reply:
    """Read the entity right above."""
    async with call.transaction() as tx:
        found = await hierarchy.get_parent(tx, arguments.graph, arguments.entity_name, as_of=arguments.as_of)
    return bare(OrganizedParent(None if found is None else organized(found)))


async def get_ancestors(call: Call, arguments: OfEntity) -> Reply:
    """Read the entities above."""
    async with call.transaction() as tx:
        found = await hierarchy.get_ancestors(tx, arguments.graph, arguments.entity_name, as_of=arguments.as_of)
    note = "Not everything: the bound on levels was reached. Go on from the last." if found.next_offset else None
    return bare(OrganizedEntities([*map(organized, found.entities)], found.next_offset), note)


async def get_children(call: Call, arguments: Below) -> Reply:
    """Read the entities right below."""
    page = Page(arguments.offset, arguments.limit)
    async with call.transaction() as tx:
        return _entities(
            await hierarchy.get_children(tx, arguments.graph, arguments.entity_name, page, as_of=arguments.as_of)
        )


async def get_descendants(call: Call, arguments: Below) -> Reply:
    """Read all entities below."""
    page = Page(arguments.offset, arguments.limit)
    async with call.transaction() as tx:
        return _entities(
            await hierarchy.get_descendants(tx, arguments.graph, arguments.entity_name, page, as_of=arguments.as_of)
        )


async def get_root_entities(call: Call, arguments: GetRootEntities) -> Reply:
    """Read the entities without a parent."""
    page = Page(arguments.offset, arguments.limit)
    async with call.transaction() as tx:
        return _entities(await hierarchy.get_roots(tx, arguments.graph, page, as_of=arguments.as_of))


async def get_subtree(call: Call, arguments: Below) -> Reply:
    """Read an entity with all below it, and the relations among them."""
    page = Page(arguments.offset, arguments.limit)
    async with call.transaction() as tx:
        found = await hierarchy.get_subtree(tx, arguments.graph, arguments.entity_name, page, as_of=arguments.as_of)
    entities, relations = [*map(organized, found.entities)], [*map(relation_out, found.relations)]
    return Reply(Subtree(entities, relations, found.next_offset), note=_more(found.next_offset))


async def add_tags(call: Call, arguments: ChangeTags) -> Reply:
    """Give an entity tags; answer those that are new."""
    wanted = Retagging(arguments.entity_name, add=_lowered(arguments.tags))
    async with call.writing(arguments.graph) as (tx, revision):
        [done] = await curation.retag(tx, revision, [wanted])
    return Reply(AddedTags(done.name, list(done.added)))


async def remove_tags(call: Call, arguments: ChangeTags) -> Reply:
    """Take tags from an entity; answer those that it had."""
    wanted = Retagging(arguments.entity_name, remove=_lowered(arguments.tags))
    async with call.writing(arguments.graph) as (tx, revision):
        [done] = await curation.retag(tx, revision, [wanted])
    return Reply(RemovedTags(done.name, list(_lowered(done.removed))))


async def set_importance(call: Call, arguments: SetImportance) -> Reply:
    """Say how much an entity matters."""
    async with call.writing(arguments.graph) as (tx, revision):
        await curation.set_importance(tx, revision, {arguments.entity_name: arguments.importance})
    return Reply(ChangedImportance(arguments.entity_name, arguments.importance))


async def merge_entities(call: Call, arguments: MergeEntities) -> Reply:
    """Make several entities one; answer in the shape that was asked in."""
    names, target = _merge_order(arguments)
    async with call.writing(arguments.graph) as (tx, revision):
        merged = await curation.merge_entities(tx, revision, names, target)
    return Reply(_merged(arguments, merged))


def organize_error(error: Exception) -> CallToolResult:
    """Errors as the enhanced memory server tells them; what is wrong with an argument keeps its path before it."""
    told = tool_error(error)
    if not isinstance(error, RecollectError) or error.path:
        return told
    said = f"Entity '{error.name}' not found" if isinstance(error, EntityNotFound) else str(error)
    return told.model_copy(update={"content": [TextContent(type="text", text=f"Error: {said}")]})


def organized(entity: Entity) -> OrganizedEntity:
    """An entity in this toolset's shape."""
    return OrganizedEntity(
        entity.name,
        entity.kind or "",
        list(entity.observations),
        list(_lowered(entity.tags)),
        _iso(entity.created_at),
        _iso(entity.updated_at),
        entity.importance,
        entity.parent,
    )


def _entities(found: EntityPage) -> Reply:
    return bare(OrganizedEntities([*map(organized, found.entities)], found.next_offset), _more(found.next_offset))


def _more(next_offset: int | None) -> str | None:
    return None if next_offset is None else f"More follow: offset={next_offset}."


def _lowered(tags: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(unique(tag.lower() for tag in tags))


def _iso(at: datetime) -> str:
    """As JavaScript's toISOString."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _merge_order(arguments: MergeEntities) -> tuple[list[str], str | None]:
    """Names, the one that stays first, and the name that it is to have."""
    if arguments.entity_names:
        if arguments.source is not None or arguments.target is not None:
            raise InvalidInput("Give source and target, or entityNames, not both", path="entityNames")
        return arguments.entity_names, arguments.target_name
    if arguments.source is None or arguments.target is None or arguments.target_name is not None:
        raise InvalidInput("Give source and target, or entityNames with or without targetName", path="source")
    if arguments.source == arguments.target:
        raise InvalidInput("An entity cannot be merged into itself", path="source")
    return [arguments.target, arguments.source], None


def _merged(arguments: MergeEntities, merged: Merged) -> MergedEntities:
    if arguments.source is not None and arguments.target is not None:
        return MergedEntities(
            source=arguments.source,
            target=arguments.target,
            moved_observations=merged.moved_observations,
            added_observations=merged.added_observations,
            redirected_relations=merged.redirected_relations,
        )
    entity = organized(merged.entity)
    left = {name: getattr(entity, name) for name in entity.__struct_fields__}
    return MergedEntities(**{name: value for name, value in left.items() if value is not None})
