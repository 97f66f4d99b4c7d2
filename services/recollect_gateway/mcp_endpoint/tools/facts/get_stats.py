"""The tool `get_stats`."""

from msgspec import Struct, structs

from recollect.graph.graphs import service as graphs
from recollect.memory import reading
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import cut_short
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool
from recollect_gateway.mcp_endpoint.tools.facts.shapes import OwnedArguments, graph_of


class GetStats(OwnedArguments, frozen=True, rename=None):
    """Arguments of `get_stats`."""


class GraphCounts(Struct, frozen=True):
    """What a graph holds. `waiting`: texts that are not embedded yet; `revision`: how often it was written.

    `refused`: texts that the embedder does not take.
    """

    owner_id: str
    total_nodes: int
    facts: int
    entities: int
    observations: int
    relations: int
    entity_types: dict[str, int]
    relation_types: dict[str, int]
    waiting: int
    refused: int
    revision: int


class StatsResult(Struct, frozen=True, omit_defaults=True):
    """Result of `get_stats`; `cut`: of the types only those that most have are listed."""

    success: bool
    stats: GraphCounts
    cut: str | None = None


async def get_stats(call: Call, arguments: GetStats) -> Reply | PagedReply:
    """Count what a graph holds."""
    graph = graph_of(arguments)
    async with call.searching(graph) as view:
        owner_id, found = await graphs.name_of(view.tx, graph), await reading.graph_stats(view)
    head = found.head
    counts = GraphCounts(
        owner_id=owner_id,
        total_nodes=head.facts + head.entities if head else 0,
        facts=head.facts if head else 0,
        entities=head.entities if head else 0,
        observations=head.observations if head else 0,
        relations=head.relations if head else 0,
        entity_types={},
        relation_types={},
        waiting=found.waiting,
        refused=found.refused,
        revision=head.revision if head else 0,
    )

    def reply(page: list[int], cut: str | None) -> Reply:
        kinds, types = dict(found.kinds[: len(page)]), dict(found.types[: len(page)])
        return Reply(StatsResult(True, structs.replace(counts, entity_types=kinds, relation_types=types), cut))

    return cut_short(range(max(len(found.kinds), len(found.types))), reply, limit=None)


GET_STATS = facts_tool(
    description="Count what the graph holds.",
    result=StatsResult,
    handler=get_stats,
    read_only=True,
)
