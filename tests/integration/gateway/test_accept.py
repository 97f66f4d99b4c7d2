"""Clients that accept JSON alone, server-sent events alone, anything, or say nothing."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from tests.support.gateway import LEGACY, MODERN, RunningGateway, rpc_answer

JSON, STREAM = "application/json", "text/event-stream"
ANSWERED_IN = {
    JSON: JSON,
    f"{JSON}, {STREAM};q=0": JSON,
    "*/*": JSON,
    f"{JSON}, text/plain, */*": JSON,
    None: JSON,
    STREAM: STREAM,
}
"""The header of a client, and the type of its answers."""

INITIALIZE = {
    "protocolVersion": LEGACY,
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
CALL = {"name": "recall", "arguments": {"query": "tea"}}
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture
async def http(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key) as http:
        yield http


async def sent(
    http: httpx2.AsyncClient, method: str, params: dict[str, Any], accept: str | None, **headers: str
) -> httpx2.Response:
    """The answer to a request with this Accept header; None: without one."""
    said = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    request = http.build_request("POST", "/mcp", content=json.dumps(said), headers={"Content-Type": JSON, **headers})
    del request.headers["accept"]
    if accept is not None:
        request.headers["accept"] = accept
    return await http.send(request)


async def test_each_message_is_answered_in_what_is_accepted(
    http: httpx2.AsyncClient, subtests: pytest.Subtests
) -> None:
    for accept, answered_in in ANSWERED_IN.items():
        for method, params in (("initialize", INITIALIZE), ("tools/list", {}), ("tools/call", CALL)):
            with subtests.test(f"{accept} {method}"):
                answer = await sent(http, method, params, accept)
                assert answer.status_code == 200
                assert answer.headers["content-type"].partition(";")[0] == answered_in
                assert "result" in (answer.json() if answered_in == JSON else rpc_answer(answer.text))
        with subtests.test(f"{accept} of {MODERN}"):
            headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "recall"}
            answer = await sent(http, "tools/call", CALL | {"_meta": MODERN_META}, accept, **headers)
            assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, answered_in)
            assert "result" in (answer.json() if answered_in == JSON else rpc_answer(answer.text))


async def test_notifications_are_accepted_from_every_client(
    http: httpx2.AsyncClient, subtests: pytest.Subtests
) -> None:
    for accept in ANSWERED_IN:
        with subtests.test(str(accept)):
            body = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
            headers = {"Content-Type": JSON} | ({} if accept is None else {"Accept": accept})
            assert (await http.post("/mcp", content=body, headers=headers)).status_code == 202


async def test_a_stream_has_no_form_in_json(http: httpx2.AsyncClient) -> None:
    """What goes on until the client leaves is refused for a client that reads no events, and says why."""
    params = {"notifications": {"toolsListChanged": True}, "_meta": MODERN_META}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen"}
    refused = await sent(http, "subscriptions/listen", params, JSON, **headers)
    assert refused.status_code == 406
    assert STREAM in refused.text
    said = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": params}
    for accept in (STREAM, "*/*"):
        listening = http.stream(
            "POST", "/mcp", content=json.dumps(said), headers={"Content-Type": JSON, "Accept": accept, **headers}
        )
        async with listening as answer:
            assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, STREAM)
