"""What clients do to the arguments of a call: the call does what the model meant, and nothing else."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_gateway.mcp_endpoint.tools import CATALOGUE, TOOLS
from recollect_gateway.mcp_endpoint.unknown_arguments import CLIENT_ARGUMENTS, MAX_IGNORED, ignored_arguments
from tests.support.gateway import RunningGateway, revision_of, rpc_headers

ALL = "/mcp/x/all"
ADDED = dict.fromkeys(sorted(CLIENT_ARGUMENTS), "added by the client")
IGNORED = "Ignored, since the tool has no such argument: "
CAREFUL = {tool.name for tool in CATALOGUE if tool.destructive} | {"archive_entities"}
"""Tools where a misspelt argument would do harm."""


@pytest.fixture
async def http(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield http


async def call(gateway: RunningGateway, http: httpx2.AsyncClient, tool: str, arguments: Any) -> dict[str, Any]:
    result = await gateway.call(http, tool, arguments, path=ALL)
    assert not result["isError"], result
    return result


class TestUnknownArguments:
    async def test_those_of_clients_are_ignored_and_named_after_the_answer(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        item = {"text": "Ada likes tea", "about": ["Ada"]}
        kept = await call(gateway, http, "remember", {"items": [item]} | ADDED)
        assert kept["content"][-1]["text"] == f"{IGNORED}{', '.join(ADDED)}."
        plain = await call(gateway, http, "read_graph", {})
        named = await call(gateway, http, "read_graph", ADDED)
        assert named["structuredContent"] == plain["structuredContent"]
        assert named["content"][:-1] == plain["content"]
        forgotten = await call(gateway, http, "forget", {"names": ["Ada"]} | ADDED)
        assert forgotten["structuredContent"]["forgotten"]

    def test_any_other_is_ignored_where_it_does_no_harm(self, subtests: pytest.Subtests) -> None:
        for tool in CATALOGUE:
            with subtests.test(tool.name):
                assert ignored_arguments(tool, ADDED) == [*ADDED]
                assert ignored_arguments(tool, {"zzz_own": 1}) == ([] if tool.name in CAREFUL else ["zzz_own"])

    @pytest.mark.proves("security: arguments-as-text")
    def test_what_a_model_may_have_misspelt_is_not(self, subtests: pytest.Subtests) -> None:
        cases = [("recall", "Query"), ("recall", "token-budget"), ("recall", "graph_name"), ("recall", "limits")]
        cases += [("remember", "text"), ("remember", "tag"), ("recall", "quer\ud800")]
        cases += [("open_nodes", "node_names"), ("fetch", "graphId"), ("fetch", "tenant_id")]
        for tool, name in cases:
            with subtests.test(name=name):
                assert ignored_arguments(TOOLS[tool], {name: 1}) == []

    def test_their_number_is_bounded(self) -> None:
        many = {f"zzz{number}": 1 for number in range(MAX_IGNORED + 1)}
        assert ignored_arguments(TOOLS["recall"], many) == []

    async def test_misspelt_ones_are_refused_and_nothing_is_written(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, db: Database, caller: Caller
    ) -> None:
        for tool, arguments, name in (
            ("remember", {"items": [{"text": "x"}]}, "text"),
            ("archive_entities", {"importanceBelow": 5}, "simulate"),
            ("create_entities", {"entities": []}, "entity"),
        ):
            result = await gateway.call(http, tool, arguments | {name: True}, path=ALL)
            assert result["isError"]
            assert result["_meta"][ERROR_META]["path"] == name
        assert await revision_of(db, caller) == 0


class TestJsonText:
    async def test_lists_and_objects_in_text_are_stored_as_what_they_mean(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        item = {"text": "Ada wrote the first program", "about": json.dumps(["Ada"]), "metadata": '{"year": 1843}'}
        await call(gateway, http, "remember", {"items": json.dumps([item]), "graph": ""})
        found = await call(gateway, http, "recall", {"query": "first program", "limit": "3", "explain": "true"})
        [memory] = found["structuredContent"]["memories"]
        assert (memory["name"], memory["metadata"]) == ("Ada", {"year": 1843})
        assert memory["why"]

    async def test_items_that_are_read_one_by_one_may_be_text(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        nodes = [json.dumps({"ref": "a", "kind": "note", "content": "x", "tags": '["t"]'}), {"ref": "b", "kind": 1}]
        put = await call(gateway, http, "put_subgraph", {"nodes": json.dumps(nodes)})
        good, bad = put["structuredContent"]["nodes"]
        assert good["created"]
        assert "kind: Expected" in bad["error"]


class TestTimes:
    async def test_a_day_holds_what_was_said_on_it(self, gateway: RunningGateway, http: httpx2.AsyncClient) -> None:
        for at in ("2026-06-01", "2026-06-01T23:30", "2026-06-02"):
            await call(gateway, http, "remember", {"items": [{"text": f"tea at {at}", "at": at}]})
        found = await call(gateway, http, "recall", {"query": "tea", "since": "2026-06-01", "until": "2026-06-01"})
        texts = sorted(memory["text"] for memory in found["structuredContent"]["memories"])
        assert texts == ["tea at 2026-06-01", "tea at 2026-06-01T23:30"]

    async def test_as_of_takes_a_day_and_a_time_without_an_offset(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        await call(gateway, http, "remember", {"items": [{"text": "x", "about": ["Ada"]}]})
        for as_of, entities in (
            ("2020-01-01", 0),
            ("2020-01-01T10:00", 0),
            ("9999-12-31", 1),
            ("", 1),
            (1, 1),
            ("1", 1),
        ):
            read = await call(gateway, http, "read_graph", {"as_of": as_of})
            assert len(read["structuredContent"]["entities"]) == entities, as_of
