"""Every error of the client.

    RecollectError
      ConfigurationError           the client cannot be made like this
      ConnectionError              no answer came, or not a whole one
        TimeoutError               not in time
      UnexpectedAnswerError        what answered is no Recollect gateway, or a much older one
      ChangesLostError             a stream of changes cannot go on where it was: read the graph again
      ApiError                     the gateway refused: `status`, `code`, `detail`, `path`, `retry_after`
        InvalidInputError          what was sent cannot be accepted; `path` names where
        UnauthenticatedError       no key or token, or one that is not valid
        ForbiddenError             the credential may not do this
          QuotaExceededError       the plan does not allow it
        NotFoundError              it does not exist, or belongs to somebody else
        ConflictError              the present state does not allow it
          VersionConflictError     somebody else changed it since it was read
        TooManyRequestsError       too often, or too much at once; try again in `retry_after` seconds
        ServerError                something failed in the gateway, or in front of it
          UnavailableError         it is unreachable or busy; try again in `retry_after` seconds

`code` is stable, for programs (docs/api.md); messages are for people.
"""

import builtins
from http import HTTPStatus

from msgspec import Struct


class Problem(Struct, frozen=True):
    """Problem details (RFC 9457), as the gateway sends them."""

    code: str = ""
    title: str = ""
    detail: str = ""
    path: str | None = None


class RecollectError(Exception):
    """Base of all errors of the client."""


class ConfigurationError(RecollectError, ValueError):
    """The client cannot be made like this."""


class ConnectionError(RecollectError, builtins.ConnectionError):
    """No answer came, or not a whole one. What was asked for may have been done."""


class TimeoutError(ConnectionError, builtins.TimeoutError):
    """The answer did not come in time."""


class UnexpectedAnswerError(RecollectError):
    """What answered is no Recollect gateway, or one that does not know what was asked."""


class ChangesLostError(RecollectError):
    """The graph was replaced by another of its name, or by an older state: read it again.

    Changes go on after `revision`.
    """

    def __init__(self, revision: int) -> None:
        super().__init__(f"The graph is not the one that was followed: read it again. It is at revision {revision}.")
        self.revision = revision


class ApiError(RecollectError):
    """The gateway refused. `code` says why, `path` which part of the input, `retry_after` (seconds) when to repeat."""

    def __init__(self, status: int, problem: Problem, retry_after: float | None = None) -> None:
        super().__init__(_message(status, problem))
        self.status = status
        self.code = problem.code
        self.title = problem.title
        self.detail = problem.detail
        self.path = problem.path
        self.retry_after = retry_after


class InvalidInputError(ApiError):
    """What was sent cannot be accepted."""


class UnauthenticatedError(ApiError):
    """There is no key or token, or it is not valid."""


class ForbiddenError(ApiError):
    """The credential may not do this."""


class QuotaExceededError(ForbiddenError):
    """The plan of the tenant does not allow it."""


class NotFoundError(ApiError):
    """It does not exist, or belongs to another tenant."""


class ConflictError(ApiError):
    """The present state does not allow it."""


class VersionConflictError(ConflictError):
    """It was changed by another caller since it was read."""


class TooManyRequestsError(ApiError):
    """It was asked too often, or too much at once."""


class ServerError(ApiError):
    """Something failed in the gateway, or in front of it."""


class UnavailableError(ServerError):
    """The gateway, or something that it needs, is unreachable or busy."""


_BY_CODE: dict[str, type[ApiError]] = {
    "quota_exceeded": QuotaExceededError,
    "version_conflict": VersionConflictError,
    "precondition_failed": VersionConflictError,
}
"""Errors that are more than their status says."""

_BY_STATUS: dict[int, type[ApiError]] = {
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    412: ConflictError,
    429: TooManyRequestsError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}

_OF_A_CREDENTIAL = {"unauthenticated": 401, "graph_not_found": 404}


def error_of(status: int, problem: Problem, retry_after: float | None = None) -> ApiError:
    """The error for an answer: by its code, else by its status."""
    kind = _BY_CODE.get(problem.code) or _BY_STATUS.get(status) or _of_class(status)
    return kind(status, problem, retry_after)


def stream_ended(reason: str) -> ApiError:
    """The error for a stream that the gateway ended for good: its credential is no longer valid or sufficient."""
    return error_of(_OF_A_CREDENTIAL.get(reason, 403), Problem(reason, detail="The gateway ended the stream"))


def _of_class(status: int) -> type[ApiError]:
    return ServerError if status >= HTTPStatus.INTERNAL_SERVER_ERROR else InvalidInputError


def _message(status: int, problem: Problem) -> str:
    text = problem.detail or problem.title or f"The gateway answered {status}"
    marks = ", ".join(filter(None, [problem.code, problem.path and f"at {problem.path}"]))
    return f"{text} ({marks})" if marks else text
