"""Find facts and entities: by words, meaning and name, or as similar to one."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.graphs import service as graphs
from recollect.memory import searching
from recollect.memory.searching import NodeMatch, SimilarFact
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.recall.prompts import MAX_QUESTION
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import paged
from recollect_gateway.mcp_endpoint.schema import default_of
from recollect_gateway.mcp_endpoint.tool import Listing, Reply
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    EdgeOut,
    NodeId,
    NodeOut,
    NodeType,
    OwnedReadArguments,
    Status,
    Threshold,
    edges_out,
    graph_of,
    node_fields,
    node_id,
)

MAX_SIMILAR = 10
"""Similar facts, if the caller gives no limit: the contract's default."""

MAX_FOUND = 100
"""Nodes that a search answers on all its pages together, at most."""

Passed = Annotated[int, Meta(ge=0, le=MAX_FOUND, description="Number of results to skip")]


class Search(OwnedReadArguments, frozen=True, rename=None):
    """Arguments of `search`."""

    query: Annotated[str, Meta(max_length=MAX_QUESTION)]
    limit: Annotated[int, Meta(ge=1, le=100, extra_json_schema=default_of("search_default_limit"))] | None = None
    node_types: Annotated[list[NodeType], Meta(max_length=2)] | None = None
    status: Status | None = None
    similarity_threshold: Threshold | None = None
    include_outdated: bool = False
    offset: Passed = 0


class FindSimilar(OwnedReadArguments, frozen=True, rename=None):
    """Arguments of `find_similar`."""

    fact_id: NodeId
    threshold: Annotated[Threshold, Meta(extra_json_schema=default_of("similarity_threshold"))] | None = None
    limit: Annotated[int, Meta(ge=1, le=100, extra_json_schema={"default": MAX_SIMILAR})] | None = None
    include_relations: bool = True
    offset: Passed = 0


class FoundNode(NodeOut, frozen=True, omit_defaults=True, kw_only=True):
    """A node that a search found; `matches` are the statements about an entity that answer the query."""

    score: float
    similarity: float
    matches: list[str] = []


class SearchResults(Struct, frozen=True, omit_defaults=True):
    """Result of `search`: everything best first, then the same by type; `next_offset` where more follow."""

    success: bool
    results: list[FoundNode]
    facts: list[FoundNode]
    entities: list[FoundNode]
    next_offset: int | None = None


class SimilarNode(NodeOut, frozen=True, omit_defaults=True, kw_only=True):
    """A fact that means nearly the same; its relations, where they are asked for."""

    score: float
    relations: list[EdgeOut] = []


class SimilarNodes(Struct, frozen=True, omit_defaults=True):
    """Result of `find_similar`, nearest first; `next_offset` where more follow."""

    success: bool
    results: list[SimilarNode]
    next_offset: int | None = None


async def search(call: Call, arguments: Search) -> Reply | Listing:
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
        [_found_out(match, owner_id) for match in found[offset:end]],
        lambda rows, next_offset: Reply(_search_results(rows, next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=end if len(found) > end < MAX_FOUND else None,
    )


async def find_similar(call: Call, arguments: FindSimilar) -> Reply | Listing:
    """Find facts that mean nearly the same."""
    offset, limit = arguments.offset, arguments.limit or MAX_SIMILAR
    end = min(offset + limit, MAX_FOUND)
    graph = graph_of(arguments)
    async with call.reading(graph, arguments.as_of) as view:
        found = await searching.find_similar(
            view,
            node_id(arguments.fact_id),
            threshold=call.settings.similarity_threshold if arguments.threshold is None else arguments.threshold,
            limit=end + 1,
            edges=arguments.include_relations,
        )
        owner_id = await graphs.name_of(view.tx, graph)
    return paged(
        [await _similar_out(similar, owner_id) for similar in found[offset:end]],
        lambda rows, next_offset: Reply(SimilarNodes(True, rows, next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=end if len(found) > end < MAX_FOUND else None,
    )


def _found_out(match: NodeMatch, owner_id: str) -> FoundNode:
    """A node that a search found, with its scores and matching statements."""
    return FoundNode(
        **node_fields(match.node, owner_id),
        score=round(match.score, 4),
        similarity=round(match.similarity, 4),
        matches=list(match.matches),
    )


async def _similar_out(similar: SimilarFact, owner_id: str) -> SimilarNode:
    """A similar fact."""
    relations = await edges_out(similar.edges)
    return SimilarNode(**node_fields(similar.node, owner_id), score=round(similar.score, 4), relations=relations)


def _search_results(nodes: Sequence[FoundNode], next_offset: int | None) -> SearchResults:
    """The nodes that a search found, all of them and by type."""
    facts = [node for node in nodes if node.node_type == "Fact"]
    entities = [node for node in nodes if node.node_type == "Entity"]
    return SearchResults(True, list(nodes), facts, entities, next_offset)
