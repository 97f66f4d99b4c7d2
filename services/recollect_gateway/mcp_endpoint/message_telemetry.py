"""Names spans and records metrics of messages by OpenTelemetry's conventions for MCP, without any text of a client.

The SDK opens a span around this, named after whatever the client sent. Here the span gets names that the protocol and
the catalogue know, the tenant, and a link to the HTTP request where a `traceparent` in `_meta` gave it another parent.
"""

import time
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from opentelemetry.trace import Span, get_current_span

from recollect.caller import Caller
from recollect.errors import ErrorCode
from recollect.telemetry.metrics import record_operation
from recollect_gateway.mcp_endpoint.prompts_and_resources.prompts import PROMPTS
from recollect_gateway.mcp_endpoint.request import McpRequest, request_of
from recollect_gateway.mcp_endpoint.tools import TOOLS
from recollect_http.server.tracing import UNKNOWN

CALL = "tools/call"

METHODS = frozenset(
    {
        "completion/complete",
        "initialize",
        "logging/setLevel",
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/progress",
        "notifications/roots/list_changed",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "server/discover",
        "subscriptions/listen",
        "tasks/cancel",
        "tasks/get",
        "tasks/list",
        "tasks/result",
        "tasks/update",
        "tools/list",
        CALL,
    }
)
"""The methods that some revision of MCP lets a client send."""


async def measure_message(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Describe a message's span, and measure the message. Middleware of the SDK's server, inside its tracing."""
    method = ctx.method if ctx.method in METHODS else UNKNOWN
    describe_span(get_current_span(), method, ctx)
    if method == CALL:  # Measured in `server.py`, where the code of a tool's error is known.
        return await call_next(ctx)
    started, code = time.perf_counter(), "cancelled"
    try:
        result = await call_next(ctx)
        code = ""
        return result
    except MCPError as error:
        data = error.error.data
        code = str(data["code"]) if isinstance(data, dict) and "code" in data else str(error.error.code)
        raise
    except Exception:
        code = str(ErrorCode.INTERNAL)
        raise
    finally:
        record_operation(method, time.perf_counter() - started, code or None)


def describe_span(span: Span, method: str, context: ServerRequestContext[Any, Any]) -> None:
    """Name the SDK's span, and set its attributes and link."""
    if not span.is_recording():
        return
    target, attribute = _target(method, context.params)
    span.update_name(f"{method} {target}" if target else method)
    span.set_attribute("mcp.method.name", method)
    if attribute is not None:
        span.set_attribute(attribute, target or UNKNOWN)
    if isinstance(context.request_id, str):  # A client may write anything into a text; numbers are kept.
        span.set_attribute("jsonrpc.request.id", UNKNOWN)
    span.set_attribute("network.protocol.name", "http")
    if context.request is not None:
        _add_tenant_and_link(span, request_of(context))


def _add_tenant_and_link(span: Span, request: McpRequest) -> None:
    if isinstance(request.sender, Caller):
        span.set_attribute("recollect.tenant.id", str(request.sender.tenant_id))
    parent = getattr(span, "parent", None)
    if request.http_span is not None and request.http_span.is_valid and parent != request.http_span:
        span.add_link(request.http_span)


def _target(method: str, params: Any) -> tuple[str | None, str | None]:
    """The known tool or prompt that a message names, and the span attribute for it."""
    name = params.get("name") if params else None
    if method == CALL:
        return (name if isinstance(name, str) and name in TOOLS else None), "gen_ai.tool.name"
    if method == "prompts/get":
        return (name if isinstance(name, str) and name in PROMPTS else None), "gen_ai.prompt.name"
    return None, None
