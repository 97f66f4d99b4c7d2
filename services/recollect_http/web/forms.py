"""Forms of our pages: proof that a form was sent from our page, and its fields.

A page sets a random cookie and puts the keyed hash of it in its forms. Another site can neither read the cookie nor
make the hash; the public edge refuses its requests by their `Origin`, too.
"""

import hmac
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal

from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie

from recollect.errors import Forbidden
from recollect_http.requests import AnyRequest
from recollect_http.requests.urlencoded import MAX_FORM_BYTES, form_parameters
from recollect_http.web.cookies import cookie_name, is_secure

AnyConnection = ASGIConnection[Any, Any, Any, Any]
SameSite = Literal["lax", "strict"]

TOKEN_FIELD = "form_token"  # noqa: S105 - a field's name
MAX_FIELDS = 500
MAX_COOKIE = 100
_COOKIE_VALUE = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_COOKIE}}}")
"""The output of `secrets.token_urlsafe`: any other value is none of this server's, and is not sent back."""

_STALE = "This form is too old, or was not sent from our page. Go back, reload the page, and send it again."


def own_cookie(
    request: AnyRequest, name: str, value: str, *, max_age: int | None = None, same_site: SameSite = "lax"
) -> Cookie:
    """A cookie that scripts cannot read and other sites' forms do not send; if `strict`, nor do links from there."""
    return Cookie(
        key=cookie_name(request, name),
        value=value,
        path="/",
        max_age=max_age,
        secure=is_secure(request),
        httponly=True,
        samesite=same_site,
    )


def random_cookie(request: AnyConnection, name: str) -> str | None:
    """The random value of a cookie of the browser; None where it has none of this server's."""
    value = request.cookies.get(cookie_name(request, name), "")
    return value if _COOKIE_VALUE.fullmatch(value) else None


def form_cookie(request: AnyRequest) -> Cookie:
    """The cookie to which forms are bound: the browser's own, or a new one."""
    return own_cookie(request, "form", random_cookie(request, "form") or secrets.token_urlsafe(32))


def form_token(pepper: bytes, cookie: str) -> str:
    """The token of forms that belong to this cookie."""
    return hmac.new(pepper, b"form:" + cookie.encode(), sha256).hexdigest()


async def read_form(
    request: AnyRequest, *, several: Collection[str] = (), most_bytes: int = MAX_FORM_BYTES
) -> dict[str, list[str]]:
    """The fields of a form that was sent from our page, each with its value; those of `several` with all their values.

    Raises Forbidden for a form from elsewhere, InvalidInput for a body that is no form or too long.
    """
    fields = await form_parameters(request, limit=MAX_FIELDS, several=several, most_bytes=most_bytes)
    require_form_token(request, fields.get(TOKEN_FIELD, [""])[0])
    return fields


def require_form_token(request: AnyRequest, token: str) -> None:
    """Raise Forbidden unless the token belongs to the browser's cookie."""
    cookie = random_cookie(request, "form")
    if cookie is None or not hmac.compare_digest(form_token(request.app.state.pepper, cookie).encode(), token.encode()):
        raise Forbidden(_STALE)


def field(fields: Mapping[str, Sequence[str]], name: str) -> str:
    """The one value of a field, or an empty text."""
    return fields.get(name, [""])[0]
