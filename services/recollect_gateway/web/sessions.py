"""The session of a browser, by its cookie."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie
from litestar.response import Redirect

from recollect.accounts.members.model import subject_of
from recollect.accounts.people import service as people
from recollect.accounts.people.model import Browser, IssuedSession, Membership, PersonSession
from recollect.caller import ROLE_SCOPES, Caller
from recollect_gateway.web.forms import cookie_name, own_cookie
from recollect_gateway.web.pages import go_to
from recollect_http.client_addresses import site_of_client

AnyConnection = ASGIConnection[Any, Any, Any, Any]
AnyRequest = Request[Any, Any, Any]
COOKIE = "session"


async def signed_in(request: AnyConnection) -> PersonSession | None:
    """The browser's session, or None. Raises TooManyRequests where too many secrets from the address did not hold."""
    secret = request.cookies.get(cookie_name(request, COOKIE))
    if not secret:
        return None
    session: PersonSession | None = await request.app.state.authenticator.session(request, secret)
    return session


async def member_caller(request: AnyConnection, tenant: str) -> Caller | None:
    """The signed-in person as the Caller of that tenant; None where they are no member, whatever the reason."""
    session = await signed_in(request)
    if session is None:
        return None
    db = request.app.state.db
    membership = await people.find_membership(db, session.person_id, tenant, within=session.confined_to)
    is_active = membership is not None and membership.tenant_status == "active"
    return _caller_of(session, membership) if membership is not None and is_active else None


def _caller_of(session: PersonSession, membership: Membership) -> Caller:
    return Caller(
        membership.tenant_id,
        membership.tenant,
        subject_of(session.person_id),
        ROLE_SCOPES[membership.role],
        role=membership.role,
        plan=membership.plan,
        rates=membership.rates,
    )


def to_sign_in(request: AnyRequest) -> Redirect:
    """Redirect to the sign-in page, which then leads back to this address."""
    query = request.scope["query_string"].decode("latin-1")
    address = request.url.path + (f"?{query}" if query else "")
    return go_to(f"/sign-in?next={quote(address, safe='')}")


def session_cookie(request: AnyRequest, issued: IssuedSession) -> Cookie:
    """The cookie that holds a session's secret, until it ends."""
    return own_cookie(
        request, COOKIE, issued.secret, max_age=int((issued.expires_at - datetime.now(UTC)).total_seconds())
    )


def no_session_cookie(request: AnyRequest) -> Cookie:
    """The cookie that removes the session's cookie."""
    return own_cookie(request, COOKIE, "", max_age=0)


def browser_of(request: AnyRequest) -> Browser:
    """The browser and address from which a sign-in comes."""
    return Browser(request.headers.get("user-agent", ""), site_of_client(request))
