"""The tool `open_nodes`."""

from typing import Annotated

from msgspec import Meta

from recollect.memory import reading
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH, KnowledgeGraph, knowledge_graph
from recollect_gateway.mcp_endpoint.tools.organize.shapes import FoundGraph, found_graph, organize_tool
from recollect_http.requests.argument_types import ObservationsOffset, SoughtName


class OpenNodes(ReadArguments, frozen=True):
    """Arguments of `open_nodes`."""

    names: Annotated[list[SoughtName], Meta(max_length=MAX_BATCH, description="An array of entity names to retrieve")]
    observations_offset: ObservationsOffset = 0


async def open_nodes(call: Call, arguments: OpenNodes) -> Reply:
    """Open entities by name."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await reading.open_nodes(view, arguments.names, skipped=arguments.observations_offset)
    return await knowledge_graph(found, arguments.observations_offset)


async def open_organized_nodes(call: Call, arguments: OpenNodes) -> Reply:
    """Open entities by name, archived ones too."""
    async with call.searching(arguments.graph, arguments.as_of) as view:
        found = await reading.open_nodes(view, arguments.names, skipped=arguments.observations_offset)
    return await found_graph(found, arguments.observations_offset)


OPEN_NODES_IN_ORGANIZE = organize_tool(
    name="open_nodes",
    description="Open entities by name. Archived entities are included, and marked as archived.",
    result=FoundGraph,
    handler=open_organized_nodes,
    read_only=True,
    large=True,
)

OPEN_NODES = ToolSpec(
    description="Open specific nodes in the knowledge graph by their names.",
    toolsets=frozenset({"memory", "organize"}),
    result=KnowledgeGraph,
    handler=open_nodes,
    read_only=True,
    large=True,
    dialects=(OPEN_NODES_IN_ORGANIZE,),
)
