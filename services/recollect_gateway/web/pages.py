"""Pages, rendered from templates. The public edge keeps them from being framed, cached and scripted."""

from collections.abc import Sequence
from datetime import UTC
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import structlog
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.response import Redirect

from recollect.accounts.passkeys.model import PasskeySite
from recollect.errors import ErrorCode, ErrorKind, RecollectError
from recollect.text.control_characters import in_one_direction
from recollect_gateway.web.browser_names import browser_name
from recollect_gateway.web.compiled_templates import CompiledTemplates
from recollect_gateway.web.forms import form_cookie, form_token
from recollect_gateway.web.styles import asset_address
from recollect_http.access_log import note_code
from recollect_http.problems import CODES, STATUS, TITLES
from recollect_http.server.hosts import Origins
from recollect_http.server.public_edge import page_policy

AnyRequest = Request[Any, Any, Any]
PACKAGE = "recollect_gateway.web"
"""The package of the templates and assets that all pages share."""

COMPONENTS = (
    *("button", "card", "chips", "copy", "dialog", "diff", "empty", "errors"),
    *("field", "icon", "select", "table", "tabs", "time", "toast"),
)
"""The files of templates/components, each with the macros of one component."""

CONSOLE = "/app"
"""Where a page leads that has no other address to go on to: the console, which also tells who is a member nowhere."""

ACCOUNT = "/account"
"""One's own account."""

MAX_NEXT = 4_000
"""Characters of an address to go on to."""

log = structlog.get_logger(__name__)


def page(
    request: AnyRequest, template: str, *, status: int = 200, form_targets: Sequence[str] = (), **context: Any
) -> Response[str]:
    """A page. `form_targets`: origins, beside our own, to which the answer to its form may redirect."""
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


def error_text(request: AnyRequest, error: Exception) -> tuple[int, str]:
    """The status and the sentence of an error. Server errors are logged in full, and answered with one sentence."""
    match error:
        case RecollectError() if error.kind is not ErrorKind.INTERNAL:
            status, text = STATUS[error.kind], str(error)
        case HTTPException() if error.status_code < 500:
            status, text = error.status_code, error.detail
        case _:
            log.error("page failed", route=request.scope.get("path_template"), exc_info=error)
            status, text = 500, "Something went wrong on our side. Try again; if it happens again, tell an operator."
    code = error.code if isinstance(error, RecollectError) else CODES.get(status, ErrorCode.INVALID_INPUT)
    note_code(request.scope, str(ErrorCode.INTERNAL if status == 500 else code))
    return status, text


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


def go_to(address: str) -> Redirect:
    """Redirect to an address of this server by GET, after a form."""
    return Redirect(address, status_code=303)


def template_environment(*packages: str) -> Environment:
    """The templates of these packages, the first first, and the components that all pages share.

    All are compiled at once: a page that was opened first would hold the event loop for 50 ms. Options and filters, on
    which the result depends, are in this file.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, PACKAGE)]),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        bytecode_cache=CompiledTemplates(made_by=Path(__file__).read_bytes()),
    )
    environment.globals["asset"] = lambda name: asset_address(PACKAGE, name)
    environment.filters["in_one_direction"] = in_one_direction
    environment.filters["utc"] = lambda at: f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    environment.filters["browser"] = browser_name
    environment.filters["counted"] = lambda count, noun: f"{count:,} {noun}{'' if count == 1 else 's'}"
    environment.globals["ui"] = _components(environment)
    for name in environment.list_templates(extensions=["html"]):
        environment.get_template(name)
    return environment


def _components(environment: Environment) -> SimpleNamespace:
    """The macros of all components: `ui.button(…)`, also in a block that is rendered by itself."""
    modules = [environment.get_template(f"components/{name}.html").module for name in COMPONENTS]
    return SimpleNamespace(
        **{name: value for module in modules for name, value in vars(module).items() if name[:1] != "_"}
    )


@cache
def _templates() -> Environment:
    return template_environment()


def compile_templates() -> None:
    """Compile the templates of all pages for people, before any is asked for."""
    _templates()
