"""The tool `find_similar`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.graphs import service as graphs
from recollect.memory import searching
from recollect.memory.searching import SimilarFact
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import paged
from recollect_gateway.mcp_endpoint.schema import default_of
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    MAX_FOUND,
    EdgeOut,
    NodeId,
    NodeOut,
    OwnedReadArguments,
    Passed,
    Threshold,
    edge_out,
    graph_of,
    node_fields,
    node_id,
)

MAX_SIMILAR = 10
"""The number of similar facts, if the caller gives no limit: the contract's default."""


class FindSimilar(OwnedReadArguments, frozen=True, rename=None):
    """Arguments of `find_similar`."""

    fact_id: NodeId
    threshold: Annotated[Threshold, Meta(extra_json_schema=default_of("similarity_threshold"))] | None = None
    limit: Annotated[int, Meta(ge=1, le=100, extra_json_schema={"default": MAX_SIMILAR})] | None = None
    include_relations: bool = True
    offset: Passed = 0


class SimilarNode(NodeOut, frozen=True, omit_defaults=True, kw_only=True):
    """A fact that means nearly the same as another, with its relations if the call asks for them."""

    score: float
    relations: list[EdgeOut] = []


class SimilarNodes(Struct, frozen=True, omit_defaults=True):
    """Result of `find_similar`, nearest first; `next_offset` where more follow."""

    success: bool
    results: list[SimilarNode]
    next_offset: int | None = None


async def find_similar(call: Call, arguments: FindSimilar) -> Reply | PagedReply:
    """Find facts that mean nearly the same."""
    offset, limit = arguments.offset, arguments.limit or MAX_SIMILAR
    end = min(offset + limit, MAX_FOUND)
    graph = graph_of(arguments)
    async with call.searching(graph, arguments.as_of) as view:
        found = await searching.find_similar(
            view,
            node_id(arguments.fact_id),
            threshold=call.settings.similarity_threshold if arguments.threshold is None else arguments.threshold,
            limit=end + 1,
            edges=arguments.include_relations,
        )
        owner_id = await graphs.name_of(view.tx, graph)
    page = found[offset:end]
    return paged(
        page,
        lambda rows, next_offset: Reply(
            SimilarNodes(True, [_similar_out(similar, owner_id) for similar in rows], next_offset)
        ),
        limit=arguments.limit,
        offset=offset,
        next_offset=end if len(found) > end < MAX_FOUND else None,
        related_items=sum(len(similar.edges) for similar in page),
    )


FIND_SIMILAR = facts_tool(
    description="Find facts similar in meaning to a given fact, most similar first. Both must have been embedded.",
    result=SimilarNodes,
    handler=find_similar,
    read_only=True,
)


def _similar_out(similar: SimilarFact, owner_id: str) -> SimilarNode:
    """A similar fact."""
    relations = [edge_out(edge) for edge in similar.edges]
    return SimilarNode(**node_fields(similar.node, owner_id), score=round(similar.score, 4), relations=relations)
