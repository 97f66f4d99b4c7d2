"""What a POST to the endpoint must hold: one JSON-RPC message. Of other bodies the SDK tells in its library's words."""

from typing import Any, Literal

import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST, PARSE_ERROR
from msgspec import UNSET, Raw, Struct, UnsetType
from pydantic_core import from_json

NO_JSON = "Parse error: the body is not JSON, is nested too deep, or holds half a character (such as \\ud83d alone)"
NO_MESSAGE = (
    'Invalid request: the body must be one JSON-RPC 2.0 message, {"jsonrpc": "2.0", "id": 1, "method": "…", '
    '"params": {…}}. Batches are not taken'
)


class _Request(Struct):
    """A request, or without `id` a notification."""

    jsonrpc: Literal["2.0"]
    method: str
    id: int | str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET


class _Result(Struct):
    """What a client answers to a request of the server's."""

    jsonrpc: Literal["2.0"]
    id: int | str
    result: dict[str, Any]


class _Fault(Struct):
    """What went wrong with such a request."""

    code: int
    message: str


class _Error(Struct):
    """A client's answer that something went wrong."""

    jsonrpc: Literal["2.0"]
    id: int | str | None
    error: _Fault


def check_message(body: bytes) -> None:
    """Raise MCPError for a body that is not one message of JSON-RPC. What its parameters hold is left to the SDK."""
    try:
        from_json(body)  # As the SDK reads it, which goes less deep, and takes NaN, which is no JSON.
        msgspec.json.decode(body, type=Raw)
        if not any(_is(body, kind) for kind in (_Request, _Result, _Error)):
            raise MCPError(INVALID_REQUEST, NO_MESSAGE)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise MCPError(PARSE_ERROR, NO_JSON) from None


def _is(body: bytes, kind: type[Struct]) -> bool:
    try:
        message = msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        return False
    params = getattr(message, "params", UNSET)
    return params is UNSET or bytes(params).startswith((b"{", b"null"))
