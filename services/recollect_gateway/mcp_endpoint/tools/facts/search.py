"""The tool `search`."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.graphs import service as graphs
from recollect.memory import searching
from recollect.memory.searching import NodeMatch
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.recall.prompts import MAX_QUESTION
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import paged
from recollect_gateway.mcp_endpoint.schema import default_of
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.facts.errors import render_error
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    MAX_FOUND,
    NodeOut,
    NodeType,
    OwnedReadArguments,
    Passed,
    Status,
    Threshold,
    graph_of,
    node_fields,
)
from recollect_gateway.mcp_endpoint.tools.openai.search import SEARCH_IN_OPENAI


class Search(OwnedReadArguments, frozen=True, rename=None):
    """Arguments of `search`."""

    query: Annotated[str, Meta(max_length=MAX_QUESTION)]
    limit: Annotated[int, Meta(ge=1, le=100, extra_json_schema=default_of("search_default_limit"))] | None = None
    node_types: Annotated[list[NodeType], Meta(max_length=2)] | None = None
    status: Status | None = None
    similarity_threshold: Threshold | None = None
    include_outdated: bool = False
    offset: Passed = 0


class ScoredNode(NodeOut, frozen=True, omit_defaults=True, kw_only=True):
    """A node that a search found; `matches` are the statements about an entity that answer the query."""

    score: float
    similarity: float
    matches: list[str] = []


class SearchResults(Struct, frozen=True, omit_defaults=True):
    """Result of `search`: everything best first, then the same by type; `next_offset` where more follow."""

    success: bool
    results: list[ScoredNode]
    facts: list[ScoredNode]
    entities: list[ScoredNode]
    next_offset: int | None = None


async def search(call: Call, arguments: Search) -> Reply | PagedReply:
    """Find facts and entities by words, meaning and name."""
    graph = graph_of(arguments)
    types = set(arguments.node_types or ())
    filter_ = RecallFilter(
        status=arguments.status,
        include_outdated=arguments.include_outdated,
        named=None if len(types) != 1 else types == {"Entity"},
    )
    offset, limit = arguments.offset, arguments.limit or call.settings.search_default_limit
    end = min(offset + limit, MAX_FOUND)
    (question,) = await call.questions([arguments.query])
    async with call.recalling(graph, [question], filter_, as_of=arguments.as_of) as (view, cached):
        found = await searching.find(
            view,
            question,
            filter_,
            limit=end + 1,
            threshold=arguments.similarity_threshold,
            cached=cached,
        )
        owner_id = await graphs.name_of(view.tx, graph)
    return paged(
        [_to_result(match, owner_id) for match in found[offset:end]],
        lambda rows, next_offset: Reply(_search_results(rows, next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=end if len(found) > end < MAX_FOUND else None,
    )


SEARCH = ToolSpec(
    description="Find facts and entities by words, by meaning and by name.",
    toolsets=frozenset({"facts", "openai"}),
    result=SearchResults,
    handler=search,
    read_only=True,
    render_error=render_error,
    dialects=(SEARCH_IN_OPENAI,),
)


def _to_result(match: NodeMatch, owner_id: str) -> ScoredNode:
    """A node that a search found, with its scores and matching statements."""
    return ScoredNode(
        **node_fields(match.node, owner_id),
        score=round(match.score, 4),
        similarity=round(match.similarity, 4),
        matches=list(match.matches),
    )


def _search_results(nodes: Sequence[ScoredNode], next_offset: int | None) -> SearchResults:
    """The nodes that a search found, all of them and by type."""
    facts = [node for node in nodes if node.node_type == "Fact"]
    entities = [node for node in nodes if node.node_type == "Entity"]
    return SearchResults(True, list(nodes), facts, entities, next_offset)
