"""Who may see a page: a signed-in person, as a member of the tenant in the address, by their role there.

A tenant that does not exist, one of others and a suspended one look the same: not found.
"""

from typing import Any

from litestar import Request, Response
from litestar.connection import ASGIConnection
from litestar.enums import ScopeType
from litestar.handlers import BaseRouteHandler
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Send
from litestar.types import Scope as ASGIScope

from recollect.accounts.people.model import Membership, PersonSession
from recollect.accounts.tenants.model import SLUG
from recollect.caller import Scope
from recollect.errors import Conflict, InvalidInput, NotFound, Unauthenticated
from recollect_console.visit import Visit
from recollect_gateway.callers.browser_sessions import active_membership, caller_of, signed_in
from recollect_gateway.management.guards import serve_admitted
from recollect_gateway.requests.urlencoded import FORM
from recollect_gateway.web.forms import TOKEN_FIELD, read_form, require_form_token

AnyRequest = Request[Any, Any, Any]

SCOPE = "console_scope"
ADMIN = {SCOPE: Scope.TENANT_ADMIN}
"""The `opt` of handlers for owners and admins."""

READS = {SCOPE: Scope.MEMORY_READ}
"""The `opt` of a form that changes nothing, such as a dry run."""

SEVERAL = "console_several"
"""In `opt`: fields of the form of which several boxes may be checked."""

TOKEN_HEADER = "x-recollect-form-token"  # noqa: S105 - a header's name
"""Carries the form token of a request whose body is no form, such as a file. No page of others can set it."""

MAX_FORM_BYTES = 256 * 1024
"""Bytes of a form: a text of 10,000 characters has up to 120,000 when it is encoded."""

MAX_AS_OF = 40
_VISIT = "recollect.visit"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class NotSignedIn(Unauthenticated):
    """Nobody is signed in; the browser is led to the sign-in page."""


class VisitMiddleware(ASGIMiddleware):
    """Finds out who visits a page, and serves it as one of their tenant's calls."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: ASGIScope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Serve a page to a member of its tenant; raises NotSignedIn, NotFound or Forbidden."""
        connection: AnyRequest = Request(scope)
        session = await signed_in(connection)
        if session is None:
            raise NotSignedIn("Sign in first.")
        membership = await _membership(connection, session, scope["path_params"]["tenant"])
        visit = _visit(connection, session, membership)
        scope["state"][_VISIT] = visit
        visit.caller.require(_needed_scope(scope["route_handler"], connection.method))
        await serve_admitted(visit.caller, scope, receive, send, next_app)


async def check_form(request: AnyRequest) -> Response[Any] | None:
    """Before a handler: a request that may change something came from our page, and is about the present."""
    if request.method in _SAFE:
        return None
    visit = visit_of(request)
    several = request.route_handler.opt.get(SEVERAL, ())
    if request.headers.get("content-type", "").startswith(FORM):
        visit.form = await read_form(request, several=several, most_bytes=MAX_FORM_BYTES)
    else:
        require_form_token(request, request.headers.get(TOKEN_HEADER, ""))
    visit.form = {name: values for name, values in visit.form.items() if name != TOKEN_FIELD}
    if visit.as_of is not None:
        raise Conflict("The past cannot be changed. Go back to now, and try again.")
    return None


def visit_of(request: ASGIConnection[Any, Any, Any, Any]) -> Visit:
    """The visit of a request."""
    visit: Visit = request.scope["state"][_VISIT]
    return visit


def find_visit(request: ASGIConnection[Any, Any, Any, Any]) -> Visit | None:
    """The visit of a request, if it came so far."""
    return request.scope["state"].get(_VISIT)


async def _membership(connection: AnyRequest, session: PersonSession, tenant: str) -> Membership:
    membership = await active_membership(connection, session, tenant) if SLUG.fullmatch(tenant) else None
    if membership is None:
        raise NotFound("There is no such page, or you are not a member of its organisation.")
    return membership


def _visit(connection: AnyRequest, session: PersonSession, membership: Membership) -> Visit:
    as_of = connection.query_params.get("as_of") or None
    if as_of is not None and (len(as_of) > MAX_AS_OF or not as_of.isprintable()):
        raise InvalidInput("This is neither a revision nor a time", path="as_of")
    caller, services = caller_of(session, membership), connection.app.state.services
    return Visit(connection, session, membership, caller, services, connection.path_params["graph"], as_of)


def _needed_scope(handler: BaseRouteHandler, method: str) -> Scope:
    scope: Scope | None = handler.opt.get(SCOPE)
    return scope or (Scope.MEMORY_READ if method in _SAFE else Scope.MEMORY_WRITE)
