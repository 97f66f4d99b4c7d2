"""Checks that a POST to the endpoint holds one JSON-RPC message.

For any other body, the SDK would answer in the words of the library that parses it.
"""

from typing import Any, Literal

import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST, PARSE_ERROR
from msgspec import UNSET, Raw, Struct, UnsetType
from pydantic_core import from_json

from recollect.text.lone_surrogates import replace_lone_surrogates

NO_JSON = "Parse error: the body is not JSON, or is nested too deeply"
NO_MESSAGE = (
    'Invalid request: the body must be one JSON-RPC 2.0 message, {"jsonrpc": "2.0", "id": 1, "method": "…", "params": '
    "{…}}. Batches are not accepted"
)


class _Request(Struct):
    """A request, or a notification where there is no `id`."""

    jsonrpc: Literal["2.0"]
    method: str
    id: int | str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET


class _Result(Struct):
    """A client's successful response to a request of the server."""

    jsonrpc: Literal["2.0"]
    id: int | str
    result: dict[str, Any]


class _ErrorBody(Struct):
    """What an error response says went wrong."""

    code: int
    message: str


class _Error(Struct):
    """A client's error response to a request of the server."""

    jsonrpc: Literal["2.0"]
    id: int | str | None
    error: _ErrorBody


def checked_message(body: bytes) -> bytes:
    """The body, if it is one JSON-RPC message; raises MCPError otherwise. The SDK checks the parameters.

    Lone surrogates are replaced by NUL, so that whoever reads the arguments refuses the one that holds it.
    """
    try:
        _require_json(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        body = _repaired(body)
    if not any(_matches(body, type_) for type_ in (_Request, _Result, _Error)):
        raise MCPError(INVALID_REQUEST, NO_MESSAGE)
    return body


def _require_json(body: bytes) -> None:
    from_json(body)  # The SDK's parser: it takes less depth than the next one, but NaN, which is no JSON.
    msgspec.json.decode(body, type=Raw)


def _repaired(body: bytes) -> bytes:
    """A body that is not JSON, with its lone surrogates replaced; raises MCPError if it has another fault."""
    try:
        _require_json(repaired := replace_lone_surrogates(body))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise MCPError(PARSE_ERROR, NO_JSON) from None
    return repaired


def _matches(body: bytes, type_: type[Struct]) -> bool:
    try:
        message = msgspec.json.decode(body, type=type_)
    except msgspec.ValidationError:
        return False
    params = getattr(message, "params", UNSET)
    return params is UNSET or bytes(params).startswith((b"{", b"null"))
