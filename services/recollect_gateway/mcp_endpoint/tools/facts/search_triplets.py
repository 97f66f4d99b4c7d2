"""The tool `search_triplets`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.graphs import service as graphs
from recollect.graph.relations.model import RelationFilter
from recollect.memory import relating
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    Offset,
    OwnedReadArguments,
    TripletOut,
    graph_of,
    triplet_out,
)
from recollect_http.requests.argument_types import SoughtName


class SearchTriplets(OwnedReadArguments, frozen=True, rename=None):
    """Arguments of `search_triplets`."""

    subject: SoughtName | None = None
    predicate: SoughtName | None = None
    object_value: SoughtName | None = None
    offset: Offset = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] | None = None


class Triplets(Struct, frozen=True, omit_defaults=True):
    """Result of `search_triplets`; `next_offset` where more follow."""

    success: bool
    triplets: list[TripletOut]
    next_offset: int | None = None


async def search_triplets(call: Call, arguments: SearchTriplets) -> Reply | PagedReply:
    """Find relations between names."""
    graph = graph_of(arguments)
    filter_ = RelationFilter(arguments.subject, arguments.object_value, arguments.predicate)
    offset, limit = arguments.offset, arguments.limit or PAGE_ROWS
    async with call.searching(graph, arguments.as_of) as view:
        found, more = await relating.search_triplets(view, filter_, offset=offset, limit=limit)
        owner_id = await graphs.name_of(view.tx, graph)
    triplets = [
        triplet_out(
            triplet.edge,
            triplet.named.source,
            triplet.named.target,
            owner_id,
            None if triplet.fact_id is None else str(triplet.fact_id),
        )
        for triplet in found
    ]
    return paged(
        triplets,
        lambda rows, next_offset: Reply(Triplets(True, rows, next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=offset + limit if more else None,
    )


SEARCH_TRIPLETS = facts_tool(
    description="Find triplets by exact subject, predicate or object, oldest first.",
    result=Triplets,
    handler=search_triplets,
    read_only=True,
)
