"""Who is signed in, by the cookie of the browser."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from litestar import Request
from litestar.datastructures import Cookie
from litestar.response import Redirect

from recollect.accounts.people import service as people
from recollect.accounts.people.model import Browser, IssuedSession, PersonSession
from recollect_gateway.addresses import site_of
from recollect_gateway.web.forms import cookie_name, own_cookie
from recollect_gateway.web.pages import go_to

AnyRequest = Request[Any, Any, Any]
COOKIE = "session"


async def signed_in(request: AnyRequest) -> PersonSession | None:
    """Who is signed in, or None."""
    secret = request.cookies.get(cookie_name(request, COOKIE), "")
    return await people.session_of(request.app.state.db, secret, pepper=request.app.state.pepper)


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
    client = request.client
    return Browser(request.headers.get("user-agent", ""), site_of(client.host if client else None))
