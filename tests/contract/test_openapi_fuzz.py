"""Every route answers as the OpenAPI document says, whatever it is sent: schemathesis makes the requests up."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import Case, CheckFunction, GenerationMode, openapi
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.examples import examples
from tests.support.gateway import RunningGateway
from tests.support.routes import OPEN_TO_ALL
from tests.support.timeouts import MAX_WAIT_SECONDS

FROZEN = Path(__file__).parent / "__snapshots__" / "test_snapshots" / "test_openapi.json"
DOCUMENT: dict[str, Any] = json.loads(FROZEN.read_text())
"""What the gateway serves: test_snapshots compares the two."""

SCHEMA = openapi.from_dict(DOCUMENT)
OPERATIONS = [(method, path) for path, methods in DOCUMENT["paths"].items() for method in methods]
OF_TENANTS = [(method, path) for method, path in OPERATIONS if path.startswith("/v1/")]

AS_DOCUMENTED: list[CheckFunction] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def cases(method: str, path: str, mode: GenerationMode, **path_parameters: str) -> st.SearchStrategy[Case[Any]]:
    return SCHEMA[path][method].as_strategy(generation_mode=mode, path_parameters=path_parameters or None)


def named(path: str) -> dict[str, str]:
    """Names that are made up are refused, some as no part of a path, and nothing else is tried."""
    return {name: known for name, known in (("name", "default"), ("node", "Ada")) if f"{{{name}}}" in path}


def send(gateway: RunningGateway, case: Case[Any], checks: list[CheckFunction], key: str | None = None) -> int:
    """The status of the answer, which passed the checks."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    response = case.call(base_url=gateway.url, headers=headers, timeout=MAX_WAIT_SECONDS)
    case.validate_response(response, checks=checks)
    return response.status_code


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_a_request_that_is_as_documented_is_answered_as_documented(
    gateway: RunningGateway, admin_key: str, method: str, path: str
) -> None:
    @examples(4)
    @given(cases(method, path, GenerationMode.POSITIVE, **named(path)))
    def check(case: Case[Any]) -> None:
        send(gateway, case, AS_DOCUMENTED, admin_key)

    check()


@pytest.mark.parametrize(("method", "path"), OF_TENANTS)
def test_a_request_that_is_not_as_documented_is_refused_as_documented(
    gateway: RunningGateway, admin_key: str, method: str, path: str
) -> None:
    @examples(4)
    @given(cases(method, path, GenerationMode.NEGATIVE))
    def check(case: Case[Any]) -> None:
        send(gateway, case, [*AS_DOCUMENTED, negative_data_rejection], admin_key)

    check()


@pytest.mark.parametrize(("method", "path"), [route for route in OF_TENANTS if route[1] not in OPEN_TO_ALL])
def test_nothing_is_answered_without_a_key(gateway: RunningGateway, method: str, path: str) -> None:
    @examples(2)
    @given(cases(method, path, GenerationMode.POSITIVE, **named(path)))
    def check(case: Case[Any]) -> None:
        assert send(gateway, case, AS_DOCUMENTED) == 401

    check()
