"""The OpenAPI document, to which we add what the framework does not know of a route: scope, role, errors, examples."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from litestar import Litestar, Router
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme, Tag

from recollect import __version__
from recollect_gateway.callers.browser_sessions import COOKIE, TENANT_HEADER
from recollect_gateway.callers.rate_limits import by_address
from recollect_gateway.management.guards import min_role, needed_scope, takes_tokens
from recollect_gateway.requests.idempotency import KEEPS_NO_ANSWER, OPT
from recollect_http.openapi.document_plugin import DocumentPlugin
from recollect_http.openapi.headers import COMMON_HEADERS, TENANT_HEADERS, with_headers
from recollect_http.openapi.names import operation_id
from recollect_http.openapi.parameters import handlers_of, with_parameters
from recollect_http.openapi.responses import with_shared_responses
from recollect_http.problems import EXAMPLES as PROBLEMS
from recollect_http.problems import MEDIA_TYPE

SCOPE = "x-recollect-scope"
ROLE = "x-recollect-role"
"""Extensions of an operation: the scope that it requires, and the lowest role that has the scope.

Where the scope is null, any credential of the tenant is enough; where the role is null as well, none is needed.
"""

_JSON = "application/json"

_ABOUT = "\n\n".join(
    (
        "Store and recall memories, and manage the tenant of the credential that you use, and no other.",
        "**Access.** Each operation names the scope that it requires (`x-recollect-scope`) and the lowest role of a "
        "person that has this scope (`x-recollect-role`).",
        "**Errors** are problem details (RFC 9457) with a stable `code`. Besides the responses that an operation "
        "lists, any request may get 405, 408, 421, 431 or 500, in the same form.",
        "**Lists** are paginated. To get the next page, pass `next_cursor` as `cursor`, with the same filters. It is "
        "null on the last page.",
        "**Repeated requests.** Send an `Idempotency-Key` with a request that must not take effect twice. If there is "
        "no response, send the same request again with the same key.",
        "**Changes.** Send the `ETag` of a resource as `If-None-Match` to read it only if it has changed, and as "
        "`If-Match` to change it only if nobody else has changed it.",
        "**Rates.** `RateLimit` and `RateLimit-Policy` in a response say how many requests are left.",
        "**Values.** Ids are UUIDs. Times are in RFC 3339: with their offset from UTC in requests, in UTC in "
        "responses. Unknown fields and parameters of requests are refused. An omitted field counts as null, false or "
        "empty, unless its description names a default.",
    )
)

TAGS = {
    "memories": "Store, recall, relate, correct, forget and explore memories, as agents do over MCP.",
    "nodes": "Entities and facts of a graph, their versions and relations, search, and the log of changes.",
    "graphs": "Graphs and their configuration. A graph is addressed by its name or its id.",
    "transfer": "Export and import of a graph in one request.",
    "jobs": "Work that takes longer than a request, with its progress and output.",
    "webhooks": "Addresses to which the tenant's events are sent, and the deliveries to them.",
    "distilling": "Facts that a language model finds in conversations, and the tenant's own model.",
    "usage": "Calls of the tenant, what its graphs store, and the limits of its plan.",
    "keys": "API keys of the tenant.",
    "members": "Members of the tenant, and invitations.",
    "grants": "What people let OAuth clients do in the tenant.",
    "tenant": "The tenant and its settings.",
    "identity providers": "OpenID Connect providers by which the tenant's people sign in.",
    "email domains": "Domains whose e-mail addresses let people join by the tenant's identity provider.",
    "trusted issuers": "Issuers whose access tokens the tenant accepts at its MCP endpoint.",
    "sessions": "Sign-ins of the person who calls.",
    "audit": "Log of the acts of administration in the tenant.",
    "erasure": "Erasure of a person or of a whole graph, with all history.",
    "health": "Probes for operators, which need no credential.",
}
"""The descriptions of the tags that group the operations, in the order in which pages list them."""


def document_config() -> OpenAPIConfig:
    """The configuration by which the document is made and served."""
    bearer = SecurityScheme(
        type="http", scheme="bearer", description="An API key, sent as `Authorization: Bearer rcl_…`."
    )
    token = SecurityScheme(
        type="http",
        scheme="bearer",
        description="An access token of OAuth for an MCP endpoint, sent as `Authorization: Bearer rcl_access_…`. It is "
        "valid at operations that read or write memories, within its scopes, graphs and toolsets.",
    )
    session = SecurityScheme(
        type="apiKey",
        security_scheme_in="cookie",
        name=f"__Host-recollect_{COOKIE}",
        description="The session of a signed-in browser. Send the header `X-Recollect-Tenant` with it. Without https, "
        f"the cookie is called `recollect_{COOKIE}`.",
    )
    tenant = SecurityScheme(
        type="apiKey",
        security_scheme_in="header",
        name=TENANT_HEADER,
        description="The slug of the tenant in which the signed-in person acts. Needed with a session.",
    )
    return OpenAPIConfig(
        title="Recollect API: memory and management",
        version=__version__,
        description=_ABOUT,
        tags=[Tag(name, description) for name, description in TAGS.items()],
        use_handler_docstrings=True,
        operation_id_creator=operation_id,
        # Below its path the framework answers 404 in HTML, so the path is the document's own.
        openapi_router=Router(
            "/v1/openapi.json",
            route_handlers=[],
            include_in_schema=False,
            guards=[by_address("openapi", lambda settings: settings.public_requests_per_minute)],
        ),
        render_plugins=[DocumentPlugin(complete_document)],
        components=Components(
            headers={**COMMON_HEADERS, **TENANT_HEADERS},
            security_schemes={"apiKey": bearer, "accessToken": token, "session": session, "tenant": tenant},
        ),
    )


def complete_document(document: dict[str, Any], app: Litestar) -> dict[str, Any]:
    """The document with errors, examples and headers of each operation; under /v1, also with its scope and role."""
    handlers = dict(handlers_of(app))
    paths = {
        path: {
            method: _operation(f"{method.upper()} {path}", operation, handlers) for method, operation in methods.items()
        }
        for path, methods in document["paths"].items()
    }
    return with_shared_responses(document | {"paths": _in_order(paths, handlers)})


def _in_order(paths: dict[str, Any], handlers: dict[str, HTTPRouteHandler]) -> dict[str, Any]:
    """The paths in the order of their tags and, within one, of the source: the framework sorts them by name."""
    groups = list(TAGS)

    def position(path: str) -> tuple[int, int]:
        method, operation = next(iter(paths[path].items()))
        handler: Any = handlers[f"{method.upper()} {path}"].fn
        return groups.index(operation["tags"][0]), handler.__code__.co_firstlineno

    return {path: paths[path] for path in sorted(paths, key=position)}


def _operation(name: str, operation: dict[str, Any], handlers: dict[str, HTTPRouteHandler]) -> dict[str, Any]:
    handler, example = handlers[name], _examples().get(name, {})
    completed = operation | {"responses": _responses(operation["responses"], example)}
    if name.partition(" ")[2].startswith("/v1/"):
        completed |= _access(operation, handler)
        if takes_tokens(handler):
            first, *others = operation["security"]
            completed["security"] = [first, {"accessToken": []}, *others]
    if "request" in example:
        completed["requestBody"] = _with_example(operation["requestBody"], example["request"])
    is_replayed = "422" in completed["responses"] and handler.opt.get(OPT) != KEEPS_NO_ANSWER[OPT]
    is_counted = "429" in completed["responses"]
    return with_headers(with_parameters(completed, handler), is_counted=is_counted, is_replayed=is_replayed)


def _access(operation: dict[str, Any], handler: HTTPRouteHandler) -> dict[str, Any]:
    is_open_to_all = operation.get("security") == [{}]
    scope = needed_scope(handler)
    role = None if is_open_to_all else min_role(scope)
    if is_open_to_all:
        access = "Requires no credential."
    elif scope is None:
        access = "Any credential of the tenant may call this."
    else:
        access = f"Requires the scope `{scope}`. People need the role `{role}` or a higher one."
    description = f"{operation.get('description', '')}\n\n{access}".strip()
    return {"description": description, SCOPE: scope, ROLE: role}


def _responses(responses: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    with_examples = {}
    for status, response in responses.items():
        if status in PROBLEMS and MEDIA_TYPE in response.get("content", {}):
            response = _with_example(response, PROBLEMS[status], MEDIA_TYPE)
        elif "response" in example and _JSON in response.get("content", {}):
            response = _with_example(response, example["response"])
        with_examples[status] = response
    return with_examples


def _with_example(part: dict[str, Any], example: Any, media_type: str = _JSON) -> dict[str, Any]:
    content = part["content"]
    return part | {"content": content | {media_type: content[media_type] | {"example": example}}}


@cache
def _examples() -> dict[str, dict[str, Any]]:
    """Example bodies of requests and answers, by method and path."""
    text = files(__package__).joinpath("assets", "examples.json").read_text(encoding="utf-8")
    examples: dict[str, dict[str, Any]] = json.loads(text)
    return examples
