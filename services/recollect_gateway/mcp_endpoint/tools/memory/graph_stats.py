"""The tool `graph_stats`."""

from msgspec import Struct

from recollect.graph.graphs import service as graphs
from recollect.graph.relations import service as relations
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec


class GraphStats(Arguments, frozen=True):
    """Arguments of `graph_stats`."""


class Stats(Struct, rename="camel", frozen=True):
    """Result of `graph_stats`, of what `read_graph` lists. Every live entity is searched; no string is interned."""

    entities: int
    relations: int
    total_observations: int
    search_index_entries: int
    interned_strings: int = 0
    interned_bytes: int = 0


async def graph_stats(call: Call, arguments: GraphStats) -> Reply:
    """Count what a graph holds."""
    async with call.searching(arguments.graph) as view:
        head = await graphs.head_of(view)
        relation_count = await relations.count_named(view, head, call.services.edge_counts)
    return Reply(Stats(head.entities, relation_count, head.observations, head.entities))


GRAPH_STATS = ToolSpec(
    description="Count the entities, relations and observations of the knowledge graph.",
    toolsets=frozenset({"memory"}),
    result=Stats,
    handler=graph_stats,
    read_only=True,
)
