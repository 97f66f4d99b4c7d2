"""Renders errors in the envelope of the graph-memory contract, with its codes, for the tools of toolset `facts`."""

from functools import partial

import msgspec
from mcp_types import CallToolResult, TextContent

from recollect.errors import ErrorCode, ErrorKind, RecollectError
from recollect.postgres.driver_errors import DRIVER_ERRORS
from recollect_gateway.mcp_endpoint.errors import tool_error
from recollect_gateway.mcp_endpoint.tool import ToolSpec

CODES = {
    ErrorKind.INVALID: "memory_validation_error",
    ErrorKind.CONFLICT: "memory_validation_error",
    ErrorKind.NOT_FOUND: "memory_not_found",
}
"""Codes by kind; other kinds are `memory_service_error`."""


def render_error(error: Exception) -> CallToolResult:
    """An error as the contract's envelope; our own code and the path are in `_meta`, as for every tool."""
    result = tool_error(error)
    code = _code(error)
    message = "".join(content.text for content in result.content if isinstance(content, TextContent))
    # The contract spells the code's key both ways.
    envelope = {"success": False, "error": message, "error_code": code, "code": code}
    text = msgspec.json.encode(envelope).decode()
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=envelope, is_error=True, _meta=result.meta
    )


facts_tool = partial(ToolSpec, toolsets=frozenset({"facts"}), render_error=render_error)
"""Makes the specification of a tool that only this toolset has."""


def _code(error: Exception) -> str:
    if isinstance(error, DRIVER_ERRORS):
        return "falkordb_error"
    if not isinstance(error, RecollectError):
        return "memory_service_error"
    match error.code:
        case ErrorCode.DATABASE_UNAVAILABLE:
            return "connection_error"
        case ErrorCode.BUSY:
            return "falkordb_error"
    return CODES.get(error.kind, "memory_service_error")
