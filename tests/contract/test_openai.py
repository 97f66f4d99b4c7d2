"""The toolset `openai` keeps the contract that ChatGPT and OpenAI's deep research state."""

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp_types import ToolAnnotations

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from tests.support.gateway import RunningGateway, revision_of, rpc_headers

OPENAI = "/mcp/x/openai"
UNKNOWN = "00000000-0000-7000-8000-00000000dead"
ITEMS: list[dict[str, Any]] = [
    {"text": "Ada wrote the first program", "about": ["Ada"], "kind": "person", "tags": ["work"], "source": "book"},
    {"text": "The harbour clock runs late", "at": "2026-06-01T10:00:00Z", "thread": "notes"},
]


@pytest.fixture
async def http(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield http


@pytest.fixture
async def ids(gateway: RunningGateway, http: httpx2.AsyncClient) -> list[str]:
    """The ids of the remembered items."""
    kept = await gateway.call(http, "remember", {"items": ITEMS}, path="/mcp")
    return [memory["id"] for memory in kept["structuredContent"]["memories"]]


async def call(gateway: RunningGateway, http: httpx2.AsyncClient, tool: str, arguments: dict[str, Any]) -> Any:
    """The structured content of an answer, which its one text repeats as JSON."""
    result = await gateway.call(http, tool, arguments, path=OPENAI)
    assert not result["isError"], result
    (content,) = result["content"]
    assert content["type"] == "text"
    assert json.loads(content["text"]) == result["structuredContent"]
    return result["structuredContent"]


class TestTools:
    async def test_it_has_the_two_tools_with_one_argument_each(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        tools = (await gateway.post(http, "tools/list", {}, path=OPENAI))["result"]["tools"]
        listed = {tool["name"]: tool for tool in tools}
        assert {name: [*tool["inputSchema"]["properties"]] for name, tool in listed.items()} == {
            "search": ["query"],
            "fetch": ["id"],
        }
        for tool in tools:
            assert tool["inputSchema"]["required"] == [*tool["inputSchema"]["properties"]]
            assert ToolAnnotations.model_validate(tool["annotations"]).read_only_hint
        assert listed["search"]["outputSchema"]["properties"] == {
            "results": {"type": "array", "items": {"type": "object"}}
        }

    async def test_no_address_has_two_tools_called_search(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        for toolsets in ("facts", "facts,openai", "all"):
            answer = await gateway.post(http, "tools/list", {}, path=f"/mcp/x/{toolsets}")
            (search,) = [tool for tool in answer["result"]["tools"] if tool["name"] == "search"]
            assert "node_types" in search["inputSchema"]["properties"]
        answer = await gateway.post(http, "tools/list", {}, path="/mcp/x/agent,openai")
        (search,) = [tool for tool in answer["result"]["tools"] if tool["name"] == "search"]
        assert [*search["inputSchema"]["properties"]] == ["query"]


class TestAnswers:
    @pytest.mark.proves("openai: search")
    async def test_what_search_finds_can_be_fetched(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, ids: list[str]
    ) -> None:
        found = await call(gateway, http, "search", {"query": "who wrote the first program"})
        assert {*found} == {"results"}
        first = found["results"][0]
        assert {*first} == {"id", "title", "url"}
        assert (first["id"], first["title"]) == (ids[0], "Ada wrote the first program")
        for result in found["results"]:
            document = await call(gateway, http, "fetch", {"id": result["id"]})
            assert {*document} == {"id", "title", "text", "url", "metadata"}
            assert (document["id"], document["title"], document["url"]) == (*result.values(),)

    @pytest.mark.proves("openai: fetch")
    async def test_a_memory_is_told_whole_with_what_is_known_of_it(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, ids: list[str]
    ) -> None:
        observation, fact = [await call(gateway, http, "fetch", {"id": id_}) for id_ in ids]
        assert observation["text"] == ITEMS[0]["text"]
        known = observation["metadata"]
        assert (known["entity"], known["kind"], known["tags"], known["source"]) == ("Ada", "person", "work", "book")
        assert fact["text"] == fact["title"] == ITEMS[1]["text"]
        assert (fact["metadata"]["thread"], fact["metadata"]["said_at"]) == ("notes", "2026-06-01T10:00:00+00:00")

    async def test_an_entity_is_told_with_its_observations(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, ids: list[str]
    ) -> None:
        await gateway.call(http, "remember", {"items": [{"text": "Ada likes tea", "about": ["Ada"]}]}, path="/mcp")
        node = urlsplit((await call(gateway, http, "fetch", {"id": ids[0]}))["url"]).path.rpartition("/")[2]
        entity = await call(gateway, http, "fetch", {"id": node})
        assert entity["text"] == "Ada wrote the first program\nAda likes tea"
        assert entity["url"].endswith(f"/v1/graphs/default/nodes/{node}")

    async def test_the_url_opens_the_memory_with_a_key(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, ids: list[str], key: str
    ) -> None:
        document = await call(gateway, http, "fetch", {"id": ids[0]})
        url = urlsplit(document["url"])
        assert url.fragment == ids[0]
        response = await http.get(url.path)
        assert response.status_code == 200
        assert document["text"] in response.json()["observations"]

    async def test_a_long_text_is_cut_in_the_title_and_nowhere_else(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        text = "clock\n" + "tick " * 1_000 + "end"
        kept = await gateway.call(http, "remember", {"items": [{"text": text}]}, path="/mcp")
        document = await call(gateway, http, "fetch", {"id": kept["structuredContent"]["memories"][0]["id"]})
        assert document["text"] == text
        assert document["title"] == "clock " + "tick " * 18 + "tic…"

    async def test_an_unknown_id_is_an_error_that_says_what_to_give(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, ids: list[str], db: Database, caller: Caller
    ) -> None:
        before = await revision_of(db, caller)
        for unknown in (UNKNOWN, "Ada", "", "x" * 256):
            result = await gateway.call(http, "fetch", {"id": unknown}, path=OPENAI)
            assert result["isError"]
            assert result["content"][0]["text"] == f"There is no memory {unknown}. Give an id that search returned."
            assert result["_meta"][ERROR_META]["code"] == "node_not_found"
        assert await revision_of(db, caller) == before

    async def test_nothing_is_found_where_nothing_is(self, gateway: RunningGateway, http: httpx2.AsyncClient) -> None:
        assert await call(gateway, http, "search", {"query": "anything"}) == {"results": []}
        assert (await gateway.call(http, "fetch", {"id": UNKNOWN}, path=OPENAI))["isError"]
