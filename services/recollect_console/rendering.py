"""Pages and parts of pages, rendered from templates inside the frame."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from jinja2 import Environment
from litestar import Response
from litestar.response import Redirect

from recollect_console.access import NotSignedIn, find_visit
from recollect_console.navigation import ENTRIES, SEARCH_FIELD, SEARCH_LABEL, SEARCH_PAGE
from recollect_console.visit import DONE, Visit
from recollect_gateway.web import pages
from recollect_gateway.web.sessions import to_sign_in
from recollect_http.problems import TITLES
from recollect_http.requests import AnyRequest
from recollect_http.server.public_edge import page_policy
from recollect_http.web.forms import form_cookie, form_token
from recollect_http.web.rendering import error_text, go_to, template_environment
from recollect_http.web.styles import asset_address

PACKAGE = "recollect_console"
UNDER = "console/"
POLICY = f"{page_policy()}; require-trusted-types-for 'script'; trusted-types default"
"""The policy of the console's pages: that of all pages, and only `trusted.js` may make markup by script."""

HTMX = msgspec.json.encode(
    {
        "includeIndicatorStyles": False,
        "allowEval": False,
        "allowScriptTags": False,
        "selfRequestsOnly": True,
        "historyCacheSize": 0,
        "refreshOnHistoryMiss": True,
        "defaultSwapStyle": "outerHTML",
        "responseHandling": [
            {"code": "204", "swap": False},
            {"code": "[234]..", "swap": True},
            {"code": "...", "swap": False, "error": True},
        ],
    }
).decode()
"""How htmx behaves: nothing of it needs an inline style or script, and no page is kept in the browser."""


def render(
    visit: Visit, template: str, *, status: int = 200, done: Mapping[str, str] | None = None, **context: Any
) -> Response[str]:
    """A page in its frame; where htmx asks for a part by its id, only the template's block of that name.

    `done`: what this page says of each word that `Visit.go` may have given it.
    """
    said = (done or {}).get(visit.request.query_params.get(DONE, ""))
    return answer(visit.request, template, status, _frame(visit) | {"toast": said} | context)


def answer(
    request: AnyRequest, template: str, status: int, context: Mapping[str, Any], *, part: str = ""
) -> Response[str]:
    """A template as an answer, with its policy and its form token.

    htmx gets the block that is named like its target, or `part`.
    """
    cookie = form_cookie(request)
    token = form_token(request.app.state.pepper, cookie.value or "")
    found, part = templates().get_template(template), part or request.headers.get("hx-target", "")
    is_part = _is_of_htmx(request) and part in found.blocks
    values = {"form_token": token, "is_part": is_part, **context}
    html = "".join(found.blocks[part](found.new_context(values))) if is_part else found.render(values)
    headers = {"Content-Security-Policy": POLICY, "Vary": "HX-Request, HX-Target"}
    return Response(html, status_code=status, media_type="text/html", cookies=[cookie], headers=headers)


def error_page(request: AnyRequest, error: Exception) -> Response[str] | Redirect | Response[None]:
    """Any error as a page in its frame, if it is known who visits, else as a plain one.

    Where htmx asked for a part, the page stays, and the error comes in the dialog or as a toast.
    """
    if isinstance(error, NotSignedIn):
        return _to_sign_in(request)
    visit = find_visit(request)
    if visit is None:
        if _is_of_htmx(request):
            return Response(None, status_code=204, headers={"HX-Refresh": "true"})
        return pages.error_page(request, error)
    status, text = error_text(request, error)
    visit.as_of = visit.as_of if visit.moment else None
    context = _frame(visit) | {"title": TITLES.get(status, "Error"), "text": text}
    target = "dialog" if request.headers.get("hx-target") == "dialog" else "toasts"
    shown = answer(request, "error.html", status, context, part=target)
    shown.headers |= {"HX-Retarget": f"#{target}", "HX-Reswap": "innerHTML" if target == "dialog" else "beforeend"}
    return shown


def _is_of_htmx(request: AnyRequest) -> bool:
    return request.headers.get("hx-request") == "true"


def _to_sign_in(request: AnyRequest) -> Redirect | Response[None]:
    """Lead to the sign-in page; the page of a request of htmx is led there as a whole, and a form is lost."""
    if _is_of_htmx(request):
        return Response(None, status_code=204, headers={"HX-Redirect": "/sign-in"})
    return to_sign_in(request) if request.method == "GET" else go_to("/sign-in")


def _frame(visit: Visit) -> dict[str, Any]:
    """What the frame shows on every page."""
    return {
        "visit": visit,
        "url": visit.address,
        "here": visit.here,
        "entries": [entry for entry in ENTRIES if visit.caller.may(entry.scope)],
        "search": {"page": SEARCH_PAGE, "field": SEARCH_FIELD, "label": SEARCH_LABEL},
    }


@cache
def templates() -> Environment:
    """The console's templates."""
    environment = template_environment(PACKAGE)
    environment.globals["console_asset"] = lambda name: asset_address(PACKAGE, name, under=UNDER)
    environment.globals["htmx_settings"] = HTMX
    return environment
