"""What many routes take and is said once, in the OpenAPI document: headers of `preconditions.py` and `idempotency.py`.

Which routes take one is told by what they may answer: 304, 412 and 422 come with these headers alone.
"""

from typing import Any

from litestar import Request
from litestar.openapi.plugins import JsonRenderPlugin

from recollect.accounts.idempotency.model import MAX_KEY
from recollect_gateway.idempotency import HEADER

_QUOTES = 2
HEADERS = {
    "304": ("If-None-Match", "ETags of what is known: where it is so still, the answer is 304", {}),
    "412": ("If-Match", "The ETag of what is to be changed: where it was changed since, the answer is 412", {}),
    "422": (
        HEADER,
        "Names this act: sent again with the same key, it is not done again, and answered as the first time",
        {"minLength": 1, "maxLength": MAX_KEY + _QUOTES},
    ),
}
"""By the status that comes with it: a header, what it does, and what bounds it."""


class DescribedJson(JsonRenderPlugin):
    """The OpenAPI document with these headers."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """The document."""
        return super().render(request, described(openapi_schema))


def described(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the headers that its operations take."""
    paths = {
        path: {method: _operation(told) if "responses" in told else told for method, told in item.items()}
        for path, item in document["paths"].items()
    }
    return {**document, "paths": paths}


def _operation(told: dict[str, Any]) -> dict[str, Any]:
    headers = [_parameter(*header) for status, header in HEADERS.items() if status in told["responses"]]
    return {**told, "parameters": [*told.get("parameters", []), *headers]} if headers else told


def _parameter(name: str, description: str, bounds: dict[str, int]) -> dict[str, Any]:
    schema = {"type": "string", **bounds}
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}
