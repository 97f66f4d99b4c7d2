"""Who may see the pages of operators: a browser whose session began with a valid key, which is looked up each time.

The session's cookie is sent by our own pages alone (`SameSite=Strict`), and forms prove that they come from one. The
API takes keys and no cookie.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from litestar import Request, Response
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from recollect.accounts.operator_keys.model import SessionKey
from recollect.errors import Unauthenticated
from recollect_http.access_log import note_operator
from recollect_http.client_addresses import site_of_client
from recollect_http.requests import AnyRequest
from recollect_http.web.forms import random_cookie, read_form
from recollect_operator.identity import KeyIdentities
from recollect_operator.operator_identity import OperatorIdentity

COOKIE = "operator_session"
_FORM = "operator_form"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class NoOperatorSession(Unauthenticated):
    """Nobody is signed in; the browser is led to the sign-in page."""


class SessionMiddleware(ASGIMiddleware):
    """Puts the operator of a browser's session at `request.user`, before anything else of the request is read."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Raises NoOperatorSession, TooManyRequests or Unavailable."""
        request: AnyRequest = Request(scope)
        key = await signed_in(request)
        if key is None:
            raise NoOperatorSession("Sign in first.")
        note_operator(scope, key.actor)
        scope["user"] = OperatorIdentity(key.actor, site_of_client(request), name=key.name)
        scope["auth"] = None
        await next_app(scope, receive, send)


async def signed_in(request: AnyRequest) -> SessionKey | None:
    """The key of the browser's session, None where there is no valid one."""
    secret, identities = random_cookie(request, COOKIE), request.app.state.identify
    assert isinstance(identities, KeyIdentities)
    if secret is None:
        return None
    try:
        return await identities.find_session(secret, site_of_client(request))
    except Unauthenticated:
        return None


async def check_form(request: AnyRequest) -> Response[Any] | None:
    """Before a handler: a request that may change something is a form of our page."""
    if request.method not in _SAFE:
        request.scope["state"][_FORM] = await read_form(request)
    return None


def field(request: AnyRequest, name: str) -> str:
    """The value of a field of the form that was sent, without the spaces around it; empty where there is none."""
    form: Mapping[str, Sequence[str]] = request.scope["state"].get(_FORM, {})
    return form.get(name, [""])[0].strip()
