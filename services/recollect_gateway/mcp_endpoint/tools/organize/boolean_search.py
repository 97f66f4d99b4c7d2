"""The tool `boolean_search`."""

from typing import Annotated

from msgspec import Meta

from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import BooleanQuery
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import Limit
from recollect_gateway.mcp_endpoint.tools.organize.searches import FilteredSearch, found_page, query_fields
from recollect_gateway.mcp_endpoint.tools.organize.shapes import FoundGraph, organize_tool


class BooleanSearch(FilteredSearch, frozen=True, kw_only=True):
    """Arguments of `boolean_search`."""

    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1_000,
            description="Terms with AND, OR, NOT, parentheses and quotes; name:, type:, observation: or tag: before a "
            'term names its field, as in name:Alice AND (type:person OR observation:"likes tea")',
        ),
    ]
    limit: Limit | None = None


async def boolean_search(call: Call, arguments: BooleanSearch) -> Reply | PagedReply:
    """Find entities that match a boolean expression."""
    query = BooleanQuery(arguments.query, **query_fields(arguments, arguments.limit or PAGE_ROWS))
    async with call.searching(arguments.graph, arguments.as_of) as view:
        found = await search.search_boolean(view, query)
    return found_page(found, limit=arguments.limit, offset=arguments.offset)


BOOLEAN_SEARCH = organize_tool(
    description="Find entities by substrings of their texts, combined with AND, OR and NOT, parentheses and "
    "quotes. Before a term, name:, type:, observation: or tag: limits it to that field.",
    result=FoundGraph,
    handler=boolean_search,
    read_only=True,
)
