"""The OpenAPI document of the operator API, with examples."""

import json
from importlib.resources import files
from typing import Any

from litestar import Litestar, Router
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme, Tag

from recollect import __version__
from recollect_http.openapi.document_plugin import DocumentPlugin
from recollect_http.openapi.headers import COMMON_HEADERS, with_headers
from recollect_http.openapi.names import operation_id
from recollect_http.openapi.parameters import handlers_of, with_parameters
from recollect_http.openapi.responses import with_shared_responses
from recollect_http.problems import EXAMPLES as PROBLEMS
from recollect_http.problems import MEDIA_TYPE

_JSON = "application/json"

_ABOUT = "\n\n".join(
    (
        "Manage tenants and plans as the operator of the service.",
        "**Errors** are problem details (RFC 9457) with a stable `code`. Besides the responses that an operation "
        "lists, any request may get 405, 408, 421, 431 or 500, in the same form.",
        "**Lists** are paginated. To get the next page, pass `next_cursor` as `cursor`, with the same filters. It is "
        "null on the last page.",
        "**Changes.** Send the `ETag` of a tenant as `If-None-Match` to read it only if it has changed, and as "
        "`If-Match` to change it only if nobody else has changed it. Creating a tenant a second time is refused; any "
        "other request may be sent again.",
        "**Values.** Ids are UUIDs. Times are in RFC 3339 and UTC. Unknown fields and parameters of requests are "
        "refused.",
    )
)

TAGS = {
    "tenants": "Tenants: create, read, suspend, resume, delete and restore them.",
    "plans": "Limits of what tenants may store and request.",
    "erasures": "Erasures of tenants with their receipts, and the log of operators.",
    "cells": "PostgreSQL clusters of the deployment.",
}
"""The descriptions of the tags that group the operations."""


def document_config() -> OpenAPIConfig:
    """The configuration of the document, which anybody who reaches the port may read: it is the same everywhere."""
    key = SecurityScheme(
        type="http", scheme="bearer", description="An operator's key, sent as `Authorization: Bearer rcl_operator_…`."
    )
    return OpenAPIConfig(
        title="Recollect operator API",
        version=__version__,
        use_handler_docstrings=True,
        operation_id_creator=operation_id,
        description=_ABOUT,
        tags=[Tag(name, description) for name, description in TAGS.items()],
        openapi_router=Router("/operator/v1/openapi.json", route_handlers=[], include_in_schema=False),
        render_plugins=[DocumentPlugin(complete_document)],
        components=Components(headers={**COMMON_HEADERS}, security_schemes={"operatorKey": key}),
    )


def complete_document(document: dict[str, Any], app: Litestar) -> dict[str, Any]:
    """The document with the examples of each operation, and the headers that it takes and returns."""
    text = files(__package__).joinpath("assets", "examples.json").read_text(encoding="utf-8")
    examples: dict[str, dict[str, Any]] = json.loads(text)
    handlers = dict(handlers_of(app))

    def complete(name: str, operation: dict[str, Any]) -> dict[str, Any]:
        return with_headers(with_parameters(_operation(operation, examples.get(name, {})), handlers[name]))

    paths = {
        path: {method: complete(f"{method.upper()} {path}", operation) for method, operation in methods.items()}
        for path, methods in document["paths"].items()
    }
    return with_shared_responses(document | {"paths": paths})


def _operation(operation: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    responses = {
        status: _with_example(response, PROBLEMS[status], MEDIA_TYPE)
        if status in PROBLEMS
        else _with_example(response, example.get("response"), _JSON)
        for status, response in operation["responses"].items()
        if status != "422"  # Idempotency keys are stored with a tenant, so this API takes none.
    }
    completed = operation | {"responses": responses}
    if "request" in example:
        completed["requestBody"] = _with_example(operation["requestBody"], example["request"], _JSON)
    return completed


def _with_example(part: dict[str, Any], example: Any, media_type: str) -> dict[str, Any]:
    content = part.get("content", {})
    if example is None or media_type not in content:
        return part
    return part | {"content": content | {media_type: content[media_type] | {"example": example}}}
