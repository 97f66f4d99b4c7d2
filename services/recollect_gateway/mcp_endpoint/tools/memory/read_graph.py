"""The tool `read_graph`."""

from recollect.memory import reading
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import KnowledgeGraph, Limit, Offset, knowledge_graph
from recollect_gateway.mcp_endpoint.tools.organize.shapes import FoundGraph, found_graph, organize_tool
from recollect_http.requests.argument_types import Kind


class ReadGraph(ReadArguments, frozen=True):
    """Arguments of `read_graph`."""

    entity_type: Kind | None = None
    offset: Offset = 0
    limit: Limit | None = None


async def read_graph(call: Call, arguments: ReadGraph) -> Reply:
    """Read the graph, all of it as the official server does, or a page."""
    async with call.searching(arguments.graph, arguments.as_of) as view:
        found = await reading.read_graph(
            view,
            kind=arguments.entity_type,
            offset=arguments.offset,
            limit=arguments.limit,
            max_items=call.settings.max_reply_items,
        )
    return await knowledge_graph(found)


async def read_organized_graph(call: Call, arguments: ReadGraph) -> Reply:
    """Read the graph, or a page of it."""
    async with call.searching(arguments.graph, arguments.as_of) as view:
        found = await reading.read_graph(
            view,
            kind=arguments.entity_type,
            offset=arguments.offset,
            limit=arguments.limit,
            max_items=call.settings.max_reply_items,
            archived=False,
        )
    return await found_graph(found)


READ_GRAPH_IN_ORGANIZE = organize_tool(
    name="read_graph",
    description="Read the graph, or a page of it, without archived entities.",
    result=FoundGraph,
    handler=read_organized_graph,
    read_only=True,
    large=True,
)

READ_GRAPH = ToolSpec(
    description="Read the entire knowledge graph, or a page of it.",
    toolsets=frozenset({"memory", "organize"}),
    result=KnowledgeGraph,
    handler=read_graph,
    read_only=True,
    large=True,
    dialects=(READ_GRAPH_IN_ORGANIZE,),
)
