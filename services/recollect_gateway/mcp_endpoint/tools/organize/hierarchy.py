"""The tools `get_children`, `get_ancestors`, `get_descendants`, `get_root_entities` and `get_subtree`."""

from msgspec import Struct

from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.hierarchy.model import EntityPage, PageRequest
from recollect.graph.relations.model import Subgraph
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged, paged_graph
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import Limit, Offset, bare, more_note
from recollect_gateway.mcp_endpoint.tools.organize.shapes import (
    EntityName,
    OrganizedEntities,
    OrganizedEntity,
    OrganizedRelation,
    organize_tool,
    organized,
    organized_relation,
)


class Paged(ReadArguments, frozen=True):
    """The arguments for a page of a list of entities."""

    offset: Offset = 0
    limit: Limit | None = None

    @property
    def page(self) -> PageRequest:
        """The page to read."""
        return PageRequest(self.offset, self.limit or PAGE_ROWS)


class Around(Paged, frozen=True, kw_only=True):
    """Arguments of the tools that read the entities above or below an entity."""

    entity_name: EntityName


class GetRootEntities(Paged, frozen=True):
    """Arguments of `get_root_entities`."""


class Subtree(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `get_subtree`: entities, depth first, and the relations among them.

    `cut`: there are more relations than are shown; search_relations tells all, in pages.
    """

    entities: list[OrganizedEntity]
    relations: list[OrganizedRelation]
    next_offset: int | None = None
    cut: str | None = None


async def get_ancestors(call: Call, arguments: Around) -> Reply | PagedReply:
    """Read the ancestors of an entity."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        return _entities(arguments, await hierarchy.get_ancestors(view, arguments.entity_name, arguments.page))


GET_ANCESTORS = organize_tool(
    description="Get the ancestors of an entity, nearest first.",
    result=OrganizedEntities,
    handler=get_ancestors,
    read_only=True,
)


async def get_children(call: Call, arguments: Around) -> Reply | PagedReply:
    """Read the children of an entity."""
    async with call.searching(arguments.graph, arguments.as_of) as view:
        return _entities(arguments, await hierarchy.get_children(view, arguments.entity_name, arguments.page))


GET_CHILDREN = organize_tool(
    description="Get the children of an entity.",
    result=OrganizedEntities,
    handler=get_children,
    read_only=True,
)


async def get_descendants(call: Call, arguments: Around) -> Reply | PagedReply:
    """Read the descendants of an entity."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        return _entities(arguments, await hierarchy.get_descendants(view, arguments.entity_name, arguments.page))


GET_DESCENDANTS = organize_tool(
    description="Get all descendants of an entity, depth first.",
    result=OrganizedEntities,
    handler=get_descendants,
    read_only=True,
)


async def get_root_entities(call: Call, arguments: GetRootEntities) -> Reply | PagedReply:
    """Read the entities without a parent."""
    async with call.searching(arguments.graph, arguments.as_of) as view:
        return _entities(arguments, await hierarchy.get_roots(view, arguments.page))


GET_ROOT_ENTITIES = organize_tool(
    description="Get the entities that have no parent.",
    result=OrganizedEntities,
    handler=get_root_entities,
    read_only=True,
)


async def get_subtree(call: Call, arguments: Around) -> Reply | PagedReply:
    """Read an entity with all below it, and the relations among them."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await hierarchy.get_subtree(view, arguments.entity_name, arguments.page)
    return paged_graph(found, _subtree, limit=arguments.limit, offset=arguments.offset, within=True)


GET_SUBTREE = organize_tool(
    description="Get an entity with all its descendants, and the relations among them.",
    result=Subtree,
    handler=get_subtree,
    read_only=True,
)


def _entities(arguments: Paged, found: EntityPage) -> Reply | PagedReply:
    return paged(
        found.entities,
        lambda rows, next_offset: bare(OrganizedEntities([*map(organized, rows)], next_offset), more_note(next_offset)),
        limit=arguments.limit,
        offset=arguments.offset,
        next_offset=found.next_offset,
        related_items=sum(len(entity.tags) for entity in found.entities),
    )


def _subtree(found: Subgraph, cut: str | None) -> Reply:
    entities, relations = [*map(organized, found.entities)], [*map(organized_relation, found.relations)]
    return Reply(Subtree(entities, relations, found.next_offset, cut), note=more_note(found.next_offset, cut))
