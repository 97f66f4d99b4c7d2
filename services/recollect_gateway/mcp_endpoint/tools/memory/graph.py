"""Entities with the relations among them: the whole graph, what a search finds, or those of some names."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.fairness.computing import map_yielding
from recollect.graph.relations.model import Subgraph
from recollect.memory import reading
from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import SubstringQuery
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged_graph
from recollect_gateway.mcp_endpoint.tool import Listing, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import (
    MAX_BATCH,
    EntityOut,
    Limit,
    Offset,
    RelationOut,
    entity_out,
    more_note,
    relation_out,
)
from recollect_http.requests.argument_types import Importance, Kind, ObservationsOffset, SoughtName, Tag


class ReadGraph(ReadArguments, frozen=True):
    """Arguments of `read_graph`."""

    entity_type: Kind | None = None
    offset: Offset = 0
    limit: Limit | None = None


class SearchNodes(ReadArguments, frozen=True):
    """Arguments of `search_nodes`."""

    query: Annotated[
        str,
        Meta(
            max_length=1_000,
            description="Text to look for in entity names, types, and observation content, ignoring case",
        ),
    ]
    entity_type: Kind | None = None
    tags: Annotated[list[Tag], Meta(max_length=100)] = []
    min_importance: Importance | None = None
    max_importance: Importance | None = None
    offset: Offset = 0
    limit: Limit | None = None


class OpenNodes(ReadArguments, frozen=True):
    """Arguments of `open_nodes`."""

    names: Annotated[list[SoughtName], Meta(max_length=MAX_BATCH, description="An array of entity names to retrieve")]
    observations_offset: ObservationsOffset = 0


class KnowledgeGraph(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Entities and relations; `nextOffset` is there only where more entities follow.

    `cut`: there are more relations than are told; search_relations tells all, in pages.
    """

    entities: list[EntityOut]
    relations: list[RelationOut]
    next_offset: int | None = None
    cut: str | None = None


async def read_graph(call: Call, arguments: ReadGraph) -> Reply:
    """Read the graph, all of it as the official server does, or a page."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await reading.read_graph(
            view,
            kind=arguments.entity_type,
            offset=arguments.offset,
            limit=arguments.limit,
            max_items=call.settings.max_reply_items,
        )
    return await _knowledge_graph(found)


async def search_nodes(call: Call, arguments: SearchNodes) -> Reply | Listing:
    """Find entities by a substring."""
    query = SubstringQuery(
        arguments.query,
        kind=arguments.entity_type,
        tags=tuple(arguments.tags),
        min_importance=arguments.min_importance,
        max_importance=arguments.max_importance,
        offset=arguments.offset,
        limit=arguments.limit or PAGE_ROWS,
    )
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await search.search_nodes(view, query)
    return paged_graph(found, _page, limit=arguments.limit, offset=arguments.offset)


async def open_nodes(call: Call, arguments: OpenNodes) -> Reply:
    """Open entities by name."""
    async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
        found = await reading.open_nodes(view, arguments.names, skipped=arguments.observations_offset)
    return await _knowledge_graph(found, arguments.observations_offset)


def _page(found: Subgraph, cut: str | None) -> Reply:
    entities, relations = [*map(entity_out, found.entities)], [*map(relation_out, found.relations)]
    return Reply(KnowledgeGraph(entities, relations, found.next_offset, cut), note=more_note(found.next_offset, cut))


async def _knowledge_graph(found: Subgraph, skipped: int = 0) -> Reply:
    """A subgraph in the official shape; a note says where relations were left out."""
    entities, relations = (
        await map_yielding(found.entities, lambda entity: entity_out(entity, skipped)),
        await map_yielding(found.relations, relation_out),
    )
    note = None if found.cut is None else more_note(found.next_offset, found.cut)
    return Reply(KnowledgeGraph(entities, relations, found.next_offset, found.cut), note=note)
