"""How errors leave through MCP: one place.

What a tool refuses is a tool error, so that a model reads it and mends its call; the code and the path travel in
`_meta`. What is no tool call is answered by an error of the protocol. Faults of ours are logged whole and told as one
plain sentence.
"""

import structlog
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent

from recollect.errors import ErrorCode, RecollectError

ERROR_META = "dev.recollect/error"
OURS = "Something went wrong on our side. Try again; if it stays, tell an operator."

log = structlog.get_logger(__name__)


def tool_error(error: Exception) -> CallToolResult:
    """An error as the result of a tool call."""
    if isinstance(error, RecollectError):
        return _result(str(error), error.code, error.path)
    log.error("tool failed", exc_info=error)
    return _result(OURS, ErrorCode.INTERNAL, None)


def protocol_error(error: Exception) -> MCPError:
    """An error as the answer to what is no tool call. The SDK would tell any other's own words."""
    if isinstance(error, MCPError):
        return error
    if isinstance(error, RecollectError):
        return MCPError(INVALID_PARAMS, str(error))
    log.error("request failed", exc_info=error)
    return MCPError(INTERNAL_ERROR, OURS)


def error_code(error: Exception) -> str:
    """The stable code of an error, whatever the dialect that tells it."""
    return str(error.code if isinstance(error, RecollectError) else ErrorCode.INTERNAL)


def _result(text: str, code: ErrorCode, path: str | None) -> CallToolResult:
    meta = {"code": str(code)} | ({"path": path} if path else {})
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True, _meta={ERROR_META: meta})
