"""Who is signed in, by the cookie of the browser."""

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
from recollect_gateway.addresses import site_of_client
from recollect_gateway.web.forms import cookie_name, own_cookie
from recollect_gateway.web.pages import go_to

AnyConnection = ASGIConnection[Any, Any, Any, Any]
AnyRequest = Request[Any, Any, Any]
COOKIE = "session"


async def signed_in(request: AnyConnection) -> PersonSession | None:
    """Who is signed in, or None. Raises TooManyRequests where too many sessions of the address did not hold."""
    secret = request.cookies.get(cookie_name(request, COOKIE))
    if not secret:
        return None
    session: PersonSession | None = await request.app.state.authenticator.session(request, secret)
    return session


async def member_caller(request: AnyConnection, tenant: str) -> Caller | None:
    """The Caller who is signed in, as a member of that tenant; None for anybody else, whatever the reason."""
    session = await signed_in(request)
    if session is None:
        return None
    db = request.app.state.db
    found = await people.find_membership(db, session.person_id, tenant, within=session.confined_to)
    return None if found is None or found.tenant_status != "active" else _member(session, found)


def _member(session: PersonSession, membership: Membership) -> Caller:
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
    """Sign in, then come back to this address."""
    query = request.scope["query_string"].decode("latin-1")
    here = request.url.path + (f"?{query}" if query else "")
    return go_to(f"/sign-in?next={quote(here, safe='')}")


def session_cookie(request: AnyRequest, issued: IssuedSession) -> Cookie:
    """The cookie that holds a session's secret, until it ends."""
    return own_cookie(
        request, COOKIE, issued.secret, max_age=int((issued.expires_at - datetime.now(UTC)).total_seconds())
    )


def no_session_cookie(request: AnyRequest) -> Cookie:
    """What takes that cookie away."""
    return own_cookie(request, COOKIE, "", max_age=0)


def browser_of(request: AnyRequest) -> Browser:
    """Where a sign-in comes from."""
    return Browser(request.headers.get("user-agent", ""), site_of_client(request))
