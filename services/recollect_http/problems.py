"""Turns errors into HTTP answers: problem details as of RFC 9457."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

import structlog
from litestar import Response
from litestar.exceptions import HTTPException, MethodNotAllowedException, ValidationException
from litestar.openapi.datastructures import ResponseSpec
from litestar.typing import FieldDefinition
from msgspec import Meta, Struct

from recollect.errors import (
    ErrorCode,
    ErrorKind,
    RecollectError,
    TokenExpired,
    TooManyRequests,
    Unauthenticated,
    WrongEndpoint,
)
from recollect_http.access_log import note_code
from recollect_http.requests import AnyRequest
from recollect_http.requests.argument_types import plain_words

STATUS = {
    ErrorKind.INVALID: 400,
    ErrorKind.UNAUTHENTICATED: 401,
    ErrorKind.FORBIDDEN: 403,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.METHOD_NOT_ALLOWED: 405,
    ErrorKind.CONFLICT: 409,
    ErrorKind.PRECONDITION_FAILED: 412,
    ErrorKind.TOO_LARGE: 413,
    ErrorKind.UNPROCESSABLE: 422,
    ErrorKind.PRECONDITION_REQUIRED: 428,
    ErrorKind.RATE_LIMITED: 429,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.INTERNAL: 500,
}
TITLES = {
    400: "Invalid request",
    401: "Not authenticated",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Timed out",
    409: "Conflict",
    412: "Precondition failed",
    413: "Too large",
    415: "Unsupported media type",
    421: "Misdirected request",
    422: "Unprocessable content",
    428: "Precondition required",
    429: "Too many requests",
    431: "Headers too large",
    500: "Internal error",
    503: "Unavailable",
    505: "HTTP version not supported",
}
HEADERS = {
    401: {"WWW-Authenticate": 'Bearer realm="recollect"'},
    405: {"Allow": "POST"},
    503: {"Retry-After": "2"},
}
CODES = {
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.METHOD_NOT_ALLOWED,
    413: ErrorCode.REQUEST_TOO_LARGE,
}
"""Codes of the errors that the framework raises; the others are invalid input."""
MEDIA_TYPE = "application/problem+json"

log = structlog.get_logger(__name__)


class Problem(Struct, omit_defaults=True, frozen=True):
    """Problem details (RFC 9457) with a stable code."""

    type: Annotated[str, Meta(description="Always `about:blank`: `code` says what is wrong")]
    title: Annotated[str, Meta(description="Short text for people, the same for each status")]
    status: Annotated[int, Meta(description="HTTP status of the response")]
    detail: Annotated[str, Meta(description="Sentence for people that says what is wrong and what to do")]
    code: Annotated[str, Meta(description="Stable code for programs, such as `graph_not_found`")]
    path: Annotated[
        str | None,
        Meta(description="Part of the input that is invalid, such as `items.0.text`; omitted if there is none"),
    ] = None


DESCRIPTIONS = {
    400: "The request is invalid, and nothing was done. `path` names the part that is invalid, if there is one. Codes: "
    "`invalid_input`, `kind_not_allowed`, `compacted`.",
    401: "The credential is missing or invalid. The response says which only of an access token that has expired, or "
    "that belongs elsewhere. Code: `unauthenticated`.",
    403: "The credential is valid, but its scopes, graphs or toolsets, or the tenant's plan, do not allow this. Codes: "
    "`scope_required`, `role_required`, `graph_not_allowed`, `toolset_not_allowed`, `expiry_exceeded`, "
    "`quota_exceeded`, `tenant_read_only`.",
    404: "It does not exist, or belongs to another tenant. The response does not say which. The code says what is "
    "missing. Codes: `not_found`, `graph_not_found`, `node_not_found`, `job_not_found`, `key_not_found` and others.",
    409: "The request conflicts with the current state. The code says how. Codes: `graph_exists`, `name_taken`, "
    "`idempotency_conflict`, `idempotency_done` and others.",
    412: "The resource does not match `If-Match`: it was changed in the meantime. Code: `precondition_failed`.",
    413: "The request, or the response to it, is too large. Codes: `request_too_large`, `reply_too_large`, "
    "`too_costly`, `job_storage_full`.",
    422: "The `Idempotency-Key` was used for another request. Code: `idempotency_mismatch`.",
    428: "The request replaces existing values, so it needs `If-Match` with the current ETag. Code: "
    "`precondition_required`.",
    429: "Too many requests, or too many at once. `Retry-After` says in how many seconds to try again. Codes: "
    "`rate_limited`, `too_many_concurrent_calls`, `too_many_failures`, `too_many_streams` and others.",
    503: "A service that Recollect needs is unavailable or busy. Send the same request again after `Retry-After`. "
    "Codes: `database_unavailable`, `busy`, `draining`, `tenant_moving` and others.",
}


class SharedSpec(ResponseSpec):
    """A response of many routes. Litestar copies routes when an app starts, and never changes their responses."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The same: nothing of it is changed."""
        return self


_SPECS = {
    status: SharedSpec(Problem, description=description, media_type=MEDIA_TYPE, generate_examples=False)
    for status, description in DESCRIPTIONS.items()
}
_CONDITIONAL = {412, 422, 428}
"""Statuses that are answered only where a request has a certain header, or needs it."""

RESPONSES = {status: spec for status, spec in _SPECS.items() if status not in _CONDITIONAL}
"""The problems that every route of the management API may answer, for its description."""

_EXAMPLE_DETAILS: dict[int, tuple[ErrorCode, str]] = {
    400: (ErrorCode.INVALID_INPUT, "Expected `str` of length <= 128"),
    401: (ErrorCode.UNAUTHENTICATED, "A valid API key is needed: Authorization: Bearer rcl_…"),
    403: (
        ErrorCode.SCOPE_REQUIRED,
        "This credential lacks the scope memory:write. Ask an admin for a key that has it.",
    ),
    404: (ErrorCode.GRAPH_NOT_FOUND, "There is no graph named 'people'."),
    409: (ErrorCode.GRAPH_EXISTS, "There is already a graph named 'people'."),
    412: (ErrorCode.PRECONDITION_FAILED, "This was changed since you read it. Read it again, and decide anew."),
    413: (
        ErrorCode.REQUEST_TOO_LARGE,
        "A request may have at most 200000 values, including all those in its lists and objects.",
    ),
    422: (
        ErrorCode.IDEMPOTENCY_MISMATCH,
        "This key was already used for another request. Use a new key for each request, and repeat a request "
        "unchanged.",
    ),
    428: (
        ErrorCode.PRECONDITION_REQUIRED,
        "Send If-Match with the ETag that you got when you read this",
    ),
    429: (
        ErrorCode.RATE_LIMITED,
        "All 300 requests that this key may send in 60 seconds are used. Try again in 4 seconds.",
    ),
    503: (ErrorCode.DATABASE_UNAVAILABLE, "The database is unavailable. Try again in a moment."),
}
EXAMPLES = {
    str(status): {"type": "about:blank", "title": TITLES[status], "status": status, "detail": detail, "code": str(code)}
    | ({"path": "name"} if status == 400 else {})
    for status, (code, detail) in _EXAMPLE_DETAILS.items()
}
"""An example of a problem of each of these statuses, for their description."""


ACT_RESPONSES = RESPONSES | {422: _SPECS[422]}
"""For a route that acts, and so takes an idempotency key."""

CHANGE_RESPONSES = ACT_RESPONSES | {412: _SPECS[412]}
"""For a route that changes one thing, and takes `If-Match`."""

REPLACE_RESPONSES = CHANGE_RESPONSES | {428: _SPECS[428]}
"""For a route that replaces one thing as a whole, and needs `If-Match`."""

_UNCHANGED = "The resource is still in the version that `If-None-Match` names. The response has no body."
TAGGED_RESPONSES = RESPONSES | {304: SharedSpec(None, description=_UNCHANGED, generate_examples=False)}
"""For a route that answers with one thing and its entity tag."""


def problem_response(error: Exception, request: AnyRequest) -> Response["Problem"]:
    """Any error as problem details. Server errors are logged in full and answered with one plain sentence."""
    answer = _answer_to(ungrouped(error), request)
    note_code(request.scope, answer.content.code)
    return answer


def ungrouped(error: Exception) -> Exception:
    """The error that a dependency made of the one of its handler: Litestar raises it as the only one of a group."""
    match error:
        case ExceptionGroup(exceptions=(RecollectError() as only,)):
            return only
    return error


def _answer_to(error: Exception, request: AnyRequest) -> Response["Problem"]:
    match error:
        case TooManyRequests():
            return _problem(429, error.code, error.message, None, {"Retry-After": str(error.seconds)})
        case TokenExpired() | WrongEndpoint():
            return _problem(401, error.code, error.message, None, {"WWW-Authenticate": challenge(error)})
        case RecollectError():
            return _problem(STATUS[error.kind], error.code, error.message, error.path)
        case ValidationException():
            detail, path = _validation(error, request)
            return _problem(400, ErrorCode.INVALID_INPUT, detail, path)
        case MethodNotAllowedException():
            return _problem(405, ErrorCode.METHOD_NOT_ALLOWED, error.detail, None, {"Allow": _allowed(error)})
        case HTTPException() if error.status_code < 500:
            code = CODES.get(error.status_code, ErrorCode.INVALID_INPUT)
            return _problem(error.status_code, code, error.detail, None)
    log.error("request failed", route=request.scope.get("path_template"), exc_info=error)
    detail = "Something went wrong on our side. Try again; if it happens again, tell an operator."
    return _problem(500, ErrorCode.INTERNAL, detail, None)


def challenge(error: Unauthenticated) -> str:
    """The WWW-Authenticate of a refused credential (RFC 6750, 3), which says why where the error says so."""
    description = error.description if isinstance(error, WrongEndpoint) else error.message
    return f'{HEADERS[401]["WWW-Authenticate"]}, error="invalid_token", error_description="{description}"'


def _problem(
    status: int, code: ErrorCode, detail: str, path: str | None, headers: dict[str, str] | None = None
) -> Response["Problem"]:
    return Response(
        Problem("about:blank", TITLES.get(status, "Error"), status, detail, str(code), path),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers=headers or HEADERS.get(status),
    )


def _allowed(error: MethodNotAllowedException) -> str:
    """The methods of the routes at the address."""
    methods = (error.headers or {}).get("allow", "")
    return ", ".join(sorted(method.strip() for method in methods.split(",")))


def _validation(error: ValidationException, request: AnyRequest) -> tuple[str, str | None]:
    """The faults that Litestar found in query or body, in one text, and the name of the first parameter at fault."""
    parameters = request.route_handler.parsed_fn_signature.parameters
    faults = [fault for fault in error.extra or [] if isinstance(fault, dict)] if isinstance(error.extra, list) else []
    names = [_name(fault["key"], parameters) if "key" in fault else None for fault in faults]
    messages = [
        f"{name}: {plain_words(fault['message'])}" if name is not None else str(fault.get("message", ""))
        for name, fault in zip(names, faults, strict=True)
    ]
    return "; ".join(messages) or error.detail, next(filter(None, names), None)


def _name(key: str, parameters: Mapping[str, FieldDefinition]) -> str:
    """The name of a parameter for clients: one named `from` has another name in Python."""
    parameter = parameters.get(key)
    return getattr(parameter and parameter.kwarg_definition, "name", None) or key
