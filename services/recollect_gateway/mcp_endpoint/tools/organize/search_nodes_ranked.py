"""The tool `search_nodes_ranked`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import RankedHit, RankedQuery
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import paged
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import bare, more_note
from recollect_gateway.mcp_endpoint.tools.organize.searches import FilteredSearch, query_fields
from recollect_gateway.mcp_endpoint.tools.organize.shapes import (
    OrganizedEntity,
    organize_tool,
    organized,
)

_RANKED = 50
"""The number of hits of a ranked search, if the caller gives no limit: the enhanced memory server's default."""
_MAX_RANKED = 200


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


class MatchedFields(Struct, rename="camel", omit_defaults=True, frozen=True):
    """The fields that have words of the query; fields without any are left out."""

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


async def search_nodes_ranked(call: Call, arguments: SearchNodesRanked) -> Reply | PagedReply:
    """Find entities by words, of which rare ones weigh more."""
    query = RankedQuery(arguments.query, **query_fields(arguments, arguments.limit or _RANKED))
    async with call.searching(arguments.graph, arguments.as_of) as view:
        found = await search.search_ranked(view, query)
    return paged(
        [*map(_ranked_result, found.hits)],
        lambda rows, next_offset: bare(RankedResults(rows, next_offset), more_note(next_offset)),
        limit=arguments.limit,
        offset=arguments.offset,
        next_offset=found.next_offset,
    )


SEARCH_NODES_RANKED = organize_tool(
    description="Find entities by words in their names, types and observations, ranked by TF-IDF, so that rare "
    "words count most.",
    result=RankedResults,
    handler=search_nodes_ranked,
    read_only=True,
)


def _ranked_result(hit: RankedHit) -> RankedResult:
    fields = MatchedFields(hit.in_name, hit.in_kind, list(hit.in_observations))
    return RankedResult(organized(hit.entity), hit.score, fields)
