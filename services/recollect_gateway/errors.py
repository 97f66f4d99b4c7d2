"""How errors leave through HTTP: one place. Problem details as of RFC 9457."""

from typing import Any

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException

from recollect.errors import ErrorCode, ErrorKind, RecollectError

STATUS = {
    ErrorKind.INVALID: 400,
    ErrorKind.UNAUTHENTICATED: 401,
    ErrorKind.FORBIDDEN: 403,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.METHOD_NOT_ALLOWED: 405,
    ErrorKind.CONFLICT: 409,
    ErrorKind.TOO_LARGE: 413,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.INTERNAL: 500,
}
TITLES = {
    400: "Invalid request",
    401: "Not authenticated",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Too large",
    500: "Internal error",
    503: "Unavailable",
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


def problem_response(error: Exception, request: Request[Any, Any, Any]) -> Response[dict[str, Any]]:
    """Any error as problem details; faults of ours are logged whole and told as one plain sentence."""
    match error:
        case RecollectError():
            return _problem(STATUS[error.kind], error.code, error.message, error.path)
        case ValidationException():
            return _problem(400, ErrorCode.INVALID_INPUT, _validation(error), None)
        case HTTPException() if error.status_code < 500:
            code = CODES.get(error.status_code, ErrorCode.INVALID_INPUT)
            return _problem(error.status_code, code, error.detail, None)
    log.error("request failed", path=request.url.path, exc_info=error)
    detail = "Something went wrong on our side. Try again; if it stays, tell an operator."
    return _problem(500, ErrorCode.INTERNAL, detail, None)


def _problem(status: int, code: ErrorCode, detail: str, path: str | None) -> Response[dict[str, Any]]:
    content = {
        "type": "about:blank",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        "code": code,
    }
    return Response(
        content | ({"path": path} if path else {}),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers=HEADERS.get(status),
    )


def _validation(error: ValidationException) -> str:
    """What was wrong and where, as Litestar found it in query or body."""
    places = [place for place in error.extra or [] if isinstance(place, dict)] if isinstance(error.extra, list) else []
    said = [
        f"{place['key']}: {place['message']}" if "key" in place else str(place.get("message", "")) for place in places
    ]
    return "; ".join(said) or error.detail
