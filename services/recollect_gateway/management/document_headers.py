"""Request headers that many routes share, added to the OpenAPI document: of `preconditions.py` and `idempotency.py`.

A route takes a header if it may answer with the header's status: 304, 412 and 422 come with these headers alone.
"""

from typing import Any

from recollect.accounts.idempotency.model import MAX_KEY
from recollect_gateway.idempotency import HEADER

_QUOTES = 2
HEADERS = {
    "304": ("If-None-Match", "ETags of known versions. If the current version is one of them, the response is 304", {}),
    "412": (
        "If-Match",
        "The ETag of the version to change. If it was changed in the meantime, the response is 412",
        {},
    ),
    "422": (
        HEADER,
        "A unique key of this request. If it is sent again with the same key, it is not executed again, and the first "
        "response is returned",
        {"minLength": 1, "maxLength": MAX_KEY + _QUOTES},
    ),
}
"""For each status, the header that it comes with, the header's description, and its bounds."""


def with_headers(operation: dict[str, Any]) -> dict[str, Any]:
    """An operation with the headers that it takes."""
    headers = [_parameter(*header) for status, header in HEADERS.items() if status in operation["responses"]]
    return {**operation, "parameters": [*operation.get("parameters", []), *headers]} if headers else operation


def _parameter(name: str, description: str, bounds: dict[str, int]) -> dict[str, Any]:
    schema = {"type": "string", **bounds}
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}
