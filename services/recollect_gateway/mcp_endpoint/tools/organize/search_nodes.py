"""The tool `search_nodes`."""

from typing import Annotated

from msgspec import Meta

from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import SubstringQuery
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import Limit
from recollect_gateway.mcp_endpoint.tools.organize.searches import FilteredSearch, found_page, query_fields
from recollect_gateway.mcp_endpoint.tools.organize.shapes import FoundGraph, organize_tool
from recollect_http.requests.argument_types import Kind


class SearchOrganizedNodes(FilteredSearch, frozen=True, kw_only=True):
    """Arguments of `search_nodes`."""

    query: Annotated[
        str, Meta(max_length=1_000, description="Text to look for in names, types and observations, ignoring case")
    ]
    entity_type: Kind | None = None
    limit: Limit | None = None


async def search_nodes(call: Call, arguments: SearchOrganizedNodes) -> Reply | PagedReply:
    """Find entities by a substring."""
    query = SubstringQuery(
        arguments.query, kind=arguments.entity_type, **query_fields(arguments, arguments.limit or PAGE_ROWS)
    )
    async with call.searching(arguments.graph, arguments.as_of) as view:
        found = await search.search_nodes(view, query)
    return found_page(found, limit=arguments.limit, offset=arguments.offset)


SEARCH_NODES_IN_ORGANIZE = organize_tool(
    description="Find entities by text in their names, types or observations. Archived entities are left out.",
    result=FoundGraph,
    handler=search_nodes,
    read_only=True,
)
