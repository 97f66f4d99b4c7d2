"""Half a character (one escape of a surrogate pair), as clients send it in a text that they cut.

The error names the request and the place.
"""

import json
from typing import Any

import httpx2
import pytest

from recollect.caller import Caller
from recollect.postgres.database import Database
from tests.support.gateway import NewApiKey, RunningGateway, revision_of, rpc_answer, rpc_headers

REFUSED = "Holds a NUL or half a character (a lone surrogate), which cannot be stored"
TEXTS = [{"text": f"likes tea {number} 🫖"} for number in range(99)] + [{"text": "cut HERE"}]
TOOLS: dict[str, tuple[dict[str, Any], str]] = {
    "remember": ({"items": TEXTS}, "items.99.text"),
    "recall": ({"query": "HERE"}, "query"),
    "create_entities": (
        {"entities": [{"name": "Ada", "entityType": "x", "observations": ["a", "HERE"]}]},
        "entities.0.observations.1",
    ),
    "add_observations": ({"observations": [{"entityName": "HERE", "contents": ["x"]}]}, "observations.0.entityName"),
    "open_nodes": ({"names": ["HERE"]}, "names.0"),
    "create_node": ({"text": "x", "metadata": {"a": [1, "HERE"]}}, "metadata.a.1"),
}
BODIES: dict[str, tuple[dict[str, Any], str]] = {
    "/v1/graphs": ({"name": "team", "metadata": {"a": ["HERE"]}}, "metadata.a.0"),
    "/v1/graphs/default/memories": ({"items": TEXTS}, "items.99.text"),
    "/v1/graphs/default/recall": ({"queries": ["x", "HERE"]}, "queries.1"),
}
HALVES = (r"\ud83d", r"\udf75", r"\uD83D text", r"\ud83d\ud83d\udf75")


@pytest.fixture
async def http(gateway: RunningGateway, issue: NewApiKey, caller: Caller) -> Any:
    async with gateway.http((await issue(caller, kind="admin")).secret) as http:
        yield http


async def test_a_tool_names_the_request_and_the_argument(
    http: httpx2.AsyncClient, db: Database, caller: Caller, subtests: pytest.Subtests
) -> None:
    for number, (tool, (arguments, path)) in enumerate(TOOLS.items()):
        with subtests.test(tool):
            call = {"jsonrpc": "2.0", "id": f"request {number}", "method": "tools/call"}
            body = cut({**call, "params": {"name": tool, "arguments": arguments}}, HALVES[number % len(HALVES)])
            response = await http.post("/mcp/x/all", content=body, headers=rpc_headers())
            told = rpc_answer(response.text)
            assert (response.status_code, told["id"]) == (200, f"request {number}")
            assert f"{path}: {REFUSED}" in told["result"]["content"][0]["text"]
            assert told["result"]["_meta"]["dev.recollect/error"]["path"] == path
    assert await revision_of(db, caller) == 0


async def test_a_route_names_the_place(http: httpx2.AsyncClient, subtests: pytest.Subtests) -> None:
    for number, (route, (body, path)) in enumerate(BODIES.items()):
        with subtests.test(route):
            content = cut(body, HALVES[number % len(HALVES)])
            response = await http.post(route, content=content, headers={"Content-Type": "application/json"})
            assert response.status_code == 400
            assert (response.json()["path"], response.json()["detail"]) == (path, REFUSED)


async def test_another_method_names_the_request(http: httpx2.AsyncClient) -> None:
    for method, params in (("resources/read", {"uri": "recollect://HERE"}), ("prompts/get", {"name": "HERE"})):
        body = cut({"jsonrpc": "2.0", "id": 9, "method": method, "params": params}, r"\ud83d")
        response = await http.post("/mcp", content=body, headers=rpc_headers())
        told = rpc_answer(response.text)
        assert (told["id"], told["error"]["code"]) == (9, -32602)


def cut(body: dict[str, Any], half: str) -> bytes:
    """The body as JSON, with half a character in the place of HERE."""
    return json.dumps(body, ensure_ascii=False).replace("HERE", half).encode()
