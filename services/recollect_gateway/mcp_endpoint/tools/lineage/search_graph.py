"""The tool `search_graph`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.graphs import service as graphs
from recollect.memory import searching
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.recall.prompts import MAX_QUESTION
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import paged
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import Kinds, NodeVersionOut, Tags, node_out

MAX_HITS = 20
"""The number of nodes of a search, if the caller gives no limit: the memgraph package's default."""


class SearchGraph(ReadArguments, frozen=True, rename=None):
    """Arguments of `search_graph`."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_QUESTION, description="A question or a few words")]
    kinds: Kinds = []
    tags: Tags = []
    fresh_only: Annotated[bool, Meta(description="Leave out stale nodes")] = False
    limit: (
        Annotated[
            int, Meta(ge=1, le=50, description="Maximum number of nodes", extra_json_schema={"default": MAX_HITS})
        ]
        | None
    ) = None
    offset: Annotated[int, Meta(ge=0, le=1_000, description="Number of nodes to skip")] = 0


class SearchHit(Struct, frozen=True):
    """A node that was found, with the text of it that matches best.

    That is a piece of its content, an observation, a name, its summary, or those of its tags that were meant.
    """

    node: NodeVersionOut
    score: float
    text: str


class SearchHits(Struct, frozen=True, omit_defaults=True):
    """Result of `search_graph`, best first; 100 nodes at most on all pages, `next_offset` where there are `more`.

    `waiting`: texts that are found by their words only, for now.
    """

    hits: list[SearchHit]
    more: bool
    waiting: int
    next_offset: int | None = None


async def search_graph(call: Call, arguments: SearchGraph) -> Reply | PagedReply:
    """Find nodes by words and meaning."""
    offset, limit = arguments.offset, arguments.limit or MAX_HITS
    (question,) = await call.questions([arguments.text])
    filter_ = RecallFilter(kinds=tuple(arguments.kinds), tags=tuple(arguments.tags), fresh_only=arguments.fresh_only)
    async with call.recalling(arguments.graph, [question], filter_, as_of=arguments.as_of) as (view, cached):
        found = await searching.search_nodes(
            view,
            question,
            filter_,
            offset=offset,
            limit=limit,
            cached=cached,
        )
        graph = await graphs.name_of(view.tx, arguments.graph)
    return paged(
        [SearchHit(node_out(node, graph), round(score, 4), text) for node, score, text in found.nodes],
        lambda rows, next_offset: Reply(SearchHits(rows, next_offset is not None, found.waiting, next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=offset + limit if found.more else None,
    )


SEARCH_GRAPH = ToolSpec(
    title="Search a graph",
    description="Find nodes by words and by meaning, best first.",
    toolsets=frozenset({"lineage"}),
    result=SearchHits,
    handler=search_graph,
    read_only=True,
)
