"""Request headers that many routes share, added to the OpenAPI document: of `preconditions.py` and `idempotency.py`.

A route takes a header if it may answer with the header's status: 304, 412 and 422 come with these headers alone.
"""

from typing import Any

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
"""For each status, the header that it comes with, the header's description, and its bounds."""


def with_headers(operation: dict[str, Any]) -> dict[str, Any]:
    """An operation with the headers that it takes."""
    headers = [_parameter(*header) for status, header in HEADERS.items() if status in operation["responses"]]
    return {**operation, "parameters": [*operation.get("parameters", []), *headers]} if headers else operation


def _parameter(name: str, description: str, bounds: dict[str, int]) -> dict[str, Any]:
    schema = {"type": "string", **bounds}
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}
