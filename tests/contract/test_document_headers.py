"""The OpenAPI documents list the headers that responses have, which tests/slow/fuzz compares with responses."""

from typing import Any

import pytest

from tests.contract.test_document_texts import DOCUMENTS, GATEWAY, OPERATOR, operations
from tests.support.documents import responses_of


def headers_of(document: dict[str, Any], name: str, status: str) -> set[str]:
    """The headers that are listed with a response of an operation."""
    return set(responses_of(document, dict(operations(document))[name])[status].get("headers", {}))


def test_a_read_of_one_thing_has_its_tag() -> None:
    for status in ("200", "304"):
        assert headers_of(GATEWAY, "GET /v1/graphs/{name}", status) == {"ETag", "RateLimit", "RateLimit-Policy"}
        assert headers_of(OPERATOR, "GET /operator/v1/tenants/{slug}", status) == {"ETag"}
    assert "ETag" not in headers_of(GATEWAY, "GET /v1/graphs", "200")


def test_an_act_may_be_replayed_unless_its_response_is_not_stored() -> None:
    assert "Idempotency-Replayed" in headers_of(GATEWAY, "POST /v1/keys", "201")
    assert "Idempotency-Replayed" not in headers_of(GATEWAY, "POST /v1/graphs/{name}/erase", "200")
    assert "Idempotency-Replayed" not in headers_of(GATEWAY, "POST /v1/graphs/{name}/recall", "200")


@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("GET /v1/graphs/{name}/export", {"Recollect-Revision", "Recollect-Facts-Left-Out"}),
        ("GET /v1/jobs/{job_id}/output", {"Content-Disposition"}),
        ("GET /v1/audit/export", {"Content-Disposition"}),
        ("GET /health/ready", set()),
    ],
)
def test_a_response_has_its_own_headers_and_those_about_rates(name: str, headers: set[str]) -> None:
    assert headers_of(GATEWAY, name, "200") == headers | {"RateLimit", "RateLimit-Policy"}


@DOCUMENTS
def test_each_refusal_says_how_to_go_on(document: dict[str, Any]) -> None:
    needed = {"401": "WWW-Authenticate", "429": "Retry-After", "503": "Retry-After"}
    for name, operation in operations(document):
        for status in needed.keys() & operation["responses"].keys():
            assert needed[status] in headers_of(document, name, status), (name, status)


def test_health_lists_its_refusals() -> None:
    assert set(dict(operations(GATEWAY))["GET /health/ready"]["responses"]) == {"200", "429", "503"}


@DOCUMENTS
def test_each_header_that_is_listed_is_described_once(document: dict[str, Any]) -> None:
    listed = [
        header
        for _, operation in operations(document)
        for response in responses_of(document, operation).values()
        for header in response.get("headers", {}).values()
    ]
    referred = {header["$ref"].rpartition("/")[2] for header in listed if "$ref" in header}
    described = [*document["components"]["headers"].values(), *(header for header in listed if "$ref" not in header)]
    assert referred == set(document["components"]["headers"])
    assert [header for header in described if " " not in header["description"] or "schema" not in header] == []
