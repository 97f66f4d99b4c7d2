"""`remember` with `supersedes`, and which of the close memories it says a new one probably replaces."""

from typing import Any
from uuid import uuid4

import httpx2
import pytest
from mcp import Client

from recollect.caller import Caller
from recollect.postgres.database import Database
from tests.contract.conftest import ConnectedClient
from tests.support.gateway import LEGACY, RunningGateway, answer, error_of, revision_of, text_of
from tests.support.memories import at_work

DARK, LIGHT = "The preferred editor theme of the user is dark", "The preferred editor theme of the user is light"


@pytest.fixture
async def client(connected: ConnectedClient, key: str) -> Client:
    return await connected(key, "/mcp/x/all", LEGACY)


async def remembered(client: Client, *items: dict[str, Any]) -> list[dict[str, Any]]:
    memories: list[dict[str, Any]] = (await answer(client, "remember", items=list(items)))["memories"]
    return memories


async def recalled(client: Client, **arguments: Any) -> list[tuple[str, bool]]:
    told = await answer(client, "recall", query="Which editor theme does the user prefer?", **arguments)
    return sorted((memory["text"], memory.get("outdated", False)) for memory in told["memories"])


@pytest.mark.proves("agent: remember")
async def test_superseded_memories_are_outdated(client: Client) -> None:
    [fact, observation] = await remembered(client, {"text": DARK}, {"text": DARK, "about": ["the user"]})
    await remembered(client, {"text": LIGHT, "supersedes": [fact["id"], observation["id"], fact["id"]]})
    assert (LIGHT, False) in await recalled(client)
    assert DARK not in {text for text, _ in await recalled(client)}
    told = (await answer(client, "recall", query="editor theme", include_outdated=True))["memories"]
    reasons = {memory["id"]: memory.get("reason") for memory in told if memory.get("outdated")}
    assert reasons.keys() <= {fact["id"], observation["id"]}
    assert set(reasons.values()) == {f"Superseded by {next(m['id'] for m in told if m['text'] == LIGHT)}"}


async def test_a_refused_call_names_the_id_and_writes_nothing(client: Client, db: Database, caller: Caller) -> None:
    [fact] = await remembered(client, {"text": DARK})
    before = await revision_of(db, caller)
    items = [{"text": "one"}, {"text": LIGHT, "supersedes": [fact["id"], str(uuid4())]}]
    result = await client.call_tool("remember", {"items": items})
    assert error_of(result) == {"code": "node_not_found", "path": "items.1.supersedes.1"}
    result = await client.call_tool("remember", {"items": [{"text": DARK, "supersedes": [fact["id"]]}]})
    assert error_of(result) == {"code": "invalid_input", "path": "items.0.supersedes.0"}
    result = await client.call_tool("remember", {"items": [{"text": LIGHT, "supersedes": ["x"]}]})
    assert error_of(result)["path"] == "items.0.supersedes.0"
    many = [str(uuid4()) for _ in range(21)]
    result = await client.call_tool("remember", {"items": [{"text": LIGHT, "supersedes": many}]})
    assert error_of(result)["path"] == "items.0.supersedes"
    assert await revision_of(db, caller) == before


async def test_a_close_memory_says_that_it_is_probably_superseded(client: Client, db: Database, caller: Caller) -> None:
    async with at_work(db, caller) as below:
        [old] = await remembered(client, {"text": DARK})
        await below.embed()
        result = await client.call_tool("remember", {"items": [{"text": LIGHT}]})
        [memory] = (result.structured_content or {})["memories"]
        assert [(close["id"], close["superseded"]) for close in memory["close"]] == [(old["id"], True)]
        lines = text_of(result).splitlines()
        assert lines[1].startswith("  close (")
        assert ", probably superseded) " in lines[1]
        assert "supersedes" in lines[-1]
        # As it says: the same item again, with the id of the older one.
        [known] = await remembered(client, {"text": LIGHT, "supersedes": [old["id"]]})
        assert known["status"] == "known"
        assert known["close"] == []
        assert await recalled(client) == [(LIGHT, False)]


async def test_the_route_supersedes_too(gateway: RunningGateway, key: str, client: Client) -> None:
    [fact] = await remembered(client, {"text": DARK})
    async with gateway.http(key) as http:
        address = "/v1/graphs/default/memories"
        done: httpx2.Response = await http.post(address, json={"items": [{"text": LIGHT, "supersedes": [fact["id"]]}]})
        assert done.status_code == 200
        missing = await http.post(address, json={"items": [{"text": "x", "supersedes": [str(uuid4())]}]})
    assert (missing.status_code, missing.json()["path"]) == (404, "items.0.supersedes.0")
    assert await recalled(client) == [(LIGHT, False)]
