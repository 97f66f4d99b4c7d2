"""`recollect stdio`: bridge a local MCP client to a gateway.

Each request has an HTTP exchange of its own, since the gateway keeps no session: progress arrives on it, and a request
is cancelled by ending it. Messages are read only for the headers of HTTP: the revision, the method and the name.
"""

import logging
import re
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import anyio
import httpx2
from anyio.abc import TaskGroup
from cyclopts import Parameter
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from recollect.errors import InvalidInput, RecollectError
from recollect.text.control_characters import printable
from recollect.text.lone_surrogates import replace_lone_surrogates
from recollect_cli.gateway import ApiKey, Url, find_address, is_loopback, refusal

GRACE_SECONDS = 1.5
"""How long requests may take to end once the client has closed standard input; clients kill after two seconds."""
PROBLEM = "application/problem+json"
TIMEOUT = httpx2.Timeout(60.0, connect=10.0, read=None)
"""There is no limit on the duration of a call: the client may cancel it."""

Toolset = Annotated[str | None, Parameter(help="Toolset to offer, such as memory. Default: that of the gateway.")]


def stdio(*, toolset: Toolset = None, url: Url = None, api_key: ApiKey = None) -> None:
    """Connect a local MCP client to a gateway over standard input and output."""
    address = find_address(url, api_key)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="recollect: %(message)s")
    try:
        anyio.run(_serve, _endpoint(address.mcp_url, toolset), address.api_key)
    except* KeyboardInterrupt:
        sys.exit(130)
    except* (BrokenPipeError, anyio.BrokenResourceError):  # the client has gone
        sys.exit(1)


class Bridge:
    """Passes the messages of one client on to a gateway, and the answers to `send`."""

    def __init__(self, url: str, http: httpx2.AsyncClient, send: Any) -> None:
        self._url, self._http, self._send = url, http, send
        self._version: str | None = None
        self._negotiated = anyio.Event()
        self._negotiated.set()  # No `initialize` is under way for which a request would have to wait.
        self._exchanges: dict[RequestId, anyio.CancelScope] = {}

    async def run(self, incoming: Any) -> None:
        """Pass on messages until there are no more, then let open exchanges end."""
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                async for message in incoming:
                    await self._accept(message, tasks)
                scope.deadline = anyio.current_time() + GRACE_SECONDS

    async def _accept(self, incoming: SessionMessage | Exception, tasks: TaskGroup) -> None:
        if isinstance(incoming, Exception):
            message = _repaired(incoming)
            if message is None:
                request_id = _id_of(incoming)
                code = PARSE_ERROR if request_id is None else INVALID_REQUEST
                await self._refuse(request_id, code, "Not a JSON-RPC message")
                return
            incoming = SessionMessage(message)
        match incoming.message:
            case JSONRPCRequest(method="initialize") as request:
                self._negotiated = anyio.Event()
                tasks.start_soon(self._negotiate, request, self._scope_for(request.id), self._negotiated)
            case JSONRPCRequest() as request:
                tasks.start_soon(self._relay, request, self._scope_for(request.id), self._negotiated)
            case JSONRPCNotification(method="notifications/cancelled") as notification:
                self._cancel(notification)
            case message:
                tasks.start_soon(self._notify, message, self._negotiated)

    def _scope_for(self, request_id: RequestId) -> anyio.CancelScope:
        """The scope of a new exchange; an older exchange with the same id ends."""
        if older_scope := self._exchanges.get(request_id):
            older_scope.cancel()
        self._exchanges[request_id] = anyio.CancelScope()
        return self._exchanges[request_id]

    def _cancel(self, notification: JSONRPCNotification) -> None:
        request_id = (notification.params or {}).get("requestId")
        if scope := self._exchanges.get(request_id) if isinstance(request_id, str | int) else None:
            scope.cancel()

    async def _negotiate(self, request: JSONRPCRequest, scope: anyio.CancelScope, negotiated: anyio.Event) -> None:
        """Pass on `initialize`, and let later messages go on: they carry the revision of its answer."""
        try:
            await self._relay(request, scope)
        finally:
            negotiated.set()

    async def _relay(
        self, request: JSONRPCRequest, scope: anyio.CancelScope, negotiated: anyio.Event | None = None
    ) -> None:
        """Pass on a request, once its revision is `negotiated`, and all messages that come back on its exchange."""
        try:
            with scope:
                await _wait_for_version(request, negotiated)
                await self._exchange(request)
        except* (RecollectError, httpx2.HTTPError, httpx2.InvalidURL) as errors:
            await self._refuse(request.id, INTERNAL_ERROR, _error_message(next(_leaves(errors)), self._url))
        finally:
            if self._exchanges.get(request.id) is scope:
                del self._exchanges[request.id]

    async def _exchange(self, request: JSONRPCRequest) -> None:
        async with self._connected() as (answers, outgoing):
            await outgoing.send(self._with_headers(request))
            async for answer in answers:
                if isinstance(answer, Exception):
                    raise answer
                self._note_version(request, answer.message)
                await self._send(SessionMessage(answer.message))
                if isinstance(answer.message, JSONRPCResponse | JSONRPCError):
                    return

    async def _notify(self, message: JSONRPCMessage, negotiated: anyio.Event) -> None:
        """Pass on a message that has no answer."""
        await _wait_for_version(message, negotiated)
        try:
            async with self._connected() as (answers, outgoing):
                await outgoing.send(self._with_headers(message))
                await outgoing.aclose()
                async for _ in answers:  # Ends once the message is sent.
                    pass
        except* (RecollectError, httpx2.HTTPError) as errors:
            logging.warning("%s", printable(_error_message(next(_leaves(errors)), self._url)))

    def _connected(self) -> Any:
        return streamable_http_client(self._url, http_client=self._http, max_sse_event_size=None)

    def _with_headers(self, message: JSONRPCMessage) -> SessionMessage:
        """A message with its headers: of the revision that it names, else of the negotiated one."""
        params = getattr(message, "params", None) or {}
        method = getattr(message, "method", "")
        own_version = _own_version(message)
        version = own_version or self._version
        headers = {MCP_PROTOCOL_VERSION_HEADER: str(version)} if version and method != "initialize" else {}
        if own_version:
            headers[MCP_METHOD_HEADER] = method
            name = params.get(NAME_BEARING_METHODS.get(method, ""))
            if isinstance(name, str):
                headers[MCP_NAME_HEADER] = encode_header_value(name)
        return SessionMessage(message, ClientMessageMetadata(headers=headers))

    def _note_version(self, request: JSONRPCRequest, answer: JSONRPCMessage) -> None:
        if request.method == "initialize" and isinstance(answer, JSONRPCResponse):
            self._version = answer.result.get("protocolVersion")

    async def _refuse(self, request_id: RequestId | None, code: int, message: str) -> None:
        error = JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))
        await self._send(SessionMessage(error))


def _repaired(error: Exception) -> JSONRPCMessage | None:
    """The message of a line whose only fault are halves of characters: the gateway names the arguments with them."""
    line = next(_inputs(error), None)
    if not isinstance(line, str):
        return None
    try:
        return jsonrpc_message_adapter.validate_json(replace_lone_surrogates(line.encode()), by_name=False)
    except ValidationError:
        return None


def _id_of(error: Exception) -> RequestId | None:
    """The id of a line that is JSON and no message of JSON-RPC, where it has one."""
    ids = (given["id"] for given in _inputs(error) if isinstance(given, dict) and "id" in given)
    return next((i for i in ids if isinstance(i, str | int) and not isinstance(i, bool)), None)


def _inputs(error: Exception) -> Iterator[Any]:
    """What the SDK could not read: a line that is no JSON, or the parts of one that is."""
    if isinstance(error, ValidationError):
        yield from (fault["input"] for fault in error.errors(include_url=False, include_context=False))


def _own_version(message: JSONRPCMessage) -> Any:
    """The revision that a message names itself; None where the negotiated one applies."""
    meta = (getattr(message, "params", None) or {}).get("_meta")
    return meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None


async def _wait_for_version(message: JSONRPCMessage, negotiated: anyio.Event | None) -> None:
    """Wait until the revision of a message is known: not at all where the message names it."""
    if negotiated is not None and not _own_version(message):
        await negotiated.wait()


async def _serve(url: str, api_key: str) -> None:
    http = httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {api_key}"},
        timeout=TIMEOUT,
        trust_env=not is_loopback(url),
        event_hooks={"response": [_raise_refusal]},
    )
    async with http, stdio_server() as (incoming, outgoing), outgoing:
        await Bridge(url, http, outgoing.send).run(incoming)


async def _raise_refusal(response: httpx2.Response) -> None:
    """Raise the error of a request that the gateway refuses before MCP sees it, such as for its key; others pass."""
    if response.headers.get("content-type", "").split(";")[0] == PROBLEM:
        await response.aread()
        raise refusal(response)


def _endpoint(mcp_url: str, toolset: str | None) -> str:
    """The address at which the toolset is offered; raises InvalidInput."""
    if not mcp_url.startswith(("http://", "https://")):
        raise InvalidInput(
            f"{mcp_url!r} is not the address of a gateway, such as https://memory.example.com", path="url"
        )
    return mcp_url if toolset is None else re.sub(r"/x/[^/]+$", "", mcp_url) + f"/x/{toolset}"


def _error_message(error: BaseException, url: str) -> str:
    if isinstance(error, RecollectError):
        return str(error)
    return f"The gateway at {url} does not answer ({str(error) or type(error).__name__})."


def _leaves(group: BaseExceptionGroup[Any]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
