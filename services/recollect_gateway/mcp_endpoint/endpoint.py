"""The ASGI application in front of the SDK: it makes the Caller, and decides what the request is offered.

Addresses: `/mcp` takes the tenant from the credential; `/t/{tenant}/mcp` is the same with the tenant in the address,
which must be the credential's. `/x/{toolset}` after either, or the headers `X-MCP-Toolsets` and `X-MCP-Readonly`,
choose what is offered.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from litestar import Request
from litestar.datastructures import Headers
from litestar.types import Receive, Scope, Send
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from recollect.errors import ErrorCode, InvalidInput, MethodNotAllowed, NotFound, RecollectError
from recollect.settings import Settings
from recollect_gateway.credentials import Authenticator
from recollect_gateway.errors import problem_response
from recollect_gateway.mcp_endpoint.catalogue import DEFAULT_TOOLSETS, TOOLSETS
from recollect_gateway.mcp_endpoint.request import SCOPE_KEY, McpRequest
from recollect_gateway.mcp_endpoint.server import create_server
from recollect_gateway.mcp_endpoint.tool import Selection, Services
from recollect_gateway.usage import CountedBody

_ADDRESS = re.compile(r"^(?:/t/(?P<tenant>[^/]+))?/mcp(?:/x/(?P<toolset>[^/]+))?/?$")


AnyRequest = Request[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Address:
    """What an MCP address says: the tenant and the toolset, where it names them."""

    tenant: str | None
    toolset: str | None


class McpEndpoint:
    """Authenticates each request and hands it to the SDK."""

    def __init__(self, services: Services, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        self.sessions = StreamableHTTPSessionManager(
            create_server(services),
            stateless=True,
            json_response=False,
            security_settings=transport_security(services.settings),
            max_request_body_size=services.settings.max_request_bytes,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request; only POST, since no server-sent requests wait on a GET."""
        request: AnyRequest = Request(scope)
        try:
            mcp_request = await self._admit(request, body := CountedBody(receive))
        except RecollectError as error:
            await problem_response(error, request).to_asgi_response(None, request)(scope, receive, send)
            return
        trimmed = {**scope, "headers": _trimmed(scope["headers"]), SCOPE_KEY: mcp_request}
        # The SDK types ASGI as Starlette does, Litestar more narrowly: the messages are the same.
        await self.sessions.handle_request(trimmed, cast(Any, body), cast(Any, send))

    async def _admit(self, request: AnyRequest, body: CountedBody) -> McpRequest:
        address = _address(request.scope["raw_path"].decode("latin-1"))
        if request.method != "POST":
            raise MethodNotAllowed("MCP is served by POST; no server-sent requests wait on a GET.")
        caller = await self._authenticator.caller(request.headers, address.tenant)
        return McpRequest(caller, _selection(address, request.headers), body)


def transport_security(settings: Settings) -> TransportSecuritySettings:
    """The SDK's guard against DNS rebinding, by Host header."""
    open_to_all = "*" in settings.allowed_hosts
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=not open_to_all,
        allowed_hosts=settings.allowed_hosts,
        allowed_origins=[f"{scheme}://{host}" for host in settings.allowed_hosts for scheme in ("http", "https")],
    )


def _trimmed(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Headers without the white space around their values, which httptools leaves there (RFC 9110, 5.5)."""
    return [(name, value.strip(b" \t")) for name, value in headers]


def _address(path: str) -> Address:
    match = _ADDRESS.match(path.split("?", 1)[0])
    if match is None:
        raise NotFound(
            "There is nothing at this address. MCP is at /mcp and /mcp/x/{toolset}.", code=ErrorCode.NOT_FOUND
        )
    return Address(match["tenant"], match["toolset"])


def _selection(address: Address, headers: Headers) -> Selection:
    named = address.toolset or headers.get("x-mcp-toolsets") or ""
    chosen = frozenset(name.strip() for name in named.split(",") if name.strip()) or DEFAULT_TOOLSETS
    if unknown := sorted(chosen - TOOLSETS - {"all"}):
        raise InvalidInput(
            f"Unknown toolset {unknown[0]!r}; there are: {', '.join(sorted(TOOLSETS))}, all", path="toolset"
        )
    read_only = (headers.get("x-mcp-readonly") or "").lower() in ("1", "true", "yes")
    return Selection(TOOLSETS if "all" in chosen else chosen, read_only)
