"""The tool `batch_search`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.graphs import service as graphs
from recollect.memory import searching
from recollect.memory.model import NodeSearch
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.recall.prompts import MAX_QUESTION
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import paged
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import Kinds, NodeVersionOut, Tags, node_out

MAX_QUERIES = 8
DEFAULT_LIMIT = 20
MAX_PER_QUERY = 50
MAX_TOTAL = 100
"""The bounds of the memgraph package. It lowers a limit that is too large to the bound, and takes 0 for the default."""

Count = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


class BatchQuery(Struct, forbid_unknown_fields=True, frozen=True):
    """One of the searches."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_QUESTION, description="A question or a few words")]
    kinds: Kinds = []
    tags: Tags = []
    fresh_only: Annotated[bool, Meta(description="Leave out stale nodes")] = False
    limit: Annotated[Count, Meta(description=f"Maximum number of nodes that it finds, up to {MAX_PER_QUERY}")] = (
        DEFAULT_LIMIT
    )


class BatchSearch(ReadArguments, frozen=True, rename=None):
    """Arguments of `batch_search`."""

    queries: Annotated[
        list[BatchQuery], Meta(min_length=1, max_length=MAX_QUERIES, description="Variants of the question")
    ]
    limit: (
        Annotated[
            Count,
            Meta(
                description=f"Maximum number of nodes in all, up to {MAX_TOTAL}",
                extra_json_schema={"default": DEFAULT_LIMIT},
            ),
        ]
        | None
    ) = None
    offset: Annotated[int, Meta(ge=0, le=MAX_QUERIES * MAX_PER_QUERY, description="Number of nodes to skip")] = 0


class BatchHit(Struct, frozen=True):
    """A node that was found, its fused score, and the queries that found it, from 0."""

    node: NodeVersionOut
    score: float
    queries_matched: list[int]


class BatchHits(Struct, frozen=True, omit_defaults=True):
    """Result of `batch_search`, best first. `unique_hits`: nodes before the limit; `per_query_hits`: of each query.

    `next_offset`: where more of them follow.

    `waiting`: texts that are found by their words only, for now.
    """

    hits: list[BatchHit]
    query_count: int
    unique_hits: int
    per_query_hits: list[int]
    waiting: int
    next_offset: int | None = None


async def batch_search(call: Call, arguments: BatchSearch) -> Reply | PagedReply:
    """Find nodes by several questions."""
    offset, limit = arguments.offset, _bounded(arguments.limit or 0, MAX_TOTAL)
    questions = await call.questions([query.text for query in arguments.queries])
    searches = [
        NodeSearch(question, _filter(query), _bounded(query.limit, MAX_PER_QUERY))
        for question, query in zip(questions, arguments.queries, strict=True)
    ]
    async with call.searching(arguments.graph, arguments.as_of) as view:
        found = await searching.search_batch(
            view,
            searches,
            offset=offset,
            limit=limit,
        )
        graph = await graphs.name_of(view.tx, arguments.graph)

    def reply(rows: list[BatchHit], next_offset: int | None) -> Reply:
        return Reply(BatchHits(rows, len(searches), found.unique, found.per_query, found.waiting, next_offset))

    return paged(
        [BatchHit(node_out(node, graph), fused.score, list(fused.rankings)) for node, fused in found.nodes],
        reply,
        limit=arguments.limit or None,
        offset=offset,
        next_offset=offset + limit if found.unique > offset + limit else None,
    )


BATCH_SEARCH = ToolSpec(
    title="Search a graph with several queries",
    description="Search with up to eight variants of a question at once. Results are fused by rank; each node "
    "comes once, with the queries that found it.",
    toolsets=frozenset({"lineage"}),
    result=BatchHits,
    handler=batch_search,
    read_only=True,
)


def _filter(query: BatchQuery) -> RecallFilter:
    return RecallFilter(kinds=tuple(query.kinds), tags=tuple(query.tags), fresh_only=query.fresh_only)


def _bounded(limit: int, max_limit: int) -> int:
    return min(limit, max_limit) if limit > 0 else DEFAULT_LIMIT
