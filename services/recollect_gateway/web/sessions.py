"""Cookies of sessions, the browser of a sign-in, and the way to the sign-in page."""

from urllib.parse import quote

from litestar.datastructures import Cookie
from litestar.response import Redirect

from recollect.accounts.people.model import Browser, IssuedSession
from recollect.accounts.people.sessions import SESSION_LIFETIME
from recollect_gateway.callers.browser_sessions import COOKIE
from recollect_http.client_addresses import site_of_client
from recollect_http.requests import AnyRequest
from recollect_http.web.forms import own_cookie
from recollect_http.web.rendering import go_to


def to_sign_in(request: AnyRequest) -> Redirect:
    """Redirect to the sign-in page, which then leads back to this address."""
    query = request.scope["query_string"].decode("latin-1")
    address = request.url.path + (f"?{query}" if query else "")
    return go_to(f"/sign-in?next={quote(address, safe='')}")


def session_cookie(request: AnyRequest, issued: IssuedSession) -> Cookie:
    """The cookie that holds a session's secret, until it ends."""
    return own_cookie(request, COOKIE, issued.secret, max_age=int(SESSION_LIFETIME.total_seconds()))


def no_session_cookie(request: AnyRequest) -> Cookie:
    """The cookie that removes the session's cookie."""
    return own_cookie(request, COOKIE, "", max_age=0)


def browser_of(request: AnyRequest) -> Browser:
    """The browser and address from which a sign-in comes."""
    return Browser(request.headers.get("user-agent", ""), site_of_client(request))
