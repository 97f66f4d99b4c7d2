"""The OpenAPI document, with what the framework does not know of a route: scope, least role, errors and examples."""

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from litestar import Litestar, Request, Router
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.routes import HTTPRoute

from recollect import __version__
from recollect_gateway.admission import by_address
from recollect_gateway.errors import EXAMPLES as PROBLEMS
from recollect_gateway.errors import MEDIA_TYPE
from recollect_gateway.guards import least_role, needed_scope
from recollect_gateway.management.document_headers import with_headers
from recollect_gateway.web.forms import TENANT_HEADER
from recollect_gateway.web.sessions import COOKIE

SCOPE = "x-recollect-scope"
ROLE = "x-recollect-role"
"""Extensions of an operation: the scope that it asks for, and the least role of a person that has it.

A null scope: any credential of the tenant. A null role, too: no credential at all.
"""

_JSON = "application/json"

_GENERIC = re.compile(rb"\b(?P<of>[A-Z]\w*?)_recollect\w*(?:\.\w+)*\.(?P<what>\w+)_(?=\")")
"""How the framework names the schema of a generic type: `Page_recollect_gateway.management.keys.KeyBody_`.

Clients are generated from these names, which are not to change with our modules: it becomes `PageOfKeyBody`.
"""


_ABOUT = (
    "Everything of the tenant whose credential asks, and of no other. Errors are problem details (RFC 9457) with a "
    "stable `code`. Lists come in pages: give `next_cursor` back as `cursor`. Each operation tells the scope that it "
    "asks for (`x-recollect-scope`) and the least role of a person that has it (`x-recollect-role`)."
)


class DocumentPlugin(JsonRenderPlugin):
    """Serves the document, which is made once."""

    def __init__(self) -> None:
        # Below its path the framework would serve the document as it knows it.
        super().__init__(path=["/", "/openapi.json"])
        self._rendered: bytes | None = None

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """The document as JSON."""
        if self._rendered is None:
            rendered = self.render_json(request, described(openapi_schema, request.app))
            self._rendered = _GENERIC.sub(rb"\g<of>Of\g<what>", rendered)
        return self._rendered


def document_config() -> OpenAPIConfig:
    """How the document is made and served."""
    bearer = SecurityScheme(type="http", scheme="bearer", description="An API key: rcl_…")
    session = SecurityScheme(
        type="apiKey",
        security_scheme_in="cookie",
        name=f"__Host-recollect_{COOKIE}",
        description="The session of a browser that signed in, together with the header `X-Recollect-Tenant`. Without "
        f"https the cookie is called `recollect_{COOKIE}`.",
    )
    tenant = SecurityScheme(
        type="apiKey",
        security_scheme_in="header",
        name=TENANT_HEADER,
        description="The slug of the tenant as whose member a session calls.",
    )
    return OpenAPIConfig(
        title="Recollect management API",
        version=__version__,
        description=_ABOUT,
        # Below its path the framework answers 404 in HTML: the path is the document's own.
        openapi_router=Router(
            "/v1/openapi.json",
            route_handlers=[],
            include_in_schema=False,
            guards=[by_address("openapi", lambda settings: settings.public_requests_per_minute)],
        ),
        render_plugins=[DocumentPlugin()],
        components=Components(security_schemes={"apiKey": bearer, "session": session, "tenant": tenant}),
    )


def described(document: dict[str, Any], app: Litestar) -> dict[str, Any]:
    """The document with scope, role, errors and examples of each operation under /v1."""
    handlers = dict(handlers_of(app))
    paths = {
        path: {method: _operation(f"{method.upper()} {path}", told, handlers) for method, told in methods.items()}
        for path, methods in document["paths"].items()
    }
    return document | {"paths": paths}


def handlers_of(app: Litestar) -> list[tuple[str, HTTPRouteHandler]]:
    """The handler of each operation, by method and path."""
    return [
        (f"{method} {route.path_format}", handler)
        for route in app.routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
        for method in handler.http_methods
    ]


def _operation(name: str, told: dict[str, Any], handlers: dict[str, HTTPRouteHandler]) -> dict[str, Any]:
    if not name.partition(" ")[2].startswith("/v1/"):
        return told
    example = _examples().get(name, {})
    operation = told | {"responses": _responses(told["responses"], example)} | _access(told, handlers[name])
    if "request" in example:
        operation["requestBody"] = _with_example(told["requestBody"], example["request"])
    return with_headers(operation)


def _access(told: dict[str, Any], handler: HTTPRouteHandler) -> dict[str, Any]:
    open_to_all = told.get("security") == [{}]
    scope = needed_scope(handler)
    role = None if open_to_all else least_role(scope)
    if open_to_all:
        said = "Asks for no credential."
    elif scope is None:
        said = "For every credential of the tenant."
    else:
        said = f"Asks for the scope `{scope}`; of people, for the role `{role}` or one above it."
    description = f"{told.get('description', '')}\n\n{said}".strip()
    return {"description": description, SCOPE: scope, ROLE: role}


def _responses(told: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    responses = {}
    for status, response in told.items():
        if status in PROBLEMS and MEDIA_TYPE in response.get("content", {}):
            response = _with_example(response, PROBLEMS[status], MEDIA_TYPE)
        elif "response" in example and _JSON in response.get("content", {}):
            response = _with_example(response, example["response"])
        responses[status] = response
    return responses


def _with_example(part: dict[str, Any], example: Any, media_type: str = _JSON) -> dict[str, Any]:
    content = part["content"]
    return part | {"content": content | {media_type: content[media_type] | {"example": example}}}


@cache
def _examples() -> dict[str, dict[str, Any]]:
    """What a request holds and what its answer does, by method and path."""
    text = files(__package__).joinpath("assets", "examples.json").read_text(encoding="utf-8")
    read: dict[str, dict[str, Any]] = json.loads(text)
    return read
