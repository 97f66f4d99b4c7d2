"""The tool `search_nodes`."""

from typing import Annotated

from msgspec import Meta

from recollect.graph.relations.model import Subgraph
from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import SubstringQuery
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged_graph
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import (
    KnowledgeGraph,
    Limit,
    Offset,
    entity_out,
    more_note,
    relation_out,
)
from recollect_gateway.mcp_endpoint.tools.organize.search_nodes import SEARCH_NODES_IN_ORGANIZE
from recollect_http.requests.argument_types import Importance, Kind, Tag


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


async def search_nodes(call: Call, arguments: SearchNodes) -> Reply | PagedReply:
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
    async with call.searching(arguments.graph, arguments.as_of) as view:
        found = await search.search_nodes(view, query)
    return paged_graph(found, _page, limit=arguments.limit, offset=arguments.offset)


SEARCH_NODES = ToolSpec(
    description="Search for nodes in the knowledge graph by text in their names, types or observations.",
    toolsets=frozenset({"memory", "organize"}),
    result=KnowledgeGraph,
    handler=search_nodes,
    read_only=True,
    dialects=(SEARCH_NODES_IN_ORGANIZE,),
)


def _page(found: Subgraph, cut: str | None) -> Reply:
    entities, relations = [*map(entity_out, found.entities)], [*map(relation_out, found.relations)]
    return Reply(KnowledgeGraph(entities, relations, found.next_offset, cut), note=more_note(found.next_offset, cut))
