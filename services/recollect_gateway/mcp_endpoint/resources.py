"""Resources: the knowledge graph under the official memory server's address, offered with the toolset `memory`."""

import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, ReadResourceResult, Resource, TextResourceContents

from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.catalogue import TOOLS
from recollect_gateway.mcp_endpoint.request import McpRequest
from recollect_gateway.mcp_endpoint.tool import bounded
from recollect_gateway.mcp_endpoint.toolsets.memory import graph

KNOWLEDGE_GRAPH = Resource(
    uri="memory://knowledge-graph",
    name="knowledge-graph",
    title="Knowledge Graph",
    description="The full knowledge graph with all entities and relations",
    mime_type="application/json",
)


def reads_officially(request: McpRequest) -> bool:
    """Whether a request is offered the tool that reads the graph in the official shape."""
    tool = TOOLS["read_graph"]
    return request.offers(tool) and request.dialect_of(tool) is tool


def unknown(uri: str) -> MCPError:
    """The error of a resource that is not there, or not offered: the two look alike."""
    return MCPError(INVALID_PARAMS, f"Unknown resource: {uri}", {"uri": uri})


async def read(call: Call, uri: str) -> ReadResourceResult:
    """The credential's default graph as JSON; raises MCPError for another address, TooLarge beyond a reply's bounds."""
    if uri != KNOWLEDGE_GRAPH.uri:
        raise unknown(uri)
    reply = await graph.read_graph(call, graph.ReadGraph())
    text = msgspec.json.format(bounded(reply.structured, call.settings.max_reply_bytes), indent=2).decode()
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=KNOWLEDGE_GRAPH.mime_type, text=text)])
