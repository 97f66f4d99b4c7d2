"""Headers that many routes share, added to the OpenAPI documents: of `preconditions.py`, `idempotency.py` and others.

The statuses of a route determine which headers it takes and returns. It takes a header if it may answer with the
header's status: 304, 412 and 422 come with these headers alone.
"""

from typing import Any

from litestar.openapi.spec import OpenAPIHeader, OpenAPIType, Schema

from recollect.accounts.idempotency.model import HEADER, MAX_KEY

_QUOTES = 2
REQUEST_HEADERS = {
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

_ETAG, _RETRY_AFTER, _CHALLENGE, _REPLAYED = "ETag", "Retry-After", "WWW-Authenticate", "Idempotency-Replayed"
_RATES = ("RateLimit-Policy", "RateLimit")


DISPOSITION = "Content-Disposition"


def header_of(type_: OpenAPIType, description: str, example: Any, *, required: bool = True) -> OpenAPIHeader:
    """A response header, as an OpenAPI document describes it."""
    return OpenAPIHeader(schema=Schema(type=type_), description=description, required=required, example=example)


COMMON_HEADERS = {
    _ETAG: header_of(
        OpenAPIType.STRING,
        "Entity tag of this version of the resource, for `If-None-Match` and `If-Match`",
        '"0b5a7dbf5bd0c1f0a6b6c5d1-7c3f9a4de25b18f06a9c2e14"',
    ),
    _RETRY_AFTER: header_of(OpenAPIType.INTEGER, "Number of seconds after which to send the request again", 4),
    _CHALLENGE: header_of(OpenAPIType.STRING, "Way to authenticate", 'Bearer realm="recollect"'),
}
"""Response headers of both APIs, as components of their documents."""

TENANT_HEADERS = {
    _REPLAYED: header_of(
        OpenAPIType.STRING,
        "`true`: this is the stored response to an earlier request with the same key",
        "true",
        required=False,
    ),
    "RateLimit-Policy": header_of(
        OpenAPIType.STRING,
        "Limits that the request counts against, each with its quota `q` and its window `w` in seconds; omitted if "
        "there are none",
        '"key";q=300;w=60, "tenant";q=600;w=60',
        required=False,
    ),
    "RateLimit": header_of(
        OpenAPIType.STRING,
        "For each limit, the number `r` of requests that are left, and the number `t` of seconds until there are "
        "more; omitted if there are no limits",
        '"key";r=299;t=60, "tenant";r=120;t=4',
        required=False,
    ),
}
"""Response headers of the management API alone."""


def disposition_of(filename: str) -> OpenAPIHeader:
    """The header of a response that is a file, such as this one."""
    return header_of(OpenAPIType.STRING, "`attachment`, and the name of the file", f'attachment; filename="{filename}"')


def with_headers(operation: dict[str, Any], *, is_counted: bool = False, is_replayed: bool = False) -> dict[str, Any]:
    """An operation with the headers that it takes and returns.

    `is_counted`: its requests count against rate limits. The headers about them are listed with success and 429 only,
    though other errors have them, too. `is_replayed`: its response is stored with an idempotency key.
    """
    statuses = operation["responses"].keys()
    taken = [_parameter(*header) for status, header in REQUEST_HEADERS.items() if status in statuses]
    parameters = [*operation.get("parameters", []), *taken]
    responses = {}
    for status, response in operation["responses"].items():
        names = [
            *([_ETAG] if "304" in statuses and status in ("200", "304") else []),
            *([_REPLAYED] if is_replayed and status.startswith("2") else []),
            *([_CHALLENGE] if status == "401" else []),
            *([_RETRY_AFTER] if status in ("429", "503") else []),
            *(_RATES if is_counted and (status < "400" or status == "429") else []),
        ]
        headers = response.get("headers", {}) | {name: {"$ref": f"#/components/headers/{name}"} for name in names}
        responses[status] = response | ({"headers": headers} if headers else {})
    return operation | {"responses": responses} | ({"parameters": parameters} if parameters else {})


def _parameter(name: str, description: str, bounds: dict[str, int]) -> dict[str, Any]:
    schema = {"type": "string", **bounds}
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}
