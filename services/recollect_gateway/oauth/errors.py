"""Errors of the endpoints that OAuth clients call, as error objects (RFC 6749, 5.2): they read no other form."""

from litestar import Response
from litestar.types import ExceptionHandlersMap

from recollect_gateway.oauth.protocol import NOT_STORED
from recollect_http.problems import problem_response
from recollect_http.requests import AnyRequest


def oauth_error(request: AnyRequest, error: Exception) -> Response[dict[str, str]]:
    """An error that these endpoints do not answer themselves, such as too many requests, with its headers."""
    problem = problem_response(error, request)
    headers = {name: value for name, value in problem.headers.items() if name.lower() != "content-type"}
    body = {"error": _code_of(problem.status_code or 500), "error_description": problem.content.detail}
    return Response(body, status_code=problem.status_code, headers={**headers, **NOT_STORED})


def _code_of(status: int) -> str:
    """The registered code that says what a client can do about it: wait, report, or send another request."""
    if status in (429, 503):
        return "temporarily_unavailable"
    return "server_error" if status >= 500 else "invalid_request"


ERROR_HANDLERS: ExceptionHandlersMap = {Exception: oauth_error}
"""What a controller of such endpoints declares."""
