"""The ASGI application in front of the SDK: it authenticates callers, and selects the tools that a request is offered.

Addresses: `/mcp` takes the tenant from the credential; `/t/{tenant}/mcp` names the tenant, which must be the
credential's. Each of them is an OAuth resource of its own. `/x/{toolset}` after either, or the headers
`X-MCP-Toolsets` and `X-MCP-Readonly`, choose the tools.
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
from mcp_types import INVALID_REQUEST, PARSE_ERROR, JSONRPCError
from opentelemetry.trace import get_current_span

from recollect.caller import Caller, Scope
from recollect.errors import (
    ErrorCode,
    Forbidden,
    InvalidInput,
    MethodNotAllowed,
    NotFound,
    RecollectError,
    TokenExpired,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from recollect_gateway.callers.admission import Admission
from recollect_gateway.callers.credentials import Authenticator
from recollect_gateway.callers.oauth_resources import Resources
from recollect_gateway.callers.pacing import PacedExchange
from recollect_gateway.calls import Services
from recollect_gateway.mcp_endpoint.prompts_and_resources.subscriptions import listens
from recollect_gateway.mcp_endpoint.request import SCOPE_KEY, McpRequest
from recollect_gateway.mcp_endpoint.server import create_server
from recollect_gateway.mcp_endpoint.server_catalogue import ServerCatalogue
from recollect_gateway.mcp_endpoint.step_up import missing_scope, needs_admin
from recollect_gateway.mcp_endpoint.tool import Selection
from recollect_gateway.mcp_endpoint.transport.accepted import Accepted, accepting_both
from recollect_gateway.mcp_endpoint.transport.messages import checked_message
from recollect_gateway.mcp_endpoint.transport.plain_calls import answer_plainly, plain_call
from recollect_gateway.mcp_endpoint.transport.visitors import is_visitor, to_home_page
from recollect_gateway.process.usage import CountedBody
from recollect_gateway.streaming.streams import Streams
from recollect_http.access_log import note_caller, note_code
from recollect_http.problems import problem_response
from recollect_http.requests import AnyRequest
from recollect_http.requests.bodies import read_body, require_quick_to_parse
from recollect_http.server.disconnects import disconnect_of

_ADDRESS = re.compile(r"^(?:/t/(?P<tenant>[^/]+))?/mcp(?:/x/(?P<toolset>[^/]+))?/?$")

FALSE_WORDS = frozenset({"0", "false", "no", "off"})
"""Values of `X-MCP-Readonly` that mean no. Any other value means yes: a misspelt value must not permit writes."""

_SECURITY_SETTINGS = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""The public edge checks Host and Origin (`public_edge.py`), for every address alike."""


@dataclass(frozen=True, slots=True)
class McpAddress:
    """An MCP address: the tenant and the toolset, where it names them."""

    tenant: str | None
    toolset: str | None


@dataclass(frozen=True, slots=True)
class ReadyRequest:
    """A request that can be answered now: its message is complete and permitted, and its call has a slot.

    `send` sends the answer, and lets calls of other tenants go on between its parts.
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
        catalogue: ServerCatalogue,
    ) -> None:
        self._authenticator, self._admission, self._resources = authenticator, admission, resources
        self._streams, self._catalogue = streams, catalogue
        self._server = create_server(services, catalogue)
        self._keep_alive_seconds = services.settings.stream_keep_alive_seconds
        self.sessions = StreamableHTTPSessionManager(
            self._server,
            stateless=True,
            json_response=False,
            security_settings=_SECURITY_SETTINGS,
            max_request_body_size=services.settings.max_request_bytes,
        )
        self._max_bytes = services.settings.max_request_bytes

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request. Only POST is accepted, since the server sends no messages of its own over GET.

        A person who opens the address in a browser is redirected to the home page.
        """
        request: AnyRequest = Request(scope)
        if is_visitor(request) and _ADDRESS.match(_path_of(request)):
            await to_home_page()(scope, receive, send)
            return
        async with AsyncExitStack() as stack:
            try:
                with anyio.CancelScope() as preparing, disconnect_of(scope).callback(preparing.cancel):
                    ready = await self._prepare(request, receive, send, stack)
                if preparing.cancelled_caught or ready is None:
                    return  # The client left before its message was complete: nobody waits for an answer.
            except RecollectError as error:
                await self._problem(error, request)(scope, receive, send)
            except MCPError as error:
                note_code(scope, str(error.error.code))
                await _error_response(error)(scope, receive, send)
            else:
                await self._answer(ready, scope, receive, send)

    async def _prepare(
        self, request: AnyRequest, receive: Receive, send: Send, stack: AsyncExitStack
    ) -> ReadyRequest | None:
        """Admit the request, read its message and wait for a slot; None if its client left before the message ended.

        The request keeps its permit and its slot until the stack is closed. Raises RecollectError, or MCPError if the
        message is at fault.
        """
        mcp_request = await self._admit(request, body := CountedBody(receive), stack)
        message = await self._read_message(body)
        if message is None:
            return None
        send = await self._wait_for_slot(mcp_request, receive, send, stack)
        message = await read_body(message, checked_message)
        mcp_request = await self._look_up_admin(request, mcp_request, message)
        await self._require_scope(mcp_request, message)
        return ReadyRequest(await self._open_stream(request, mcp_request, message, stack), message, send)

    async def _answer(self, ready: ReadyRequest, scope: AsgiScope, receive: Receive, send_keep_alive: Send) -> None:
        """Answer a call that needs no stream directly, and any other message by the SDK's transport.

        `send_keep_alive` sends at once, without regard to slots: it only keeps the connection open.
        """
        mcp_request, message = ready.request, ready.message
        headers, is_stream = _trimmed(scope["headers"]), mcp_request.stream is not None
        accepted = Accepted.of(headers)
        if refusal := accepted.refusal(listens=is_stream):
            await _error_response(MCPError(INVALID_REQUEST, refusal), 406)(scope, receive, ready.send)
            return
        scope = cast(AsgiScope, {**scope, "headers": accepting_both(headers), SCOPE_KEY: mcp_request})
        send, send_keep_alive = accepted.put(ready.send, send_keep_alive, listens=is_stream)
        send, call = mcp_request.parts.put_back_in(send), None
        if not is_stream:
            call = await read_body(message, lambda body: plain_call(scope, receive, body))
        if call is None:
            await self._answer_by_transport(message, scope, receive, send)
        else:
            seconds = self._keep_alive_seconds
            await answer_plainly(self._server, call, send, send_keep_alive, keep_alive_seconds=seconds)

    async def _wait_for_slot(
        self, mcp_request: McpRequest, receive: Receive, send: Send, stack: AsyncExitStack
    ) -> Send:
        """Wait for a slot, which the call keeps until the stack is closed; return the function that sends its answer.

        A call whose tenant is unknown does not wait.
        """
        if isinstance(mcp_request.sender, Unavailable):
            return send
        slot = await stack.enter_async_context(self._admission.take_slot(mcp_request.sender))
        return PacedExchange(slot, receive, send).send

    async def _open_stream(
        self, request: AnyRequest, mcp_request: McpRequest, message: bytes, stack: AsyncExitStack
    ) -> McpRequest:
        """Open a stream if the request asks for one. Then it no longer counts among its tenant's calls.

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

    async def _answer_by_transport(self, message: bytes, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Hand the message to the SDK's transport, which answers it."""
        # The SDK types ASGI as Starlette does, Litestar more narrowly: the messages are the same.
        await self.sessions.handle_request(cast(Any, scope), cast(Any, _replayed(message, receive)), cast(Any, send))

    async def _read_message(self, body: CountedBody) -> bytes | None:
        """Read a request's body, which is its message; None where the client left before the end.

        Raises TooLarge, or MCPError for a number of too many digits.
        """
        received, more = bytearray(), True
        while more:
            event = await body()
            if event["type"] != "http.request":
                return None
            received += event["body"]
            if len(received) > self._max_bytes:
                raise TooLarge(
                    f"A request may have at most {self._max_bytes} bytes. Send less in one call; POST "
                    "/v1/graphs/{graph}/imports accepts large files",
                    code=ErrorCode.REQUEST_TOO_LARGE,
                )
            more = event["more_body"]
        message = bytes(received)
        try:
            await require_quick_to_parse(message)
        except InvalidInput as error:
            raise MCPError(PARSE_ERROR, f"Parse error: {error}") from None
        return message

    async def _admit(self, request: AnyRequest, body: CountedBody, stack: AsyncExitStack) -> McpRequest:
        """Find out who calls and what the request is offered.

        The call keeps one of its tenant's permits until the stack is closed.
        """
        address = _address_of(request)
        if request.method != "POST":
            raise MethodNotAllowed("MCP is served by POST only: GET opens no stream of server messages.")
        self._admission.raise_if_recently_refused(request.scope)
        with self._admission.expect_caller(request.scope):
            caller = await self._caller(request, address.tenant)
            if isinstance(caller, Caller):
                note_caller(request.scope, caller)
                await stack.enter_async_context(self._admission.admit(request.scope, caller))
        http_span = get_current_span().get_span_context()
        return McpRequest(caller, _selection(self._catalogue, address, request.headers), body, http_span)

    async def _look_up_admin(self, request: AnyRequest, mcp_request: McpRequest, message: bytes) -> McpRequest:
        """Look the caller up again if the call needs an admin, since the remembered caller may no longer be one."""
        sender, tools = mcp_request.sender, self._catalogue.tools
        if isinstance(sender, Unavailable) or not sender.may(Scope.TENANT_ADMIN):
            return mcp_request
        if not await read_body(message, lambda body: needs_admin(sender, body, tools)):
            return mcp_request
        return replace(mcp_request, sender=await self._caller(request, _address_of(request).tenant, remembered=False))

    async def _require_scope(self, request: McpRequest, message: bytes) -> None:
        """Raise InsufficientScope for a call that the token does not allow, but a wider token would (`step_up.py`)."""
        scope = await read_body(message, lambda body: missing_scope(request, body, self._catalogue.tools))
        if scope is not None:
            raise InsufficientScope(scope)

    async def _caller(
        self, request: AnyRequest, tenant: str | None, *, remembered: bool = True
    ) -> Caller | Unavailable:
        """The caller, or the error if the database is unreachable. Each tool answers that error in its own dialect."""
        try:
            resource = self._resources.of(tenant).uri
            return await self._authenticator.caller(request, tenant, resource=resource, remembered=remembered)
        except Unavailable as error:
            return error

    def _problem(self, error: RecollectError, request: AnyRequest) -> ASGIApp:
        """An error as problem details, with a challenge where other credentials would help."""
        problem = problem_response(error, request)
        challenge = self._challenge(error, request)
        if challenge is not None:
            problem.headers["WWW-Authenticate"] = challenge
        return problem.to_asgi_response(None, request)

    def _challenge(self, error: RecollectError, request: AnyRequest) -> str | None:
        if not isinstance(error, Unauthenticated | InsufficientScope):
            return None
        resource = self._resources.asked(request.headers.get("host", ""), _path_of(request))
        if isinstance(error, InsufficientScope):
            return self._resources.challenge(resource, error="insufficient_scope", scopes=[error.scope])
        presented = bool(request.headers.get("authorization"))
        expired = error.message if isinstance(error, TokenExpired) else None
        return self._resources.challenge(resource, error="invalid_token" if presented else None, description=expired)


class InsufficientScope(Forbidden):
    """The token lacks a scope that the call needs, and that the person behind the token may grant."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(f"This client was not granted the scope {scope}. Request it.")
        self.scope = scope


def _replayed(message: bytes, receive: Receive) -> Receive:
    """An ASGI `receive` that first yields a body that was already read, and then what the client sends next."""
    pending: list[ReceiveMessage] = [{"type": "http.request", "body": message, "more_body": False}]

    async def replay() -> ReceiveMessage:
        return pending.pop() if pending else await receive()

    return replay


def _error_response(error: MCPError, status: int = 400) -> ASGIResponse:
    """The response to a request that cannot be answered as a message, with a null `id`."""
    body = JSONRPCError(jsonrpc="2.0", id=None, error=error.error).model_dump_json(by_alias=True, exclude_unset=True)
    return ASGIResponse(body=body.encode(), status_code=status, media_type="application/json")


def _trimmed(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Headers without the white space around their values, which httptools leaves there (RFC 9110, 5.5)."""
    return [(name, value.strip(b" \t")) for name, value in headers]


def _address_of(request: AnyRequest) -> McpAddress:
    """Parse the address of a request; raises NotFound for an address that does not exist."""
    match = _ADDRESS.match(_path_of(request))
    if match is None:
        raise NotFound(
            "There is nothing at this address. MCP is at /mcp and /mcp/x/{toolset}.", code=ErrorCode.NOT_FOUND
        )
    return McpAddress(match["tenant"], match["toolset"])


def _path_of(request: AnyRequest) -> str:
    return request.scope["raw_path"].decode("latin-1").partition("?")[0]


def _selection(catalogue: ServerCatalogue, address: McpAddress, headers: Headers) -> Selection:
    names = address.toolset or headers.get("x-mcp-toolsets") or ""
    chosen = frozenset(name.strip() for name in names.split(",") if name.strip()) or catalogue.default_toolsets
    toolsets = catalogue.toolsets
    if unknown := sorted(chosen - toolsets - {"all"}):
        raise InvalidInput(
            f"Unknown toolset {unknown[0]!r}; the toolsets are: {', '.join(sorted(toolsets))}, all", path="toolset"
        )
    return Selection(toolsets if "all" in chosen else chosen, _is_read_only(headers))


def _is_read_only(headers: Headers) -> bool:
    """Whether tools that write are left out: so if the header is sent and not all of its values mean no."""
    values = headers.getall("x-mcp-readonly", [])
    return any(value.strip(" \t").lower() not in FALSE_WORDS for value in values)
