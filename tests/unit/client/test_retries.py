"""When a request is sent again: the steps of sending one, to which the test hands what came back."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import msgspec
import pytest

from recollect_client import (
    ApiError,
    ConflictError,
    ConnectionError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    QuotaExceededError,
    Retries,
    ServerError,
    TooManyRequestsError,
    UnauthenticatedError,
    UnavailableError,
    VersionConflictError,
)
from recollect_client.errors import Problem, error_of, stream_ended
from recollect_client.requests import Request
from recollect_client.retries import KEY_HEADER, SendAttempt, Sending, Wait, retry_after

READ: Request[Any] = Request("GET", "/v1/tenant", dict)
WRITE: Request[Any] = Request("POST", "/v1/keys", dict, body={}, is_write=True)
REMEMBER: Request[Any] = Request("POST", "/v1/graphs/a/memories", dict, body={}, is_write=True, is_repeatable=True)
LOST = ConnectionError("no answer")


def answered(status: int, code: str = "", **headers: str) -> httpx2.Response:
    body = msgspec.json.encode({"code": code, "detail": "so it is", "status": status}) if code else b"<html>"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, content=body, headers=named, request=httpx2.Request("GET", "https://host/v1"))


def played(sending: Sending, *outcomes: httpx2.Response | ConnectionError) -> tuple[list[str | None], list[float], Any]:
    """The idempotency keys of the attempts, the waits, and the response or the error."""
    keys, waits, to_come = list[str | None](), list[float](), list(outcomes)
    steps = sending.steps()
    step = next(steps)
    try:
        while True:
            if isinstance(step, Wait):
                waits.append(step.seconds)
                step = steps.send(None)
            else:
                assert isinstance(step, SendAttempt)
                keys.append(step.headers.get(KEY_HEADER))
                step = steps.send(to_come.pop(0))
    except StopIteration as done:
        return keys, waits, done.value
    except (ApiError, ConnectionError) as error:
        return keys, waits, error


def test_what_may_pass_is_tried_again(subtests: pytest.Subtests) -> None:
    for outcome in (LOST, answered(502), answered(503, "busy"), answered(504), answered(429, "rate_limited")):
        with subtests.test(str(outcome)):
            _, waits, response = played(Sending(READ, Retries()), outcome, answered(200))
            assert response.status_code == 200
            assert 0.25 <= waits[0] <= 0.5


def test_a_refusal_is_not_repeated(subtests: pytest.Subtests) -> None:
    for status in (400, 401, 403, 404, 409, 412, 422, 500, 301):
        with subtests.test(status=status):
            keys, waits, error = played(Sending(WRITE, Retries()), answered(status, "some_code"))
            assert (len(keys), waits, error.status, error.code) == (1, [], status, "some_code")


def test_every_attempt_of_a_write_has_the_same_key() -> None:
    outcomes = (LOST, answered(409, "idempotency_conflict"), answered(503), answered(201))
    keys, waits, response = played(Sending(WRITE, Retries()), *outcomes)
    assert response.status_code == 201
    assert (len(keys), len(set(keys)), len(waits)) == (4, 1, 3)
    assert keys[0]
    assert played(Sending(WRITE, Retries()), answered(201))[0] != keys[:1]


def test_a_key_of_the_callers_own_is_sent() -> None:
    request: Request[Any] = Request("POST", "/v1/keys", dict, is_write=True, idempotency_key="mine")
    assert played(Sending(request, Retries(), without_key=True), answered(201))[0] == ["mine"]


def test_a_request_that_reads_has_no_key() -> None:
    assert played(Sending(READ, Retries()), answered(200))[0] == [None]


def test_where_keys_are_used_up_what_may_be_repeated_goes_without() -> None:
    sending = Sending(REMEMBER, Retries())
    used_up = answered(429, "too_many_idempotency_keys", retry_after="3600")
    keys, waits, response = played(sending, used_up, LOST, answered(200))
    assert (bool(keys[0]), keys[1:], len(waits), response.status_code) == (True, [None, None], 1, 200)
    assert sending.was_refused_key
    assert played(Sending(REMEMBER, Retries(), without_key=True), answered(200))[0] == [None]
    keys, waits, error = played(Sending(WRITE, Retries()), used_up)
    assert (len(keys), waits, error.code) == (1, [], "too_many_idempotency_keys")
    assert played(Sending(WRITE, Retries(), without_key=True), answered(201))[0] != [None]


def test_attempts_are_bounded() -> None:
    keys, waits, error = played(Sending(READ, Retries(attempts=3)), LOST, LOST, LOST)
    assert (len(keys), len(waits), error) == (3, 2, LOST)


def test_pauses_double_up_to_a_bound() -> None:
    retries = Retries(first_wait=1.0, longest_wait=4.0)
    for attempt, longest in enumerate((1.0, 2.0, 4.0, 4.0), start=2):
        assert longest / 2 <= retries.wait_before(attempt, None) <= longest


def test_an_answer_says_how_long_to_wait() -> None:
    busy = answered(503, "busy", retry_after="2")
    _, waits, _ = played(Sending(READ, Retries()), busy, busy, answered(200))
    assert waits == [2.0, 2.0]


def test_nobody_waits_longer_than_they_want() -> None:
    limited = answered(429, "rate_limited", retry_after="40")
    keys, waits, error = played(Sending(READ, Retries(total_wait=60)), limited, limited)
    assert (len(keys), waits) == (2, [40.0])
    assert (type(error), error.retry_after) == (TooManyRequestsError, 40.0)


def test_retry_after_is_a_number_or_a_date() -> None:
    assert retry_after("7") == 7.0
    assert retry_after("Mon, 01 Jan 2024 00:00:00 GMT") == 0.0
    assert 3500 < (retry_after(format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)) or 0) <= 3600
    assert [retry_after(header) for header in (None, "", "soon", "-1", "٣")] == [None] * 5


def test_errors_are_a_tree_by_code_and_status(subtests: pytest.Subtests) -> None:
    for status, code, kind in (
        (400, "invalid_input", InvalidInputError),
        (413, "request_too_large", InvalidInputError),
        (401, "unauthenticated", UnauthenticatedError),
        (403, "scope_required", ForbiddenError),
        (403, "quota_exceeded", QuotaExceededError),
        (404, "graph_not_found", NotFoundError),
        (409, "name_taken", ConflictError),
        (409, "version_conflict", VersionConflictError),
        (412, "precondition_failed", VersionConflictError),
        (429, "rate_limited", TooManyRequestsError),
        (500, "internal_error", ServerError),
        (503, "draining", UnavailableError),
        (404, "a_code_of_tomorrow", NotFoundError),
        (507, "another", ServerError),
    ):
        with subtests.test(code):
            error = error_of(status, Problem(code, "Title", "Detail", "items.0"), 3.0)
            assert type(error) is kind
            assert (error.status, error.code, error.title, error.detail) == (status, code, "Title", "Detail")
            assert (error.path, error.retry_after) == ("items.0", 3.0)
            assert str(error) == f"Detail ({code}, at items.0)"


def test_an_answer_without_an_error_of_ours_says_from_where() -> None:
    *_, error = played(Sending(READ, Retries()), answered(404))
    assert (error.code, str(error)) == ("", "https://host answered 404 without an error of Recollect")


def test_a_stream_that_the_gateway_ended_says_why() -> None:
    assert type(stream_ended("unauthenticated")) is UnauthenticatedError
    assert type(stream_ended("graph_not_found")) is NotFoundError
    assert type(stream_ended("graph_not_allowed")) is ForbiddenError
    assert stream_ended("graph_not_allowed").code == "graph_not_allowed"
