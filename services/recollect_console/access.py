"""Who may see a page: a signed-in person, as a member of the tenant in the address, by their role there.

A tenant that does not exist, one of others and a suspended one look the same: not found.
"""

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from litestar import Request, Response
from litestar.connection import ASGIConnection
from litestar.datastructures import UploadFile
from litestar.enums import ScopeType
from litestar.handlers import BaseRouteHandler
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Send
from litestar.types import Scope as ASGIScope

from recollect.accounts.people.model import Membership, PersonSession
from recollect.accounts.tenants.model import SLUG
from recollect.caller import Caller, Scope
from recollect.errors import Conflict, CredentialEnded, Forbidden, InvalidInput, NotFound, Unauthenticated
from recollect_console.visit import SentFile, Visit
from recollect_gateway.callers.browser_sessions import active_membership, caller_of, signed_in
from recollect_gateway.management.guards import serve_admitted
from recollect_gateway.streaming.streams import Renew
from recollect_http.requests import AnyRequest
from recollect_http.requests.urlencoded import FORM
from recollect_http.web.forms import TOKEN_FIELD, read_form, require_form_token

T = TypeVar("T")

SCOPE = "console_scope"
ADMIN = {SCOPE: Scope.TENANT_ADMIN}
"""The `opt` of handlers for owners and admins."""

READS = {SCOPE: Scope.MEMORY_READ}
"""The `opt` of a form that changes nothing, such as a dry run."""

WRITES = {SCOPE: Scope.MEMORY_WRITE}
"""The `opt` of a page that tries a change, and rolls it back."""

SEVERAL = "console_several"
"""In `opt`: fields of the form of which several boxes may be checked."""

TOKEN_HEADER = "x-recollect-form-token"  # noqa: S105 - a header's name
"""Carries the form token of a request whose body is no form, such as a file. No page of others can set it."""

FILE = "console_file"
"""In `opt`: whether the form has a file, and so is `multipart/form-data`. It is bounded as any request is."""

MULTIPART = "multipart/form-data"

MAX_FORM_BYTES = 256 * 1024
"""Bytes of a form: a text of 10,000 characters has up to 120,000 when it is encoded."""

MAX_AS_OF = 40
_WHO_MAY = {
    Scope.MEMORY_READ: "readers, members, admins and owners",
    Scope.MEMORY_WRITE: "members, admins and owners",
    Scope.TENANT_ADMIN: "admins and owners",
}
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
        _require_role(membership, visit.caller, _needed_scope(scope["route_handler"], connection.method))
        await serve_admitted(visit.caller, scope, receive, send, next_app)


async def check_form(request: AnyRequest) -> Response[Any] | None:
    """Before a handler: a request that may change something came from our page, and is about the present."""
    if request.method in _SAFE:
        return None
    visit = visit_of(request)
    several = request.route_handler.opt.get(SEVERAL, ())
    if request.headers.get("content-type", "").startswith(FORM):
        visit.form = await read_form(request, several=several, most_bytes=MAX_FORM_BYTES)
    elif FILE in request.route_handler.opt and request.headers.get("content-type", "").startswith(MULTIPART):
        visit.form, visit.files = await _read_multipart(request)
    else:
        require_form_token(request, request.headers.get(TOKEN_HEADER, ""))
    visit.form = {name: values for name, values in visit.form.items() if name != TOKEN_FIELD}
    if visit.as_of is not None:
        raise Conflict("The past cannot be changed. Go back to now, and try again.")
    return None


async def _read_multipart(request: AnyRequest) -> tuple[dict[str, list[str]], dict[str, SentFile]]:
    """The fields and the files of a form of our page. Raises Forbidden for a form from elsewhere."""
    form = await request.form()
    texts = {name: value for name, value in form.items() if isinstance(value, str)}
    require_form_token(request, texts.get(TOKEN_FIELD, ""))
    files = {
        name: SentFile(value.filename, value.content_type, await value.read())
        for name, value in form.items()
        if isinstance(value, UploadFile) and value.filename
    }
    return {name: [value] for name, value in texts.items()}, files


def visit_of(request: ASGIConnection[Any, Any, Any, Any]) -> Visit:
    """The visit of a request."""
    visit: Visit = request.scope["state"][_VISIT]
    return visit


def find_visit(request: ASGIConnection[Any, Any, Any, Any]) -> Visit | None:
    """The visit of a request, if it came so far."""
    return request.scope["state"].get(_VISIT)


def renewal_of(visit: Visit) -> Renew:
    """A function that looks up anew who visits, for an answer that stays open.

    It raises CredentialEnded once the session or the membership has ended, and Forbidden once the role reads nothing.
    """

    async def renew() -> Caller:
        session = await signed_in(visit.request)
        found = None if session is None else await active_membership(visit.request, session, visit.caller.tenant)
        if session is None or found is None:
            raise CredentialEnded("The session or the membership has ended.")
        caller = caller_of(session, found)
        caller.require(Scope.MEMORY_READ)
        return caller

    return renew


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


async def while_member(visit: Visit, parts: AsyncIterator[T]) -> AsyncIterator[T]:
    """The parts of what is sent or received, as long as the person is signed in and a member with the same rights."""
    handler, connection = visit.request.route_handler, visit.request
    async for part in parts:
        session = await signed_in(connection)
        if session is None:
            raise NotSignedIn("Sign in first.")
        membership = await _membership(connection, session, visit.caller.tenant)
        _require_role(membership, caller_of(session, membership), _needed_scope(handler, connection.method))
        yield part


def _require_role(membership: Membership, caller: Caller, needed: Scope) -> None:
    """Raise Forbidden, as a sentence for people, unless the role has that scope."""
    if needed not in caller.scopes:
        raise Forbidden(
            f"Only {_WHO_MAY[needed]} of this organisation may do this. Your role here is {membership.role}."
        )


def _needed_scope(handler: BaseRouteHandler, method: str) -> Scope:
    scope: Scope | None = handler.opt.get(SCOPE)
    return scope or (Scope.MEMORY_READ if method in _SAFE else Scope.MEMORY_WRITE)
