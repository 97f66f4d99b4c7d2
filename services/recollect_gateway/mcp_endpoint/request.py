"""One request to the MCP endpoint: who sent it, and what it is offered. It travels in the ASGI scope."""

from dataclasses import dataclass, field
from typing import Any

from mcp.server.context import ServerRequestContext
from opentelemetry.trace import SpanContext

from recollect.caller import Caller
from recollect.errors import Unavailable
from recollect_gateway.mcp_endpoint.encoded_parts import EncodedParts
from recollect_gateway.mcp_endpoint.tool import Selection, ToolSpec
from recollect_gateway.process.usage import CountedBody
from recollect_gateway.streaming.streams import Stream

SCOPE_KEY = "recollect.request"
"""Where the endpoint leaves its `McpRequest` in the ASGI scope."""

Context = ServerRequestContext[Any, Any]
"""What the SDK passes to a handler."""


@dataclass(frozen=True, slots=True)
class McpRequest:
    """Who sent an HTTP request to the MCP endpoint, what it is offered, and how much of its body was read.

    `sender` is an error if the database was unreachable, and the caller is unknown: the answer has nothing of a tenant.
    `http_span`: the span of the HTTP request, where there is one. `stream`: for a request whose answer stays open.
    `parts`: the encoded parts of the answer; the SDK handles stand-ins for them.
    """

    sender: Caller | Unavailable
    selection: Selection
    body: CountedBody
    http_span: SpanContext | None = None
    stream: Stream | None = None
    parts: EncodedParts = field(default_factory=EncodedParts)

    @property
    def caller(self) -> Caller:
        """The caller; raises Unavailable if the caller is unknown."""
        if isinstance(self.sender, Unavailable):
            raise self.sender
        return self.sender

    def offers(self, tool: ToolSpec) -> bool:
        """Whether the tool is listed, and may be called; raises Unavailable."""
        return self.selection.offers(tool, self.caller)

    def answers(self, tool: ToolSpec) -> bool:
        """Whether a call of the tool is answered. If the caller is unknown, the answer is an error."""
        return self.selection.selects(tool) if isinstance(self.sender, Unavailable) else self.offers(tool)

    def dialect_of(self, tool: ToolSpec) -> ToolSpec:
        """The tool in the dialect of the selected toolsets."""
        is_unknown = isinstance(self.sender, Unavailable)
        return tool.dialect_for(self.selection.toolsets if is_unknown else self.selection.chosen(self.caller))


def request_of(context: Context) -> McpRequest:
    """The request that a handler answers."""
    assert context.request is not None, "served over HTTP only"
    request: McpRequest = context.request.scope[SCOPE_KEY]
    return request
