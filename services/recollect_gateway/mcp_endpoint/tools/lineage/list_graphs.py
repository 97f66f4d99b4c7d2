"""The tool `list_graphs`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.graphs import service as graphs
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import Arguments, PagedReply, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import GraphOut, graph_out


class ListGraphs(Arguments, frozen=True, rename=None):
    """Arguments of `list_graphs`."""

    limit: Annotated[int, Meta(ge=1, le=1_000, description="Maximum number of graphs")] | None = None
    after: Annotated[str, Meta(max_length=128, description="Only names that come after this one")] = ""


class Graphs(Struct, frozen=True):
    """Result of `list_graphs`, by name; `more`: ask again after the last name."""

    graphs: list[GraphOut]
    more: bool


async def list_graphs(call: Call, arguments: ListGraphs) -> Reply | PagedReply:
    """List the graphs that the caller may use."""
    limit = arguments.limit or PAGE_ROWS
    async with call.transaction() as tx:
        if arguments.graph is not None:
            view = await graphs.view(tx, arguments.graph)
            return Reply(Graphs([graph_out(view.graph)] if view.is_there else [], more=False))
        found = await graphs.list_graphs(tx, after=arguments.after, limit=limit + 1)
    return paged(
        [graph_out(graph) for graph in found[:limit]],
        lambda rows, next_offset: Reply(Graphs(rows, next_offset is not None)),
        limit=arguments.limit,
        next_offset=limit if len(found) > limit else None,
    )


LIST_GRAPHS = ToolSpec(
    title="List graphs",
    description="List the graphs that you may use, sorted by name.",
    toolsets=frozenset({"lineage"}),
    result=Graphs,
    handler=list_graphs,
    read_only=True,
)
