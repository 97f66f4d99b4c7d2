"""Conversations as they are: `POST /v1/graphs/{name}/conversations`, and `conversation` of `remember`."""

import json
from collections.abc import Callable
from copy import copy
from typing import Any

import httpx2
import pytest
from mcp import Client

from recollect.caller import Caller
from recollect.postgres.database import Database
from tests.contract.conftest import ConnectedClient
from tests.support.gateway import LEGACY, RunningGateway, answer, error_of, revision_of, text_of

OPENAI = [
    {"role": "system", "content": "You are kind"},
    {"role": "user", "content": "I moved to Berlin", "name": "Ada", "at": "2026-11-02T10:00:00+01:00"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "content": "42", "tool_call_id": "1"},
    {"role": "assistant", "content": "Shall I change your address?", "refusal": None},
]
ANTHROPIC = [
    {"role": "user", "content": [{"type": "text", "text": "Which pier?"}, {"type": "image", "source": {"data": "x"}}]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm", "signature": "x"},
            {"type": "text", "text": "The north pier"},
            {"type": "tool_use", "id": "t", "name": "look", "input": {}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "42"}]},
]


@pytest.fixture
async def client(connected: ConnectedClient, key: str) -> Client:
    return await connected(key, "/mcp/x/all", LEGACY)


class Route:
    """The route of one graph."""

    def __init__(self, http: httpx2.AsyncClient, key: str) -> None:
        self._http, self._headers = http, {"Authorization": f"Bearer {key}"}

    async def post(self, **body: Any) -> httpx2.Response:
        return await self._http.post("/v1/graphs/default/conversations", json=body, headers=self._headers)

    async def kept(self, **body: Any) -> dict[str, Any]:
        response = await self.post(**body)
        assert response.status_code == 200, response.text
        told: dict[str, Any] = response.json()
        return told


@pytest.fixture
def route(gateway: RunningGateway, http: httpx2.AsyncClient, key: str) -> Route:
    return Route(http, key)


async def texts(client: Client, thread: str) -> list[str]:
    told = await answer(client, "recall", thread=thread, limit=100, token_budget=9_999)
    return [memory["text"] for memory in told["memories"]]


async def test_messages_as_the_apis_have_them(route: Route, client: Client) -> None:
    told = await route.kept(thread="support-1", messages=OPENAI, source="chat", tags=["support"])
    assert [(memory["message"], memory["status"]) for memory in told["memories"]] == [(1, "new"), (4, "new")]
    assert (told["thread"], told["left_out"]) == ("support-1", [0, 2, 3])
    [moved] = (await answer(client, "recall", query="Where did Ada move?", limit=1))["memories"]
    assert (moved["text"], moved["at"], moved["source"], moved["tags"]) == (
        "Ada: I moved to Berlin",
        "2026-11-02T10:00:00+01:00",
        "chat",
        ["support"],
    )
    told = await route.kept(thread="support-2", messages=ANTHROPIC)
    assert told["left_out"] == [2]
    assert set(await texts(client, "support-2")) == {"User: Which pier?", "Assistant: The north pier"}


async def test_a_conversation_that_has_grown_is_sent_again(route: Route, client: Client) -> None:
    first = await route.kept(thread="t", messages=OPENAI)
    again = await route.kept(thread="t", messages=[*OPENAI, {"role": "user", "content": "Yes"}])
    assert [memory["status"] for memory in again["memories"]] == ["known", "known", "new"]
    assert [memory["id"] for memory in again["memories"]][:2] == [memory["id"] for memory in first["memories"]]
    elsewhere = await route.kept(thread="other", messages=OPENAI)
    assert [memory["status"] for memory in elsewhere["memories"]] == ["new", "new"]
    assert len(await texts(client, "t")) == 3


async def test_plain_text_with_the_times_of_a_zone(route: Route, client: Client) -> None:
    text = "[2026-11-02 10:00] Ada: I moved\n[2026-11-02 10:01] Bob: Where to?\n[2026-11-02 10:02] Ada: Oslo\nBob: Ah"
    told = await route.kept(thread="t", text=text, time_zone="Asia/Tokyo")
    assert [memory["message"] for memory in told["memories"]] == [0, 1, 2, 3]
    memories = (await answer(client, "recall", thread="t", limit=10))["memories"]
    assert {memory["text"]: memory.get("at", "")[:22] for memory in memories}["Ada: Oslo"] == "2026-11-02T10:02:00+09"


async def test_the_tool_takes_one_in_place_of_items(client: Client) -> None:
    result = await client.call_tool("remember", {"conversation": {"thread": "t", "messages": OPENAI}})
    assert text_of(result) == "t: 2 new, 0 known; 3 left out, in which nobody says anything"
    assert [memory["status"] for memory in result.structured_content["memories"]] == ["new", "new"]
    again = {"thread": "t", "messages": json.dumps(OPENAI)}
    result = await client.call_tool("remember", {"conversation": json.dumps(again)})
    assert text_of(result).startswith("t: 0 new, 2 known")
    result = await client.call_tool("remember", {"conversation": {"thread": "p", "text": "User: hi\nAI: hello"}})
    assert text_of(result) == "p: 2 new, 0 known"


async def test_times_without_an_offset_are_of_the_zone_however_it_is_sent(
    http: httpx2.AsyncClient, key: str, client: Client, subtests: pytest.Subtests
) -> None:
    graph = {"name": "tokyo", "time_zone": "Asia/Tokyo"}
    made = await http.post("/v1/graphs", json=graph, headers={"Authorization": f"Bearer {key}"})
    assert made.status_code == 201, made.text
    as_it_is: Callable[[Any], Any] = copy
    for number, encode in enumerate((as_it_is, json.dumps)):
        for zone, offset in (({}, "+09:00"), ({"time_zone": "Europe/Berlin"}, "+01:00")):
            with subtests.test(encode=encode, zone=zone):
                thread = f"{number} {offset}"
                sent = {"thread": thread, "messages": [{"role": "user", "content": "hi", "at": "2026-11-02T10:00:00"}]}
                result = await client.call_tool("remember", {"graph": "tokyo", "conversation": encode(sent), **zone})
                assert text_of(result) == f"{thread}: 1 new, 0 known"
                [memory] = (await answer(client, "recall", graph="tokyo", thread=thread))["memories"]
                assert memory["at"] == f"2026-11-02T10:00:00{offset}"


async def test_what_is_refused_names_the_path_and_writes_nothing(
    route: Route, client: Client, db: Database, caller: Caller, subtests: pytest.Subtests
) -> None:
    before = await revision_of(db, caller)
    hi = {"role": "user", "content": "hi"}
    for body, path in (
        ({"messages": [hi]}, "thread"),
        ({"thread": "", "messages": [hi]}, "thread"),
        ({"thread": "t"}, "messages"),
        ({"thread": "t", "messages": [hi], "text": "User: hi"}, "messages"),
        ({"thread": "t", "messages": [{"role": "system", "content": "x"}]}, "messages"),
        ({"thread": "t", "messages": [hi, {"role": "user", "content": 5}]}, "messages.1.content"),
        ({"thread": "t", "messages": [{**hi, "at": "noon"}]}, "messages.0.at"),
        ({"thread": "t", "messages": [hi] * 501}, "messages"),
        ({"thread": "t", "text": "\n".join(f"User: {n}" for n in range(501))}, "text"),
        ({"thread": "t", "text": "\u200b"}, "text"),
        ({"thread": "t", "text": "User: hi", "time_zone": "Nowhere/At_all"}, "time_zone"),
        ({"thread": "t", "text": "User: nul \0"}, "text"),
        ({"thread": "t", "messages": [hi], "unknown": 1}, "unknown"),
    ):
        with subtests.test(body=str(body)[:80]):
            response = await route.post(**body)
            assert response.status_code == 400, response.text
            problem = response.json()
            paths = [problem.get("path"), *(error["path"] for error in problem.get("errors", []))]
            assert path in paths
    for arguments in ({}, {"items": [{"text": "x"}], "conversation": {"thread": "t", "messages": [hi]}}):
        assert error_of(await client.call_tool("remember", arguments))["path"] == "items"
    assert await revision_of(db, caller) == before
