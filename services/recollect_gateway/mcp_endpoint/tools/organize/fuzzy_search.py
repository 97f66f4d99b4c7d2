"""The tool `fuzzy_search`."""

from typing import Annotated

from msgspec import Meta

from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import FuzzyQuery
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import Limit
from recollect_gateway.mcp_endpoint.tools.organize.searches import FilteredSearch, found_page, query_fields
from recollect_gateway.mcp_endpoint.tools.organize.shapes import FoundGraph, organize_tool


class FuzzySearch(FilteredSearch, frozen=True, kw_only=True):
    """Arguments of `fuzzy_search`."""

    query: Annotated[str, Meta(min_length=1, max_length=1_000, description="An approximate name, type or observation")]
    threshold: Annotated[
        float, Meta(ge=0, le=1, description="Minimum similarity by Levenshtein distance; 1: identical")
    ] = 0.7
    limit: Limit | None = None


async def fuzzy_search(call: Call, arguments: FuzzySearch) -> Reply | PagedReply:
    """Find entities in spite of typos."""
    query = FuzzyQuery(arguments.query, arguments.threshold, **query_fields(arguments, arguments.limit or PAGE_ROWS))
    async with call.searching(arguments.graph, arguments.as_of) as view:
        found = await search.search_fuzzy(view, query)
    return found_page(found, limit=arguments.limit, offset=arguments.offset)


FUZZY_SEARCH = organize_tool(
    description="Find entities whose name, type or an observation is similar to the query. Use it where a name "
    "may be misspelled.",
    result=FoundGraph,
    handler=fuzzy_search,
    read_only=True,
)
