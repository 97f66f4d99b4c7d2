"""The tool `extract_subgraph`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.traversal import service as traversal
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, cut_short
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import (
    MAX_BATCH,
    EntityOut,
    Limit,
    RelationOut,
    cut_note,
    entity_out,
    graph_out,
    relation_out,
)
from recollect_http.requests.argument_types import SoughtName


class ExtractSubgraph(ReadArguments, frozen=True):
    """Arguments of `extract_subgraph`."""

    names: Annotated[list[SoughtName], Meta(max_length=MAX_BATCH, description="Names of the entities to start from")]
    depth: Annotated[int, Meta(ge=0, le=10, description="Maximum relations from the start")] = 1
    limit: Limit | None = None


class ExtractedGraph(Struct, omit_defaults=True, frozen=True):
    """Result of `extract_subgraph`, nearest first. `cut`: which bound left some out."""

    entities: list[EntityOut]
    relations: list[RelationOut]
    cut: str | None = None


async def extract_subgraph(call: Call, arguments: ExtractSubgraph) -> Reply | PagedReply:
    """Show the entities and relations around some entities."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await traversal.extract_subgraph(
            view,
            arguments.names,
            depth=arguments.depth,
            max_nodes=arguments.limit or PAGE_ROWS,
        )
    entities, relations = await graph_out(found.subgraph, entity_out, relation_out)

    def reply(page: list[EntityOut], cut: str | None) -> Reply:
        left_out = {entity.name for entity in entities[len(page) :]}
        page_relations = [relation for relation in relations if not left_out & {relation.from_, relation.to}]
        return Reply(ExtractedGraph(page, page_relations, cut), note=cut_note(cut))

    return cut_short(entities, reply, limit=arguments.limit, cut=found.cut, related_items=len(relations))


EXTRACT_SUBGRAPH = ToolSpec(
    description="Get the entities within a number of relations of the named ones, and the relations among them.",
    toolsets=frozenset({"memory"}),
    result=ExtractedGraph,
    handler=extract_subgraph,
    read_only=True,
)
