"""Pages of operators, rendered from templates inside the frame that the console has, too."""

from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment
from litestar import Response
from litestar.response import Redirect

from recollect_http.problems import TITLES
from recollect_http.requests import AnyRequest
from recollect_http.server.public_edge import page_policy
from recollect_http.web import rendering
from recollect_http.web.forms import form_cookie, form_token
from recollect_http.web.rendering import error_text, template_environment
from recollect_operator.operator_identity import OperatorIdentity
from recollect_operator.pages.access import NoOperatorSession
from recollect_operator.pages.navigation import ENTRIES, ROOT

PACKAGE = "recollect_operator.pages"
POLICY = f"{page_policy()}; require-trusted-types-for 'script'; trusted-types 'none'"
"""The policy of these pages: that of all pages, and no script makes markup."""

DONE = "done"
"""The parameter by which a page says what was done, as one of its own words."""

SIGN_IN = f"{ROOT}/sign-in"

MAX_NEXT = 2_000
"""How long an address may be to which the sign-in page leads on."""


def address(page: str = "", /, **query: Any) -> str:
    """The address of a page. A parameter that is empty is left out."""
    path = "/".join([ROOT, *(quote(part, safe="") for part in page.split("/") if part)])
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def go(page: str, /, *, done: str | None = None, **query: Any) -> Redirect:
    """Go to a page after a form. `done`: the page's own word for what was done."""
    return rendering.go_to(address(page, **query, done=done))


def here(request: AnyRequest, **changes: Any) -> str:
    """The address of this page with other parameters; those that are None are left out."""
    query = {name: request.query_params.get(name) for name in request.query_params if name != DONE} | changes
    return address(request.url.path.removeprefix(ROOT), **query)


def render(
    request: AnyRequest, template: str, *, status: int = 200, done: Mapping[str, str] | None = None, **context: Any
) -> Response[str]:
    """A page in its frame. `done`: what this page says of each word that `go` may have given it."""
    said = (done or {}).get(request.query_params.get(DONE, ""))
    return _answer(request, template, status, _frame(request) | {"said": said} | context)


def render_alone(request: AnyRequest, template: str, *, status: int = 200, **context: Any) -> Response[str]:
    """A page for people who are not signed in."""
    return _answer(request, template, status, context)


def error_page(request: AnyRequest, error: Exception) -> Response[str] | Redirect:
    """Any error as a page, in the frame if it is known who asks; who is not signed in is led there."""
    if isinstance(error, NoOperatorSession):
        return _to_sign_in(request)
    status, text = error_text(request, error)
    context: dict[str, Any] = {"title": TITLES.get(status, "Error"), "text": text}
    if isinstance(request.scope.get("user"), OperatorIdentity):
        return render(request, "error.html", status=status, **context)
    return render_alone(request, "message.html", status=status, **context)


def _answer(request: AnyRequest, template: str, status: int, context: Mapping[str, Any]) -> Response[str]:
    cookie = form_cookie(request)
    token = form_token(request.app.state.pepper, cookie.value or "")
    html = templates().get_template(template).render({"form_token": token, "url": address, **context})
    headers = {"Content-Security-Policy": POLICY}
    return Response(html, status_code=status, media_type="text/html", cookies=[cookie], headers=headers)


def _to_sign_in(request: AnyRequest) -> Redirect:
    """Redirect to the sign-in page, which leads back to this page, if it was only read and its address is not long."""
    query = request.scope["query_string"].decode("latin-1")
    page = request.url.path + (f"?{query}" if query else "")
    leads_back = request.method == "GET" and len(page) <= MAX_NEXT
    return rendering.go_to(address("sign-in", next=page if leads_back else None))


def _frame(request: AnyRequest) -> dict[str, Any]:
    """What the frame shows on every page."""
    page = "".join(request.url.path.split("/")[2:3])
    return {"operator": request.user, "entries": ENTRIES, "current": page}


@cache
def templates() -> Environment:
    """The templates of these pages."""
    return template_environment(PACKAGE)
