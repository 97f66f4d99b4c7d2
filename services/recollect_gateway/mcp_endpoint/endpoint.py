"""The ASGI application in front of the SDK: it makes the Caller, and decides what the request is offered.

Addresses: `/mcp` takes the tenant from the credential; `/t/{tenant}/mcp` is the same with the tenant in the address,
which must be the credential's, and each is an OAuth resource of its own. `/x/{toolset}` after either, or the headers
`X-MCP-Toolsets` and `X-MCP-Readonly`, choose what is offered.
"""

import re
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, cast

import anyio
from litestar import Request
from litestar.datastructures import Headers
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp, Receive, ReceiveMessage, Send
from litestar.types import Scope as AsgiScope
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import PARSE_ERROR, JSONRPCError
from opentelemetry.trace import get_current_span

from recollect.caller import Caller, Scope
from recollect.errors import (
    ErrorCode,
    Forbidden,
    InvalidInput,
    MethodNotAllowed,
    NotFound,
    RecollectError,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from recollect_gateway.access_log import note_caller, note_code
from recollect_gateway.admission import Admission
from recollect_gateway.bodies import read_body, require_quick_to_parse
from recollect_gateway.calls import Services
from recollect_gateway.credentials import Authenticator
from recollect_gateway.departures import departure_of
from recollect_gateway.errors import problem_response
from recollect_gateway.mcp_endpoint.messages import check_message
from recollect_gateway.mcp_endpoint.offer import Offer
from recollect_gateway.mcp_endpoint.plain_calls import answer_plainly, plain_call
from recollect_gateway.mcp_endpoint.request import SCOPE_KEY, McpRequest
from recollect_gateway.mcp_endpoint.server import create_server
from recollect_gateway.mcp_endpoint.step_up import missing_scope, needs_admin
from recollect_gateway.mcp_endpoint.subscriptions import listens
from recollect_gateway.mcp_endpoint.tool import Selection
from recollect_gateway.oauth.resources import Resources
from recollect_gateway.pacing import PacedExchange
from recollect_gateway.streams import Streams
from recollect_gateway.usage import CountedBody

_ADDRESS = re.compile(r"^(?:/t/(?P<tenant>[^/]+))?/mcp(?:/x/(?P<toolset>[^/]+))?/?$")

FALSE_WORDS = frozenset({"0", "false", "no", "off"})
"""Values of `X-MCP-Readonly` that mean no. Whatever else it says means yes: a mistake must not let anything write."""

_CHECKED_BEFORE = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""Host and Origin are the public edge's to check (`public_edge.py`), for every address alike."""

AnyRequest = Request[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class McpAddress:
    """What an MCP address says: the tenant and the toolset, where it names them."""

    tenant: str | None
    toolset: str | None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that is to be answered: its message is whole, and its caller may send it and has a turn.

    `send` is the way of the answer, which gives way to other tenants.
    """

    request: McpRequest
    message: bytes
    send: Send


class McpEndpoint:
    """Authenticates each request and hands it to the SDK."""

    def __init__(
        self,
        services: Services,
        authenticator: Authenticator,
        admission: Admission,
        resources: Resources,
        streams: Streams,
        offer: Offer,
    ) -> None:
        self._authenticator, self._admission, self._resources = authenticator, admission, resources
        self._streams, self._offer = streams, offer
        self._server = create_server(services, offer)
        self._silent_seconds = services.settings.stream_keep_alive_seconds
        self.sessions = StreamableHTTPSessionManager(
            self._server,
            stateless=True,
            json_response=False,
            security_settings=_CHECKED_BEFORE,
            max_request_body_size=services.settings.max_request_bytes,
        )
        self._max_bytes = services.settings.max_request_bytes

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request; only POST, since no server-sent requests wait on a GET."""
        request: AnyRequest = Request(scope)
        async with AsyncExitStack() as stack:
            try:
                with anyio.CancelScope() as arriving, departure_of(scope).ends(arriving.cancel):
                    arrival = await self._arrive(request, receive, send, stack)
                if arriving.cancelled_caught or arrival is None:
                    return  # The client left before its message was whole: nobody waits for an answer.
            except RecollectError as error:
                await self._problem(error, request)(scope, receive, send)
            except MCPError as error:
                note_code(scope, str(error.error.code))
                await _refusal(error)(scope, receive, send)
            else:
                await self._answer(arrival, scope, receive, send)

    async def _arrive(self, request: AnyRequest, receive: Receive, send: Send, stack: AsyncExitStack) -> Arrival | None:
        """The request once it is admitted, read and has its turn; None where its client left before it was whole.

        It keeps its place and its turn until the stack is left. Raises RecollectError, or MCPError for its message.
        """
        mcp_request = await self._admit(request, body := CountedBody(receive), stack)
        message = await self._read_message(body)
        if message is None:
            return None
        send = await self._wait_for_turn(mcp_request, receive, send, stack)
        await read_body(message, check_message)
        mcp_request = await self._look_up_admin(request, mcp_request, message)
        await self._require_scope(mcp_request, message)
        return Arrival(await self._open_stream(request, mcp_request, message, stack), message, send)

    async def _answer(self, arrival: Arrival, scope: AsgiScope, receive: Receive, send_silence: Send) -> None:
        """Answer a call that needs no stream at once, and have the SDK's transport answer all else.

        `send_silence` takes no turns: to tell the client that the connection is there is no part of the work.
        """
        mcp_request, message = arrival.request, arrival.message
        scope = cast(AsgiScope, {**scope, "headers": _trimmed(scope["headers"]), SCOPE_KEY: mcp_request})
        send, call = mcp_request.parts.put_back_in(arrival.send), None
        if mcp_request.stream is None:
            call = await read_body(message, lambda body: plain_call(scope, receive, body))
        if call is None:
            await self._hand_over(message, scope, receive, send)
        else:
            seconds = self._silent_seconds
            await answer_plainly(self._server, call, send, send_silence, silent_seconds=seconds)

    async def _wait_for_turn(
        self, mcp_request: McpRequest, receive: Receive, send: Send, stack: AsyncExitStack
    ) -> Send:
        """Wait for the turn of a call whose tenant is known, until the stack is left; the way of its answer."""
        if isinstance(mcp_request.sender, Unavailable):
            return send
        slot = await stack.enter_async_context(self._admission.at_work(mcp_request.sender))
        return PacedExchange(slot, receive, send).send

    async def _open_stream(
        self, request: AnyRequest, mcp_request: McpRequest, message: bytes, stack: AsyncExitStack
    ) -> McpRequest:
        """The request with its stream, if it asks for one: then it gives its place among the calls back.

        Raises TooManyRequests.
        """
        if isinstance(mcp_request.sender, Unavailable) or not await read_body(message, listens):
            return mcp_request
        tenant = _address_of(request).tenant
        resource = self._resources.of(tenant).uri

        async def renew() -> Caller:
            return await self._authenticator.caller(request, tenant, resource=resource)

        await stack.aclose()
        return replace(mcp_request, stream=stack.enter_context(self._streams.opened(mcp_request.sender, renew, "mcp")))

    async def _hand_over(self, message: bytes, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Have the SDK's transport answer."""
        # The SDK types ASGI as Starlette does, Litestar more narrowly: the messages are the same.
        await self.sessions.handle_request(cast(Any, scope), cast(Any, _replayed(message, receive)), cast(Any, send))

    async def _read_message(self, body: CountedBody) -> bytes | None:
        """The message that is a request's body; None where the client left before its end.

        Raises TooLarge, or MCPError for too long a number.
        """
        whole, more = bytearray(), True
        while more:
            part = await body()
            if part["type"] != "http.request":
                return None
            whole += part["body"]
            if len(whole) > self._max_bytes:
                raise TooLarge(
                    f"A request takes {self._max_bytes} bytes at most. Send less in one call; "
                    "POST /v1/graphs/{graph}/imports takes a large file",
                    code=ErrorCode.REQUEST_TOO_LARGE,
                )
            more = part["more_body"]
        message = bytes(whole)
        try:
            await require_quick_to_parse(message)
        except InvalidInput as error:
            raise MCPError(PARSE_ERROR, f"Parse error: {error}") from None
        return message

    async def _admit(self, request: AnyRequest, body: CountedBody, stack: AsyncExitStack) -> McpRequest:
        """Who asks for what; a caller has its place among those of its tenant until the stack is left."""
        address = _address_of(request)
        if request.method != "POST":
            raise MethodNotAllowed("MCP is served by POST; no server-sent requests wait on a GET.")
        self._admission.require_unrefused(request.scope)
        with self._admission.expected(request.scope):
            caller = await self._caller(request, address.tenant)
            if isinstance(caller, Caller):
                note_caller(request.scope, caller)
                await stack.enter_async_context(self._admission.admitted(request.scope, caller))
        http_span = get_current_span().get_span_context()
        return McpRequest(caller, _selection(self._offer, address, request.headers), body, http_span)

    async def _look_up_admin(self, request: AnyRequest, mcp_request: McpRequest, message: bytes) -> McpRequest:
        """The request, of a caller who is not remembered but looked up where the call is an admin's."""
        sender, tools = mcp_request.sender, self._offer.tools
        if isinstance(sender, Unavailable) or not sender.may(Scope.TENANT_ADMIN):
            return mcp_request
        if not await read_body(message, lambda body: needs_admin(sender, body, tools)):
            return mcp_request
        return replace(mcp_request, sender=await self._caller(request, _address_of(request).tenant, remembered=False))

    async def _require_scope(self, request: McpRequest, message: bytes) -> None:
        """Raise InsufficientScope for a call of a tool that a step-up would allow."""
        scope = await read_body(message, lambda body: missing_scope(request, body, self._offer.tools))
        if scope is not None:
            raise InsufficientScope(scope)

    async def _caller(
        self, request: AnyRequest, tenant: str | None, *, remembered: bool = True
    ) -> Caller | Unavailable:
        """Who calls, or why that cannot be found out now: each tool says so in its dialect, and does nothing else."""
        try:
            resource = self._resources.of(tenant).uri
            return await self._authenticator.caller(request, tenant, resource=resource, remembered=remembered)
        except Unavailable as error:
            return error

    def _problem(self, error: RecollectError, request: AnyRequest) -> ASGIApp:
        """An error as problem details; where other credentials would help, a challenge says which."""
        problem = problem_response(error, request)
        challenge = self._challenge(error, request)
        if challenge is not None:
            problem.headers["WWW-Authenticate"] = challenge
        return problem.to_asgi_response(None, request)

    def _challenge(self, error: RecollectError, request: AnyRequest) -> str | None:
        if not isinstance(error, Unauthenticated | InsufficientScope):
            return None
        tenant = _address_of(request).tenant
        if isinstance(error, InsufficientScope):
            return self._resources.challenge(tenant, error="insufficient_scope", scopes=[error.scope])
        presented = bool(request.headers.get("authorization"))
        return self._resources.challenge(tenant, error="invalid_token" if presented else None)


class InsufficientScope(Forbidden):
    """The token is too narrow for the call, and its person may widen it."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(f"This client was not given the scope {scope}. Ask for it.")
        self.scope = scope


def _replayed(message: bytes, receive: Receive) -> Receive:
    """What gives a body that was read already, then what the client sends next."""
    waiting: list[ReceiveMessage] = [{"type": "http.request", "body": message, "more_body": False}]

    async def again() -> ReceiveMessage:
        return waiting.pop() if waiting else await receive()

    return again


def _refusal(error: MCPError) -> ASGIResponse:
    """The answer to a body that is no message, whose id nobody knows."""
    said = JSONRPCError(jsonrpc="2.0", id=None, error=error.error).model_dump_json(by_alias=True, exclude_unset=True)
    return ASGIResponse(body=said.encode(), status_code=400, media_type="application/json")


def _trimmed(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Headers without the white space around their values, which httptools leaves there (RFC 9110, 5.5)."""
    return [(name, value.strip(b" \t")) for name, value in headers]


def _address_of(request: AnyRequest) -> McpAddress:
    """What the address of a request says; raises NotFound where there is nothing at it."""
    path = request.scope["raw_path"].decode("latin-1")
    match = _ADDRESS.match(path.split("?", 1)[0])
    if match is None:
        raise NotFound(
            "There is nothing at this address. MCP is at /mcp and /mcp/x/{toolset}.", code=ErrorCode.NOT_FOUND
        )
    return McpAddress(match["tenant"], match["toolset"])


def _selection(offer: Offer, address: McpAddress, headers: Headers) -> Selection:
    named = address.toolset or headers.get("x-mcp-toolsets") or ""
    chosen = frozenset(name.strip() for name in named.split(",") if name.strip()) or offer.default_toolsets
    toolsets = offer.toolsets
    if unknown := sorted(chosen - toolsets - {"all"}):
        raise InvalidInput(
            f"Unknown toolset {unknown[0]!r}; there are: {', '.join(sorted(toolsets))}, all", path="toolset"
        )
    return Selection(toolsets if "all" in chosen else chosen, _reads_only(headers))


def _reads_only(headers: Headers) -> bool:
    """Whether tools that write are left out: unless the header is missing, or says plainly that they are not."""
    said = headers.getall("x-mcp-readonly", [])
    return any(word.strip(" \t").lower() not in FALSE_WORDS for word in said)
