"""The tool `create_graph`."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from recollect.curation.duplicates import deduplication
from recollect.distilling.threads import model as distilled
from recollect.errors import InvalidInput
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import (
    GraphOut,
    Policy,
    Whitelist,
    Zone,
    graph_out,
    require_small,
)
from recollect_http.requests.argument_types import GraphName

Name = Annotated[GraphName, Meta(description="The graph's name")]


class CreateGraph(Arguments, frozen=True, rename=None):
    """Arguments of `create_graph`."""

    name: Name
    conflict_policy: Policy = "lww"
    kind_whitelist: Whitelist = []
    metadata: Annotated[dict[str, Any], Meta(description="Any data to store with it")] = {}
    time_zone: Zone | None = None


class CreatedGraph(Struct, frozen=True):
    """Result of `create_graph`; `created` false: the graph existed already, with the same configuration."""

    graph: GraphOut
    created: bool


async def create_graph(call: Call, arguments: CreateGraph) -> Reply:
    """Create a graph."""
    if arguments.graph not in (None, arguments.name):
        raise InvalidInput("Give the name of the new graph in name", path="graph")
    require_small(call, arguments.metadata, "metadata")
    deduplication.require_readable(arguments.metadata)
    distilled.require_readable(arguments.metadata)
    whitelist = tuple(arguments.kind_whitelist) or None
    new_graph = NewGraph(
        arguments.name, arguments.conflict_policy, whitelist, arguments.metadata, arguments.time_zone or None
    )
    async with call.changing(arguments.name) as tx:
        graph, created = await graphs.ensure_graph(tx, new_graph)
    return Reply(CreatedGraph(graph_out(graph), created))


CREATE_GRAPH = ToolSpec(
    title="Create a graph",
    description="Create a graph with its conflict policy and the kinds that it allows. If the same graph exists "
    "with the same configuration, it is returned as it is.",
    toolsets=frozenset({"lineage"}),
    result=CreatedGraph,
    handler=create_graph,
    idempotent=True,
)
