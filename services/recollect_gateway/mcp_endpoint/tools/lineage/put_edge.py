"""The tool `put_edge`."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from recollect.graph.graphs import service as graphs
from recollect.memory import relating
from recollect.memory.model import EdgeSpec, MemoryRef, NamedEdge
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import (
    CreatedBy,
    EdgeKind,
    LineageEdgeOut,
    LineageId,
    edge_out,
    require_small,
)
from recollect_http.requests.argument_types import GraphName

ToGraph = Annotated[
    GraphName, Meta(description="Name or id of the target's graph, if it is another one: makes a symlink")
]
EdgeMetadata = Annotated[
    dict[str, Any], Meta(description="Any data to store with it; replaces the metadata of an existing edge")
]
Ordinal = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1, description="Its position among the edges of its source")]


class PutEdge(Arguments, frozen=True, rename=None):
    """Arguments of `put_edge`."""

    from_lineage: LineageId
    to_lineage: LineageId
    kind: EdgeKind
    to_graph: ToGraph | None = None
    metadata: EdgeMetadata | None = None
    ordinal: Ordinal | None = None
    created_by: CreatedBy | None = None


class OneEdge(Struct, frozen=True):
    """Result of `put_edge`. Neither `created` nor `updated`: the edge existed already, with the same properties."""

    edge: LineageEdgeOut
    created: bool
    updated: bool


async def put_edge(call: Call, arguments: PutEdge) -> Reply:
    """Create an edge, or replace the properties of one that exists."""
    require_small(call, arguments.metadata, "metadata")
    spec = EdgeSpec(
        MemoryRef(arguments.from_lineage),
        MemoryRef(arguments.to_lineage),
        arguments.kind,
        arguments.to_graph,
        arguments.metadata,
        arguments.ordinal,
        arguments.created_by,
    )
    async with call.writing(arguments.graph) as (tx, revision):
        upsert = await relating.put_edge(tx, revision, spec)
        is_symlink = upsert.edge.is_symlink
        to_graph = await graphs.name_of(tx, arguments.to_graph) if is_symlink else revision.graph.name
        link = NamedEdge(upsert.edge, revision.graph.name, to_graph, dangling=False)
    return Reply(OneEdge(edge_out(link), upsert.created, upsert.updated))


PUT_EDGE = ToolSpec(
    title="Put an edge",
    description="Create a directed edge between two nodes. It survives new versions of both. With to_graph it is "
    "a symlink into another graph. An existing edge is not duplicated: given metadata and ordinal replace its own "
    "(`updated`), omitted ones stay.",
    toolsets=frozenset({"lineage"}),
    result=OneEdge,
    handler=put_edge,
    idempotent=True,
)
