"""The tool `get_graph`."""

from msgspec import Struct

from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import GraphHead
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import GraphOut, graph_out


class GetGraph(Arguments, frozen=True, rename=None):
    """Arguments of `get_graph`."""


class GraphDetail(Struct, frozen=True):
    """Result of `get_graph`: the graph, its newest revision and the counts of its live items."""

    graph: GraphOut
    revision: int
    nodes: int
    observations: int
    edges: int


async def get_graph(call: Call, arguments: GetGraph) -> Reply:
    """Show a graph's configuration and counts."""
    async with call.searching(arguments.graph) as view:
        graphs.require_there(view)
        head = await graphs.head_of(view)
    return Reply(_detail(graph_out(view.graph), head))


GET_GRAPH = ToolSpec(
    title="Get a graph",
    description="Get a graph's configuration, its newest revision and how much it holds.",
    toolsets=frozenset({"lineage"}),
    result=GraphDetail,
    handler=get_graph,
    read_only=True,
)


def _detail(graph: GraphOut, head: GraphHead) -> GraphDetail:
    return GraphDetail(graph, head.revision, head.entities + head.facts, head.observations, head.relations)
