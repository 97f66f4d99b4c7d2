"""What a visitor of /v1/docs sees first: memories, fields in the order of the bodies, a key, and a graph to try."""

from typing import Any

import pytest

from recollect_gateway.operations.recall import RecallBody
from recollect_gateway.operations.remember import RememberItem
from recollect_http.openapi.parameters import EXAMPLES
from tests.support.gateway import RunningGateway

BEGIN = "/v1/docs/begin.js"
VERBS = ["memories", "conversations", "recall", "relate", "revise", "forget", "explore"]


@pytest.fixture
async def document(gateway: RunningGateway) -> dict[str, Any]:
    """The document as it is served: the snapshot is sorted."""
    async with gateway.http() as http:
        served: dict[str, Any] = (await http.get("/v1/openapi.json")).json()
    return served


async def test_memories_are_the_first_group(document: dict[str, Any]) -> None:
    assert [tag["name"] for tag in document["tags"]][:3] == ["memories", "nodes", "graphs"]
    told = [path for path, methods in document["paths"].items() if methods.get("post", {}).get("tags") == ["memories"]]
    assert [path.rpartition("/")[2] for path in told] == VERBS
    assert list(document["paths"])[: len(VERBS)] == told
    assert "memory" in document["info"]["title"]
    assert document["info"]["description"].startswith("Store and recall memories")


async def test_fields_keep_the_order_of_their_bodies(document: dict[str, Any], gateway: RunningGateway) -> None:
    for body in (RecallBody, RememberItem):
        fields = list(document["components"]["schemas"][body.__name__]["properties"])
        assert fields == list(body.__struct_encode_fields__)
    async with gateway.http() as http:
        begin = (await http.get(BEGIN)).text
    assert 'orderSchemaPropertiesBy: "preserve"' in begin
    assert "orderRequiredPropertiesFirst: false" in begin


async def test_a_key_is_preselected(document: dict[str, Any], gateway: RunningGateway) -> None:
    async with gateway.http() as http:
        assert 'preferredSecurityScheme: "apiKey"' in (await http.get(BEGIN)).text
    assert "apiKey" in document["components"]["securitySchemes"]


async def test_each_graph_and_node_in_an_address_has_an_example(document: dict[str, Any]) -> None:
    told = [
        (parameter["name"], parameter.get("example"))
        for methods in document["paths"].values()
        for operation in methods.values()
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "path" and parameter["name"] in EXAMPLES
    ]
    assert len(told) > 20
    assert set(told) == set(EXAMPLES.items())


async def test_the_audit_log_is_plain_text_for_clients_that_ask_for_it(gateway: RunningGateway, admin_key: str) -> None:
    """Generated clients know no lines of JSON."""
    async with gateway.http(admin_key) as http:
        for accept, media_type in (
            ("text/plain", "text/plain"),
            ("*/*", "application/x-ndjson"),
            ("application/x-ndjson, text/plain", "application/x-ndjson"),
        ):
            answer = await http.get("/v1/audit/export", headers={"Accept": accept})
            assert answer.headers["Content-Type"].partition(";")[0] == media_type
            assert '"action"' in answer.text
