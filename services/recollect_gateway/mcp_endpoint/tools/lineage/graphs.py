"""Graphs: list, create, configure and delete them.

The tools that create, configure and delete need the scope memory:write and no more: the first write to a name creates a
graph anyway, and a caller that may write to a graph may empty it. A key confined to some graphs by an allow-list may
use none of the three: it uses its graphs as they are configured.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from recollect.curation.duplicates import deduplication
from recollect.distilling.threads import model as distilled
from recollect.errors import InvalidInput, NotFound
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import GraphHead, GraphPatch, NewGraph
from recollect.retention.erasure import service as erasure
from recollect.times import MAX_ZONE
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import Arguments, Listing, Reply
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import GraphOut, Kind, graph_out, require_small
from recollect_http.requests.argument_types import GraphName

Policy = Annotated[
    Literal["lww", "manual"],
    Meta(description="lww: the newest put wins; manual: concurrent puts stay side by side until a put settles them"),
]
Whitelist = Annotated[list[Kind], Meta(max_length=200, description="Kinds that may be written; empty: every kind")]
Name = Annotated[GraphName, Meta(description="The graph's name")]
Zone = Annotated[
    str, Meta(max_length=MAX_ZONE, description="IANA time zone of its days without offset; default: the tenant's")
]


class ListGraphs(Arguments, frozen=True, rename=None):
    """Arguments of `list_graphs`."""

    limit: Annotated[int, Meta(ge=1, le=1_000, description="Maximum number of graphs")] | None = None
    after: Annotated[str, Meta(max_length=128, description="Only names that come after this one")] = ""


class GetGraph(Arguments, frozen=True, rename=None):
    """Arguments of `get_graph`."""


class CreateGraph(Arguments, frozen=True, rename=None):
    """Arguments of `create_graph`."""

    name: Name
    conflict_policy: Policy = "lww"
    kind_whitelist: Whitelist = []
    metadata: Annotated[dict[str, Any], Meta(description="Any data to store with it")] = {}
    time_zone: Zone | None = None


class UpdateGraphConfig(Arguments, frozen=True, rename=None):
    """Arguments of `update_graph_config`."""

    name: Annotated[GraphName, Meta(description="Its new name")] | None = None
    conflict_policy: Policy | None = None
    kind_whitelist: Whitelist | None = None
    metadata: Annotated[dict[str, Any], Meta(description="Replaces its metadata; empty clears it")] | None = None
    time_zone: Zone | None = None


class DeleteGraph(Arguments, frozen=True, rename=None):
    """Arguments of `delete_graph`: the graph must be named, no default is taken."""

    graph: Annotated[GraphName, Meta(description="Graph to delete, by name or id")] = field()


class Graphs(Struct, frozen=True):
    """Result of `list_graphs`, by name; `more`: ask again after the last name."""

    graphs: list[GraphOut]
    more: bool


class GraphDetail(Struct, frozen=True):
    """Result of `get_graph`: the graph, its newest revision and what lives in it."""

    graph: GraphOut
    revision: int
    nodes: int
    observations: int
    edges: int


class OneGraph(Struct, frozen=True):
    """Result of `update_graph_config`."""

    graph: GraphOut


class CreatedGraph(Struct, frozen=True):
    """Result of `create_graph`; `created` false: it was there, just so."""

    graph: GraphOut
    created: bool


class DeletedGraph(Struct, frozen=True):
    """Result of `delete_graph`; `deleted` false: there was none."""

    graph: str
    deleted: bool


async def list_graphs(call: Call, arguments: ListGraphs) -> Reply | Listing:
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


async def get_graph(call: Call, arguments: GetGraph) -> Reply:
    """Show a graph's configuration and counts."""
    async with call.reading(arguments.graph) as view:
        graphs.require_there(view)
        head = await graphs.head_of(view)
    return Reply(_detail(graph_out(view.graph), head))


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


async def delete_graph(call: Call, arguments: DeleteGraph) -> Reply:
    """Delete a graph with its history."""
    try:
        async with call.changing(arguments.graph) as tx:
            name = await graphs.name_of(tx, arguments.graph)
            await erasure.erase_graph(tx, arguments.graph)
    except NotFound:
        return Reply(DeletedGraph(arguments.graph, False))
    return Reply(DeletedGraph(name, True))


def _detail(graph: GraphOut, head: GraphHead) -> GraphDetail:
    return GraphDetail(graph, head.revision, head.entities + head.facts, head.observations, head.relations)
