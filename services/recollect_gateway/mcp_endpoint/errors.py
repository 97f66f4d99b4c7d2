"""The one place where errors become answers of MCP.

A refused tool call gets a tool error, which a model can read to correct its call. Its `_meta` holds the code and the
path, `paths` where there are several, and `retry_after` (seconds) where the call may be sent again. Any other request
gets an error of the protocol. Server errors are logged in full and answered with one plain sentence.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import structlog
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent

from recollect.errors import ErrorCode, InvalidInputs, RecollectError, TooManyRequests, Unavailable

RETRY_SECONDS = 2
"""The number of seconds after which a client may try again, the same as `Retry-After` of the management API."""

ERROR_META = "dev.recollect/error"
OURS = "Something went wrong on our side. Try again; if it happens again, tell an operator."

log = structlog.get_logger(__name__)


def tool_error(error: Exception) -> CallToolResult:
    """An error as the result of a tool call."""
    if isinstance(error, RecollectError):
        paths = [fault.path for fault in _faults(error) if fault.path]
        return _result(str(error), error.code, paths, retry_after=_retry_after(error))
    log.error("tool failed", exc_info=error)
    return _result(OURS, ErrorCode.INTERNAL, [])


def protocol_error(error: Exception) -> MCPError:
    """An error as the answer to a request that is no tool call.

    Unexpected exceptions are replaced, since the SDK would send their texts to the client.
    """
    if isinstance(error, MCPError):
        return error
    if isinstance(error, RecollectError):
        code = INTERNAL_ERROR if isinstance(error, Unavailable) else INVALID_PARAMS
        return MCPError(code, str(error), {"code": str(error.code)})
    log.error("request failed", exc_info=error)
    return MCPError(INTERNAL_ERROR, OURS)


@contextmanager
def as_protocol_errors() -> Iterator[None]:
    """Turn exceptions inside into errors of the protocol."""
    try:
        yield
    except Exception as error:
        raise protocol_error(error) from error


def error_code(error: Exception) -> str:
    """The stable code of an error, which is the same in every dialect."""
    return str(error.code if isinstance(error, RecollectError) else ErrorCode.INTERNAL)


def _faults(error: RecollectError) -> Sequence[RecollectError]:
    return error.faults if isinstance(error, InvalidInputs) else (error,)


def _retry_after(error: RecollectError) -> int | None:
    """The seconds after which the same call may be sent again; None where that would not help."""
    match error:
        case TooManyRequests():
            return error.seconds
        case Unavailable():
            return RETRY_SECONDS
    return None


def _result(text: str, code: ErrorCode, paths: Sequence[str], retry_after: int | None = None) -> CallToolResult:
    meta: dict[str, Any] = {"code": str(code)}
    if retry_after is not None:
        meta["retry_after"] = retry_after
    if paths:
        meta["path"] = paths[0]
    if len(paths) > 1:
        meta["paths"] = list(paths)
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True, _meta={ERROR_META: meta})
