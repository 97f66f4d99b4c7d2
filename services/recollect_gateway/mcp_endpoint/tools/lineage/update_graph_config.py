"""The tool `update_graph_config`."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from recollect.curation.duplicates import deduplication
from recollect.distilling.threads import model as distilled
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import GraphPatch
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


class UpdateGraphConfig(Arguments, frozen=True, rename=None):
    """Arguments of `update_graph_config`."""

    name: Annotated[GraphName, Meta(description="Its new name")] | None = None
    conflict_policy: Policy | None = None
    kind_whitelist: Whitelist | None = None
    metadata: Annotated[dict[str, Any], Meta(description="Replaces its metadata; empty clears it")] | None = None
    time_zone: Zone | None = None


class OneGraph(Struct, frozen=True):
    """Result of `update_graph_config`."""

    graph: GraphOut


async def update_graph_config(call: Call, arguments: UpdateGraphConfig) -> Reply:
    """Change a graph's configuration."""
    require_small(call, arguments.metadata or {}, "metadata")
    deduplication.require_readable(arguments.metadata or {})
    distilled.require_readable(arguments.metadata or {})
    patch = GraphPatch(
        arguments.name,
        arguments.conflict_policy,
        None if arguments.kind_whitelist is None else tuple(arguments.kind_whitelist),
        arguments.metadata,
        arguments.time_zone or None,
    )
    async with call.changing(arguments.graph) as tx:
        graph = await graphs.configure_graph(tx, call.graph_name(arguments.graph), patch, call.operation)
    return Reply(OneGraph(graph_out(graph)))


UPDATE_GRAPH_CONFIG = ToolSpec(
    title="Update a graph's configuration",
    description="Change a graph's name, conflict policy, allowed kinds or metadata. Omitted fields stay; an empty "
    "list or object clears a field.",
    toolsets=frozenset({"lineage"}),
    result=OneGraph,
    handler=update_graph_config,
    idempotent=True,
)
