"""What the searches of toolset `organize` share: filters and pages.

Searches and lists leave out archived entities, as in the enhanced memory server, whose archive is another file. By name
they can still be opened, with their status and the relations that lead to them.
"""

from typing import Annotated, Any

from msgspec import Meta

from recollect.graph.relations.model import Subgraph
from recollect_gateway.mcp_endpoint.pages import paged_graph
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import Offset, more_note
from recollect_gateway.mcp_endpoint.tools.organize.shapes import FoundGraph, organized, organized_relation
from recollect_http.requests.argument_types import Importance, Tag

Tags = Annotated[list[Tag], Meta(max_length=100, description="Only entities with one of these tags, ignoring case")]


class FilteredSearch(ReadArguments, frozen=True, kw_only=True):
    """The filters that the searches by text share."""

    tags: Tags = []
    min_importance: Importance | None = None
    max_importance: Importance | None = None
    offset: Offset = 0


def query_fields(arguments: FilteredSearch, limit: int) -> dict[str, Any]:
    """The fields that these queries have in common."""
    return {
        "tags": tuple(arguments.tags),
        "min_importance": arguments.min_importance,
        "max_importance": arguments.max_importance,
        "archived": False,
        "offset": arguments.offset,
        "limit": limit,
    }


def found_page(found: Subgraph, *, limit: int | None, offset: int) -> Reply | PagedReply:
    """A page of what a search found, with the relations among it."""

    def reply(page: Subgraph, cut: str | None) -> Reply:
        entities, relations = [*map(organized, page.entities)], [*map(organized_relation, page.relations)]
        return Reply(FoundGraph(entities, relations, page.next_offset, cut), note=more_note(page.next_offset, cut))

    return paged_graph(found, reply, limit=limit, offset=offset)
