"""Tool calls that need no stream, from clients of 2025-11-25 and older: one request, and one JSON answer.

The SDK's stateless transport opens a session for each call, with memory streams, tasks and server-sent events, which
takes more than twice what the call itself takes there (measured; docs/lab/call-costs.md). A client that asks for no
progress is sent nothing but the answer, so its call goes to the SDK's dispatch for single exchanges (`serve_one`),
which checks, traces and shapes it as it does calls of 2026-07-28. Any other message goes to the transport.

If an answer takes long, the response becomes server-sent events that begin with empty comments: proxies close a
connection that is silent.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import msgspec
from litestar.types import Receive, Send
from litestar.types import Scope as AsgiScope
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_one
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.dispatcher import CallOptions, as_request_id
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data, progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import DEFAULT_NEGOTIATED_VERSION, INTERNAL_ERROR, ErrorData, RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic_core import from_json
from starlette.requests import Request

from recollect_gateway.streaming import server_sent_events
from recollect_http.server.disconnects import disconnect_of

METHOD = "tools/call"
JSON = "application/json"

_TRANSPORT = TransportContext(kind="streamable-http", can_send_request=False)

_EVENT_HEADERS = [
    (name.lower().encode(), value.encode())
    for name, value in {"Content-Type": server_sent_events.MEDIA_TYPE, **server_sent_events.HEADERS}.items()
]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlainCall:
    """A request to call a tool, whose client expects nothing but the answer."""

    scope: AsgiScope
    request: Request
    id: RequestId
    params: Mapping[str, Any]
    version: str


@dataclass(slots=True)
class _Exchange:
    """A request as the SDK's dispatch sees it, which can send the client nothing but the answer."""

    request_id: RequestId
    message_metadata: ServerMessageMetadata
    transport: TransportContext = _TRANSPORT
    can_send_request: bool = False
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Raise NoBackChannelError, since the client's answer could not come back."""
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Do nothing, since the client expects no notifications."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Do nothing, since the client did not ask for progress."""


def plain_call(scope: AsgiScope, receive: Receive, message: bytes) -> PlainCall | None:
    """Parse a JSON-RPC message as a plain call; None where the transport must handle it."""
    # The SDK types ASGI as Starlette does, Litestar more narrowly: the messages are the same.
    request = Request(cast(Any, scope), cast(Any, receive))
    version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER, DEFAULT_NEGOTIATED_VERSION)
    sends_json = request.headers.get("content-type", "").partition(";")[0].strip() == JSON
    if version not in HANDSHAKE_PROTOCOL_VERSIONS or not (sends_json and all(check_accept_headers(request))):
        return None
    body = from_json(message)
    if not isinstance(body, dict) or body.get("method") != METHOD:
        return None
    request_id, params = as_request_id(body.get("id")), body.get("params")
    if request_id is None or not isinstance(params, dict) or progress_token_from_params(params) is not None:
        return None
    return PlainCall(scope, request, request_id, params, version)


async def answer_plainly(
    server: Server[Any], call: PlainCall, send: Send, send_keep_alive: Send, *, keep_alive_seconds: float
) -> None:
    """Answer a call, unless its client leaves before.

    While the call is at work, an empty comment goes to `send_keep_alive` every `keep_alive_seconds`.
    """
    with anyio.CancelScope() as serving, disconnect_of(call.scope).callback(serving.cancel):
        keep_alive = _KeepAlive(send_keep_alive, keep_alive_seconds)
        try:
            response = await _respond(server, call)
        finally:
            await keep_alive.stop()
        await (_send_event if keep_alive.has_begun else _send_json)(send, response)


class _KeepAlive:
    """Sends empty comments while an answer takes long, so that no proxy closes the connection."""

    def __init__(self, send: Send, seconds: float) -> None:
        self._send, self._seconds = send, seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)
        self._sending: asyncio.Task[None] | None = None
        self._is_over = asyncio.Event()

    @property
    def has_begun(self) -> bool:
        """Whether the response has begun as server-sent events. Then the answer must be sent as one of them."""
        return self._sending is not None

    async def stop(self) -> None:
        """Send no more comments. One that is being sent is sent to its end, since the answer follows it."""
        self._timer.cancel()
        self._is_over.set()
        if self._sending is not None:
            await self._sending

    def _begin(self) -> None:
        self._sending = asyncio.create_task(self._send_comments())

    async def _send_comments(self) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": _EVENT_HEADERS})
        while not self._is_over.is_set():
            await self._send({"type": "http.response.body", "body": server_sent_events.KEEP_ALIVE, "more_body": True})
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_over.wait(), self._seconds)


async def _respond(server: Server[Any], call: PlainCall) -> dict[str, Any]:
    """The JSON-RPC response: a result, or an error that discloses nothing of the service's internals."""
    exchange = _Exchange(call.id, ServerMessageMetadata(request_context=call.request))
    connection = Connection.from_envelope(call.version, None, None)
    try:
        result = await serve_one(server, exchange, METHOD, call.params, connection=connection, lifespan_state={})
    except Exception as error:
        error_data = handler_exception_to_error_data(error)
        if error_data is None:
            logger.exception("call failed outside of its tool")
            error_data = ErrorData(code=INTERNAL_ERROR, message="Internal server error")
        return {"jsonrpc": "2.0", "id": call.id, "error": error_data.model_dump(mode="json", exclude_none=True)}
    return {"jsonrpc": "2.0", "id": call.id, "result": result}


async def _send_json(send: Send, response: dict[str, Any]) -> None:
    body = msgspec.json.encode(response)
    headers = [(b"content-type", JSON.encode()), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _send_event(send: Send, response: dict[str, Any]) -> None:
    await send(
        {"type": "http.response.body", "body": server_sent_events.event("message", response), "more_body": False}
    )
