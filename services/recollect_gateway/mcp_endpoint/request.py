"""One request to the MCP endpoint: who sent it, and what it is offered. It travels in the ASGI scope."""

from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext

from recollect.caller import Caller
from recollect_gateway.mcp_endpoint.tool import Selection, ToolSpec
from recollect_gateway.usage import CountedBody

SCOPE_KEY = "recollect.request"
"""Where the endpoint leaves its `McpRequest` in the ASGI scope."""

Context = ServerRequestContext[Any, Any]
"""What the SDK hands to whoever answers."""


@dataclass(frozen=True, slots=True)
class McpRequest:
    """Who sent an HTTP request to the MCP endpoint, what it is offered, and its body as far as it was read."""

    caller: Caller
    selection: Selection
    body: CountedBody

    def offers(self, tool: ToolSpec) -> bool:
        """Whether the tool is listed, and may be called."""
        return self.selection.offers(tool, self.caller)


def request_of(context: Context) -> McpRequest:
    """The request that is answered."""
    assert context.request is not None, "served over HTTP only"
    request: McpRequest = context.request.scope[SCOPE_KEY]
    return request
