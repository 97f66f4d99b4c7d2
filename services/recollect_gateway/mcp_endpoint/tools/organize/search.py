"""Handlers and shapes of reads: the graph, entities by name, and searches.

Searches and lists leave out archived entities, as in the enhanced memory server, whose archive is another file. By name
they can still be opened, with their status and the relations that lead to them.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

from recollect.fairness.computing import map_yielding
from recollect.graph.relations.model import Subgraph
from recollect.memory import reading
from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import BooleanQuery, DateQuery, FuzzyQuery, RankedHit, RankedQuery, SubstringQuery
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged, paged_graph
from recollect_gateway.mcp_endpoint.tool import Listing, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.graph import OpenNodes, ReadGraph
from recollect_gateway.mcp_endpoint.tools.memory.shapes import Limit, Offset, bare, more_note
from recollect_gateway.mcp_endpoint.tools.organize.shapes import (
    OrganizedEntity,
    OrganizedRelation,
    moment,
    organized,
    organized_relation,
)
from recollect_http.requests.argument_types import Importance, Kind, Tag

Tags = Annotated[list[Tag], Meta(max_length=100, description="Only entities with one of these tags, ignoring case")]
Date = Annotated[str, Meta(max_length=40, description="A day such as 2027-01-31 (the whole day, UTC), or a time")]

_RANKED = 50
"""Hits of a ranked search, where no limit is given; the enhanced memory server's default."""
_MAX_RANKED = 200


class FilteredSearch(ReadArguments, frozen=True, kw_only=True):
    """The filters that the searches by text share."""

    tags: Tags = []
    min_importance: Importance | None = None
    max_importance: Importance | None = None
    offset: Offset = 0


class SearchOrganizedNodes(FilteredSearch, frozen=True, kw_only=True):
    """Arguments of `search_nodes`."""

    query: Annotated[
        str, Meta(max_length=1_000, description="Text to look for in names, types and observations, ignoring case")
    ]
    entity_type: Kind | None = None
    limit: Limit | None = None


class SearchNodesRanked(FilteredSearch, frozen=True, kw_only=True):
    """Arguments of `search_nodes_ranked`."""

    query: Annotated[str, Meta(max_length=1_000, description="Words to look for, ignoring case")]
    limit: (
        Annotated[
            int,
            Meta(
                ge=1, le=_MAX_RANKED, description="Maximum number of entities", extra_json_schema={"default": _RANKED}
            ),
        ]
        | None
    ) = None


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


class FuzzySearch(FilteredSearch, frozen=True, kw_only=True):
    """Arguments of `fuzzy_search`."""

    query: Annotated[str, Meta(min_length=1, max_length=1_000, description="An approximate name, type or observation")]
    threshold: Annotated[
        float, Meta(ge=0, le=1, description="Minimum similarity by Levenshtein distance; 1: identical")
    ] = 0.7
    limit: Limit | None = None


class SearchByDateRange(ReadArguments, frozen=True):
    """Arguments of `search_by_date_range`."""

    start_date: Date | None = None
    end_date: Date | None = None
    entity_type: Kind | None = None
    tags: Tags = []
    offset: Offset = 0
    limit: Limit | None = None


class MatchedFields(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Where words of the query stand; what is not there is left out."""

    name: bool = False
    entity_type: bool = False
    observations: list[str] = []


class RankedResult(Struct, rename="camel", frozen=True):
    """An entity that was found."""

    entity: OrganizedEntity
    score: float
    matched_fields: MatchedFields


class RankedResults(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `search_nodes_ranked`, best first; `nextOffset` is there only where more follow."""

    results: list[RankedResult]
    next_offset: int | None = None


class FoundGraph(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Entities that were found and every relation that touches them; `nextOffset` is there only where more follow.

    `cut`: there are more relations than are told; search_relations tells all, in pages.
    """

    entities: list[OrganizedEntity]
    relations: list[OrganizedRelation]
    next_offset: int | None = None
    cut: str | None = None


async def read_graph(call: Call, arguments: ReadGraph) -> Reply:
    """Read the graph, or a page of it."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await reading.read_graph(
            view,
            kind=arguments.entity_type,
            offset=arguments.offset,
            limit=arguments.limit,
            max_items=call.settings.max_reply_items,
            archived=False,
        )
    return await _graph(found)


async def open_nodes(call: Call, arguments: OpenNodes) -> Reply:
    """Open entities by name, archived ones too."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await reading.open_nodes(view, arguments.names, skipped=arguments.observations_offset)
    return await _graph(found, arguments.observations_offset)


async def search_nodes(call: Call, arguments: SearchOrganizedNodes) -> Reply | Listing:
    """Find entities by a substring."""
    query = SubstringQuery(
        arguments.query, kind=arguments.entity_type, **_query_fields(arguments, arguments.limit or PAGE_ROWS)
    )
    async with call.reading(arguments.graph, arguments.as_of) as view:
        return _page(arguments, await search.search_nodes(view, query))


async def search_nodes_ranked(call: Call, arguments: SearchNodesRanked) -> Reply | Listing:
    """Find entities by words, of which rare ones weigh more."""
    query = RankedQuery(arguments.query, **_query_fields(arguments, arguments.limit or _RANKED))
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await search.search_ranked(view, query)
    return paged(
        [*map(_ranked_result, found.hits)],
        lambda rows, next_offset: bare(RankedResults(rows, next_offset), more_note(next_offset)),
        limit=arguments.limit,
        offset=arguments.offset,
        next_offset=found.next_offset,
    )


async def boolean_search(call: Call, arguments: BooleanSearch) -> Reply | Listing:
    """Find entities that match a boolean expression."""
    query = BooleanQuery(arguments.query, **_query_fields(arguments, arguments.limit or PAGE_ROWS))
    async with call.reading(arguments.graph, arguments.as_of) as view:
        return _page(arguments, await search.search_boolean(view, query))


async def fuzzy_search(call: Call, arguments: FuzzySearch) -> Reply | Listing:
    """Find entities in spite of typos."""
    query = FuzzyQuery(arguments.query, arguments.threshold, **_query_fields(arguments, arguments.limit or PAGE_ROWS))
    async with call.reading(arguments.graph, arguments.as_of) as view:
        return _page(arguments, await search.search_fuzzy(view, query))


async def search_by_date_range(call: Call, arguments: SearchByDateRange) -> Reply | Listing:
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
    async with call.reading(arguments.graph, arguments.as_of) as view:
        return _page(arguments, await search.search_dates(view, query))


def _query_fields(arguments: FilteredSearch, limit: int) -> dict[str, Any]:
    """The fields that these queries have in common."""
    return {
        "tags": tuple(arguments.tags),
        "min_importance": arguments.min_importance,
        "max_importance": arguments.max_importance,
        "archived": False,
        "offset": arguments.offset,
        "limit": limit,
    }


def _ranked_result(hit: RankedHit) -> RankedResult:
    fields = MatchedFields(hit.in_name, hit.in_kind, list(hit.in_observations))
    return RankedResult(organized(hit.entity), hit.score, fields)


def _page(
    arguments: SearchOrganizedNodes | BooleanSearch | FuzzySearch | SearchByDateRange, found: Subgraph
) -> Reply | Listing:
    def reply(page: Subgraph, cut: str | None) -> Reply:
        entities, relations = [*map(organized, page.entities)], [*map(organized_relation, page.relations)]
        return Reply(FoundGraph(entities, relations, page.next_offset, cut), note=more_note(page.next_offset, cut))

    return paged_graph(found, reply, limit=arguments.limit, offset=arguments.offset)


async def _graph(found: Subgraph, skipped: int = 0) -> Reply:
    entities, relations = (
        await map_yielding(found.entities, lambda entity: organized(entity, skipped)),
        await map_yielding(found.relations, organized_relation),
    )
    note = more_note(found.next_offset, found.cut)
    return Reply(FoundGraph(entities, relations, found.next_offset, found.cut), note=note)
