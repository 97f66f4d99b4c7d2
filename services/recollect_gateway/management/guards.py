"""Guards of the management API: who calls, and whether they may.

A key may be confined to some toolsets, and no route may do for it what none of their tools does. So each route under
/v1 says in its `opt` where it belongs: it `mirrors` tools, `belongs_to` a toolset, or goes `BY_SCOPE` alone. That also
gives the route its scope (`needed_scope`), which is checked before anything else of the request is read.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.enums import ScopeType
from litestar.handlers import BaseRouteHandler
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Send
from litestar.types import Scope as ASGIScope

from recollect.caller import ROLE_SCOPES, Caller, Role, Scope
from recollect_gateway.callers.admission import Admission
from recollect_gateway.callers.credentials import TOKENS_OPT, Authenticator
from recollect_gateway.callers.pacing import PacedExchange
from recollect_gateway.mcp_endpoint.tools import TOOLS
from recollect_gateway.streaming.streams import OPEN_STREAM, Renew, Stream, Streams
from recollect_http.access_log import note_caller
from recollect_http.requests import AnyRequest

T = TypeVar("T")

CallerRequest = Request[Caller, Any, State]
"""A request with a credential that was accepted."""

TOOLSETS_OPT = "toolsets"
SCOPE_OPT = "scope"
_PERMIT = "recollect.place"
"""Key in the state of a request's scope: the stack that holds its permit among its tenant's calls."""

BY_SCOPE: dict[str, Any] = {TOOLSETS_OPT: None}
"""The `opt` of a route that manages what no tool does, such as keys: its scope alone decides who may use it."""


def mirrors(*tools: str, tokens: bool = False) -> dict[str, Any]:
    """The `opt` of a route that does what each of these tools does: a credential with a toolset of one may use it.

    `tokens`: an access token that may use these tools may use the route, too. Only for routes that read and write
    memories: what administers a tenant takes no token that a person gave to an agent (ADR 25).
    """
    toolsets = [toolset for tool in tools for toolset in TOOLS[tool].toolsets]
    (scope,) = {TOOLS[tool].scope for tool in tools}
    return belongs_to(*toolsets, scope=scope) | ({TOKENS_OPT: True} if tokens else {})


def belongs_to(*toolsets: str, scope: Scope = Scope.MEMORY_READ) -> dict[str, Any]:
    """The `opt` of a route that mirrors no tool, for credentials with one of these toolsets and the scope."""
    return {TOOLSETS_OPT: frozenset(toolsets), SCOPE_OPT: scope}


def needed_scope(handler: BaseRouteHandler) -> Scope | None:
    """The scope that a route requires, as its description says; None: any credential of the tenant is enough."""
    if requires_admin in [getattr(guard, "func", guard) for guard in handler.resolve_guards()]:
        return Scope.TENANT_ADMIN
    scope: Scope | None = handler.opt.get(SCOPE_OPT)
    return scope


def takes_tokens(handler: BaseRouteHandler) -> bool:
    """Whether access tokens are valid at a route."""
    return bool(handler.opt.get(TOKENS_OPT))


def min_role(scope: Scope | None) -> Role:
    """The lowest role that has this scope; of None, the lowest of all."""
    ascending = (Role.READER, Role.MEMBER, Role.ADMIN, Role.OWNER)
    return next(role for role in ascending if scope is None or scope in ROLE_SCOPES[role])


class CallerMiddleware(ASGIMiddleware):
    """Puts the Caller of each request at `request.user`, and serves the request, if admitted, when its turn comes."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: ASGIScope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Resolve the credential; raises Unauthenticated, TooManyRequests or Unavailable."""
        state = scope["litestar_app"].state
        authenticator: Authenticator = state.authenticator
        admission: Admission = state.admission
        admission.raise_if_recently_refused(scope)
        with admission.expect_caller(scope):
            caller = await authenticator.caller_of_route(ASGIConnection(scope), remembered=_may_be_remembered(scope))
        await serve_admitted(caller, scope, receive, send, next_app)


async def serve_admitted(caller: Caller, scope: ASGIScope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
    """Serve a request of a known caller, if admitted, when its turn comes. Raises TooManyRequests or Unavailable."""
    admission: Admission = scope["litestar_app"].state.admission
    scope["user"], scope["auth"] = caller, None
    note_caller(scope, caller)
    async with AsyncExitStack() as permit:
        await permit.enter_async_context(admission.admit(scope, caller))
        slot = await permit.enter_async_context(admission.take_slot(caller))
        scope["state"][_PERMIT] = permit
        paced = PacedExchange(slot, receive, send)
        await next_app(scope, paced.receive, paced.send)


def _may_be_remembered(scope: ASGIScope) -> bool:
    """Whether a route does what tools do: callers who manage keys, members or the tenant are looked up each time."""
    handler = scope["route_handler"]
    return handler.opt.get(TOOLSETS_OPT) is not None and needed_scope(handler) is not Scope.TENANT_ADMIN


async def open_stream(request: CallerRequest, renew: Renew) -> Stream:
    """Open a stream as the answer, and release the request's permit; raises TooManyRequests."""
    streams: Streams = request.app.state.streams
    permit: AsyncExitStack = request.scope["state"][_PERMIT]
    await permit.aclose()
    request.scope["state"][OPEN_STREAM] = True
    return permit.enter_context(streams.opened(request.user, renew, "sse"))


def caller_renewal(request: CallerRequest) -> Renew:
    """A function that looks up a request's caller anew; it raises whatever would refuse the request now."""
    authenticator: Authenticator = request.app.state.authenticator
    handler = request.route_handler

    async def renew() -> Caller:
        caller = await authenticator.caller_of_route(request)
        toolsets, scope = handler.opt.get(TOOLSETS_OPT, frozenset()), needed_scope(handler)
        if toolsets is not None:
            caller.require_toolset(toolsets)
        if scope is not None:
            caller.require(scope)
        return caller

    return renew


def while_authenticated(request: AnyRequest, parts: AsyncIterator[T]) -> AsyncIterator[T]:
    """The parts of what is sent or received, as long as the request's credential holds; then Unauthenticated."""
    authenticator: Authenticator = request.app.state.authenticator
    return authenticator.while_valid(request, parts)


def within_toolsets(connection: ASGIConnection[Any, Caller, Any, Any], handler: BaseRouteHandler) -> None:
    """Admit credentials whose allow-list, if any, names a toolset of the route. A route without `opt` has none."""
    toolsets = handler.opt.get(TOOLSETS_OPT, frozenset())
    if toolsets is not None and not _asks_for_methods(connection):
        connection.user.require_toolset(toolsets)


def within_scope(connection: ASGIConnection[Any, Caller, Any, Any], handler: BaseRouteHandler) -> None:
    """Admit credentials that have the scope in the route's description."""
    scope = needed_scope(handler)
    if scope is not None and not _asks_for_methods(connection):
        connection.user.require(scope)


def requires_admin(connection: ASGIConnection[Any, Caller, Any, Any], _: BaseRouteHandler) -> None:
    """Admit credentials with the scope `tenant:admin`."""
    if not _asks_for_methods(connection):
        connection.user.require(Scope.TENANT_ADMIN)


def _asks_for_methods(connection: ASGIConnection[Any, Caller, Any, Any]) -> bool:
    """Whether this is `OPTIONS`: any credential gets its answer, which lists the methods of an address and no more."""
    return connection.scope.get("method") == "OPTIONS"
