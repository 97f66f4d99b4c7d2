"""The OpenAPI document of the operator API is frozen, and its examples match its schemas."""

from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from recollect.settings import Settings
from recollect_operator.app import create_app
from tests.support.documents import responses_of

PROBLEM, JSON = "application/problem+json", "application/json"


@pytest.fixture(scope="module")
async def document(settings: Settings) -> dict[str, Any]:
    """The document as it is served, without a key."""
    app = create_app(settings)
    transport = httpx2.ASGITransport(app)  # type: ignore[arg-type]  # the types of another framework
    async with httpx2.AsyncClient(transport=transport, base_url="http://operator") as http:
        answer = await http.get("/operator/v1/openapi.json")
    told: dict[str, Any] = answer.json()
    return told


async def test_operator_openapi_matches_snapshot(document: dict[str, Any], snapshot: SnapshotAssertion) -> None:
    frozen = document | {"info": {name: value for name, value in document["info"].items() if name != "version"}}
    assert frozen == snapshot.use_extension(JSONSnapshotExtension)
    assert document["openapi"].startswith("3.1")


async def test_each_body_has_a_valid_example(document: dict[str, Any]) -> None:
    shown = 0
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            parts = [("request", told.get("requestBody", {})), *responses_of(document, told).items()]
            for part, described in parts:
                for content in described.get("content", {}).values():
                    assert "example" in content, (method, path, part)
                    schema = content["schema"] | {"components": document["components"]}
                    faults = [error.message for error in Draft202012Validator(schema).iter_errors(content["example"])]
                    assert faults == [], (method, path, part)
                    shown += 1
    assert shown > 100


async def test_every_operation_needs_a_key_and_lists_its_errors(document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        assert path.startswith("/operator/v1/")
        for told in methods.values():
            assert told["security"] == [{"operatorKey": []}]
            assert {"400", "401", "404", "429", "503"} <= told["responses"].keys()
            assert told["summary"]
