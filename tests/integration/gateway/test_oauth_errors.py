"""Errors of the endpoints of OAuth clients are error objects, whatever refuses the request."""

from uuid import uuid4

import pytest
from pydantic import SecretStr

from recollect.settings import Settings
from tests.support.gateway import RunningGateway, serving
from tests.support.oauth import METADATA
from tests.support.timeouts import MAX_WAIT_SECONDS


async def test_too_many_requests_are_refused_by_an_error_object(settings: Settings, subtests: pytest.Subtests) -> None:
    bounds = {
        "oauth_registrations_per_minute": 1,
        "oauth_requests_per_minute": 2,
        "rate_limit_wait_seconds": MAX_WAIT_SECONDS,
        "key_secret": SecretStr(str(uuid4())),  # Other tests use this address, too.
    }
    with serving(settings.model_copy(update=bounds)) as gateway:
        async with gateway.http() as http:
            answers = [await http.post("/oauth/register", json=METADATA) for _ in range(2)]
            for path in ("/oauth/register", "/oauth/token", "/oauth/revoke", "/oauth/introspect"):
                answers.append(await http.post(path, data={}))
    for answer in answers[1:]:
        with subtests.test(str(answer.url)):
            assert answer.status_code == 429
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.headers["content-type"].partition(";")[0] == "application/json"
            assert answer.headers["cache-control"] == "no-store"
            assert answer.json()["error"] == "temporarily_unavailable"
            assert "Try again" in answer.json()["error_description"]


async def test_other_refusals_are_error_objects_too(gateway: RunningGateway, subtests: pytest.Subtests) -> None:
    async with gateway.http() as http:
        for method, path, body, status in (
            ("POST", "/oauth/register", b"x" * 40_000, 413),
            ("POST", "/oauth/token", b"\xff", 400),
            ("GET", "/oauth/token", b"", 405),
            ("DELETE", "/oauth/register", b"", 405),
        ):
            with subtests.test(f"{method} {path}"):
                answer = await http.request(method, path, content=body)
                assert answer.status_code == status
                if status != 405:
                    assert answer.json()["error"] == "invalid_request"
                    assert answer.json()["error_description"]
