"""The tool `search_by_date_range`."""

from typing import Annotated

from msgspec import Meta

from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import DateQuery
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import Limit, Offset
from recollect_gateway.mcp_endpoint.tools.organize.searches import Tags, found_page
from recollect_gateway.mcp_endpoint.tools.organize.shapes import FoundGraph, moment, organize_tool
from recollect_http.requests.argument_types import Kind

Date = Annotated[str, Meta(max_length=40, description="A day such as 2027-01-31 (the whole day, UTC), or a time")]


class SearchByDateRange(ReadArguments, frozen=True):
    """Arguments of `search_by_date_range`."""

    start_date: Date | None = None
    end_date: Date | None = None
    entity_type: Kind | None = None
    tags: Tags = []
    offset: Offset = 0
    limit: Limit | None = None


async def search_by_date_range(call: Call, arguments: SearchByDateRange) -> Reply | PagedReply:
    """Find entities by the time when they were created or last changed."""
    query = DateQuery(
        moment(arguments.start_date, "startDate"),
        moment(arguments.end_date, "endDate", last=True),
        kind=arguments.entity_type,
        tags=tuple(arguments.tags),
        archived=False,
        offset=arguments.offset,
        limit=arguments.limit or PAGE_ROWS,
    )
    async with call.searching(arguments.graph, arguments.as_of) as view:
        found = await search.search_dates(view, query)
    return found_page(found, limit=arguments.limit, offset=arguments.offset)


SEARCH_BY_DATE_RANGE = organize_tool(
    description="Find entities that were created or last changed between two dates, both included.",
    result=FoundGraph,
    handler=search_by_date_range,
    read_only=True,
)
