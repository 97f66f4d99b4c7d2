"""Pages, rendered from templates. The public edge keeps them from being framed, cached and scripted."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment
from litestar import Response

from recollect.accounts.passkeys.model import PasskeySite
from recollect_gateway.web.browser_names import browser_name
from recollect_http.problems import TITLES
from recollect_http.requests import AnyRequest
from recollect_http.server.hosts import Origins
from recollect_http.server.public_edge import page_policy
from recollect_http.web.forms import form_cookie, form_token
from recollect_http.web.rendering import error_text, template_environment
from recollect_http.web.styles import asset_address

PACKAGE = "recollect_gateway.web"
"""The package of the gateway's own templates and assets."""

ASSETS = ("passkeys.js",)
"""Its assets, in addition to those that all pages share."""

CONSOLE = "/app"
"""Where a page leads that has no other address to go on to: the console, which also says that a person is a member
nowhere."""

ACCOUNT = "/account"
"""One's own account."""

MAX_NEXT = 4_000
"""Characters of an address to go on to."""


def page(
    request: AnyRequest, template: str, *, status: int = 200, form_targets: Sequence[str] = (), **context: Any
) -> Response[str]:
    """A page. `form_targets`: origins in addition to ours to which the answer to its form may redirect."""
    cookie = form_cookie(request)
    html = (
        _templates()
        .get_template(template)
        .render(**context, form_token=form_token(request.app.state.pepper, cookie.value or ""))
    )
    return Response(
        html,
        status_code=status,
        media_type="text/html",
        cookies=[cookie],
        headers={"Content-Security-Policy": page_policy(form_targets=form_targets)} if form_targets else None,
    )


def plain_page(template: str, **context: Any) -> Response[str]:
    """A page that is the same for everybody: it has no form, so it sets no cookie."""
    return Response(_templates().get_template(template).render(**context), media_type="text/html")


def error_page(request: AnyRequest, error: Exception) -> Response[str]:
    """Any error of a page as a page."""
    status, text = error_text(request, error)
    return page(request, "message.html", status=status, title=TITLES.get(status, "Error"), text=text)


def passkey_site(request: AnyRequest) -> PasskeySite:
    """The site for which passkeys are made on this page."""
    origins: Origins = request.app.state.resources.origins
    return PasskeySite.of(origins.page_at(request.headers.get("host", "")))


def passkey_context(request: AnyRequest) -> dict[str, Any]:
    """What a page says of passkeys: whether browsers make them there, and the name of this machine if it has no name.

    Forms for passkeys that no browser makes would only say that it did not work.
    """
    origins: Origins = request.app.state.resources.origins
    return {"has_passkeys": passkey_site(request).is_named, "named_address": origins.local_name}


def safe_next_url(address: str | None) -> str:
    """The path to which to redirect: the one given if it is a path of this server, otherwise the console's."""
    if address is None or len(address) > MAX_NEXT or not address.isascii() or not address.isprintable():
        return CONSOLE
    # A browser takes a backslash as a slash, and two slashes as the start of another host.
    if not address.startswith("/") or address.startswith("//") or "\\" in address:
        return CONSOLE
    return address


@cache
def _templates() -> Environment:
    return template_environment(
        PACKAGE,
        filters={"browser": browser_name},
        values={"gateway_asset": lambda name: asset_address(PACKAGE, name)},
    )


def compile_templates() -> None:
    """Compile the templates of all pages for people, before any is asked for."""
    _templates()
