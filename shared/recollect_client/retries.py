"""When a request is sent again, and after how long."""

from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import uniform
from typing import Any
from uuid import uuid4

import httpx2
import msgspec

from recollect_client.errors import ApiError, ConnectionError, Problem, TimeoutError, error_of
from recollect_client.requests import Request

KEY_HEADER = "Idempotency-Key"
_TRANSIENT = frozenset({429, 502, 503, 504})
_KEYS_USED_UP = "too_many_idempotency_keys"
_IN_PROGRESS = "idempotency_conflict"


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a request is sent (`attempts`), and for how many seconds it may wait in all between the attempts.

    An answer's `Retry-After` is waited for as long as it says; if that is more than is left of `total_wait`, the error
    is raised at once, and its `retry_after` says when to try again. Without it, the pauses double from `first_wait`.
    """

    attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = 10.0
    total_wait: float = 60.0

    def wait_before(self, attempt: int, retry_after: float | None) -> float:
        """Seconds before that attempt, which counts from 2."""
        if retry_after is not None:
            return retry_after
        longest = min(self.first_wait * 2.0 ** (attempt - 2), self.longest_wait)
        return uniform(0.5 * longest, longest)  # noqa: S311 - so that clients do not come back all at once


NO_RETRIES = Retries(attempts=1)


@dataclass(frozen=True, slots=True)
class SendAttempt:
    """Send the request with these headers, and hand in the response, or the error of the connection."""

    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for that many seconds."""

    seconds: float


Step = SendAttempt | Wait
Outcome = httpx2.Response | ConnectionError | None
"""What came of a step: of an attempt a response, which has been read, or an error; of a wait nothing."""


@dataclass(slots=True)
class Sending:
    """How one request is sent, whoever waits and sends: with or without asyncio.

    `without_key`: the credential has no idempotency key left, so that what may be repeated without one has none.
    `was_refused_key`: that was found out.
    """

    request: Request[Any]
    retries: Retries
    without_key: bool = False
    was_refused_key: bool = field(default=False, init=False)
    waited: float = field(default=0.0, init=False)

    def steps(self) -> Generator[Step, Outcome, httpx2.Response]:
        """The steps to the response of a success. Raises ConnectionError or ApiError."""
        headers, attempt = self._headers(), 1
        while True:
            outcome = yield SendAttempt(headers)
            if isinstance(outcome, httpx2.Response) and outcome.is_success:
                return outcome
            error = outcome if isinstance(outcome, ConnectionError) else refusal(outcome)
            if self._has_no_key_left(error) and headers.pop(KEY_HEADER, ""):
                self.was_refused_key = True
                continue
            attempt += 1
            yield Wait(self._wait_before(attempt, error))

    def _headers(self) -> dict[str, str]:
        headers = dict(self.request.headers)
        asked = self.request.idempotency_key
        if self.request.is_write and (asked or not (self.without_key and self.request.is_repeatable)):
            headers[KEY_HEADER] = asked or str(uuid4())
        return headers

    def _has_no_key_left(self, error: ApiError | ConnectionError) -> bool:
        return self.request.is_repeatable and isinstance(error, ApiError) and error.code == _KEYS_USED_UP

    def _wait_before(self, attempt: int, error: ApiError | ConnectionError) -> float:
        """Seconds before the next attempt; raises the error if there is none."""
        seconds = self.retries.wait_before(attempt, error.retry_after if isinstance(error, ApiError) else None)
        self.waited += seconds
        if attempt > self.retries.attempts or not is_transient(error) or self.waited > self.retries.total_wait:
            raise error
        return seconds


def is_transient(error: ApiError | ConnectionError) -> bool:
    """Whether the same request may succeed later."""
    return isinstance(error, ConnectionError) or (
        error.code != _KEYS_USED_UP and (error.status in _TRANSIENT or error.code == _IN_PROGRESS)
    )


def connection_error(error: httpx2.TransportError) -> ConnectionError:
    """The client's error for an error of the connection."""
    kind = TimeoutError if isinstance(error, httpx2.TimeoutException) else ConnectionError
    wrapped = kind(f"The gateway does not answer ({str(error) or type(error).__name__})")
    wrapped.__cause__ = error
    return wrapped


def refusal(response: httpx2.Response | None) -> ApiError:
    """The error of an answer that is not a success, which has been read."""
    assert response is not None, "an attempt has a response or an error"
    try:
        problem = msgspec.json.decode(response.content, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        where = f"{response.request.url.scheme}://{response.request.url.netloc.decode()}"
        problem = Problem(detail=f"{where} answered {response.status_code} without an error of Recollect")
    return error_of(response.status_code, problem, retry_after(response.headers.get("retry-after")))


def retry_after(header: str | None) -> float | None:
    """Seconds that a `Retry-After` asks for: a number, or a date."""
    if not header:
        return None
    if header.isascii() and header.isdecimal():
        return float(header)
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None
