"""Handlers and shapes of the hierarchy: parents and children."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.hierarchy.model import EntityPage, PageRequest
from recollect.platform.computing import each
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.toolsets.memory.shapes import MAX_BATCH, Limit, Offset, bare
from recollect_gateway.mcp_endpoint.toolsets.organize.shapes import (
    EntityName,
    OrganizedEntities,
    OrganizedEntity,
    OrganizedRelation,
    more,
    organized,
    organized_relation,
)
from recollect_gateway.shapes import Name


class SetEntityParent(Arguments, frozen=True):
    """Arguments of `set_entity_parent`."""

    entity_name: EntityName
    parent_name: Annotated[Name, Meta(description="The entity to put it under; null makes it a root")] | None


class OfEntity(ReadArguments, frozen=True):
    """Arguments of what reads the entities above one."""

    entity_name: EntityName


class Below(ReadArguments, frozen=True):
    """Arguments of what reads the entities below one."""

    entity_name: EntityName
    offset: Offset = 0
    limit: Limit = MAX_BATCH


class GetRootEntities(ReadArguments, frozen=True):
    """Arguments of `get_root_entities`."""

    offset: Offset = 0
    limit: Limit = MAX_BATCH


class OrganizedParent(Struct, frozen=True):
    """Result of `get_parent`; null for a root."""

    parent: OrganizedEntity | None


class Ancestors(Struct, frozen=True):
    """Result of `get_ancestors`, nearest first."""

    entities: list[OrganizedEntity]


class Subtree(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `get_subtree`: entities, depth first, and the relations among them."""

    entities: list[OrganizedEntity]
    relations: list[OrganizedRelation]
    next_offset: int | None = None


async def set_entity_parent(call: Call, arguments: SetEntityParent) -> Reply:
    """Move an entity with all that is below it."""
    async with call.writing(arguments.graph) as (tx, revision):
        entity = await hierarchy.set_parent(tx, revision, arguments.entity_name, arguments.parent_name)
    return Reply(organized(entity))


async def get_parent(call: Call, arguments: OfEntity) -> Reply:
    """Read the entity right above."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await hierarchy.get_parent(view, arguments.entity_name)
    return bare(OrganizedParent(None if found is None else organized(found)))


async def get_ancestors(call: Call, arguments: OfEntity) -> Reply:
    """Read the entities above."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await hierarchy.get_ancestors(view, arguments.entity_name)
    note = "Not everything: the bound on levels was reached. Go on from the last." if found.next_offset else None
    return bare(Ancestors([*map(organized, found.entities)]), note)


async def get_children(call: Call, arguments: Below) -> Reply:
    """Read the entities right below."""
    page = PageRequest(arguments.offset, arguments.limit)
    async with call.reading(arguments.graph, arguments.as_of) as view:
        return await _entities(await hierarchy.get_children(view, arguments.entity_name, page))


async def get_descendants(call: Call, arguments: Below) -> Reply:
    """Read all entities below."""
    page = PageRequest(arguments.offset, arguments.limit)
    async with call.reading(arguments.graph, arguments.as_of) as view:
        return await _entities(await hierarchy.get_descendants(view, arguments.entity_name, page))


async def get_root_entities(call: Call, arguments: GetRootEntities) -> Reply:
    """Read the entities without a parent."""
    page = PageRequest(arguments.offset, arguments.limit)
    async with call.reading(arguments.graph, arguments.as_of) as view:
        return await _entities(await hierarchy.get_roots(view, page))


async def get_subtree(call: Call, arguments: Below) -> Reply:
    """Read an entity with all below it, and the relations among them."""
    page = PageRequest(arguments.offset, arguments.limit)
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await hierarchy.get_subtree(view, arguments.entity_name, page)
    entities, relations = await each(found.entities, organized), await each(found.relations, organized_relation)
    return Reply(Subtree(entities, relations, found.next_offset), note=more(found.next_offset))


async def _entities(found: EntityPage) -> Reply:
    entities = await each(found.entities, organized)
    return bare(OrganizedEntities(entities, found.next_offset), more(found.next_offset))
