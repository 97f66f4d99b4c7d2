"""Toolset `lineage`: versions, conflicts, edges, symlinks and subgraphs, as its clients see them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.graph.graphs import store as graph_store
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.postgres.transactions import Transaction
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_gateway.mcp_endpoint.schema import json_schema, listed_schema
from recollect_gateway.mcp_endpoint.server import definition
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from recollect_gateway.mcp_endpoint.tools.lineage.put_subgraph import EdgeIn, SubgraphNode
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway, revision_of, rpc_headers
from tests.support.quick_embedder import OF_WORDLLAMA

PATH = "/mcp/x/lineage,memory"
NEVER = str(uuid4())


@dataclass(frozen=True)
class LineageClient:
    """Calls tools with one key."""

    gateway: RunningGateway
    http: httpx2.AsyncClient

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a tool."""
        result = await self.gateway.call(self.http, tool, arguments, path=PATH)
        assert not result["isError"], result
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    async def refused(self, tool: str, **arguments: Any) -> str:
        """The error code of a refusal."""
        result = await self.gateway.call(self.http, tool, arguments, path=PATH)
        assert result["isError"], result
        code: str = result["_meta"][ERROR_META]["code"]
        return code

    async def note(self, content: str, **more: Any) -> str:
        """Write a node and return its lineage."""
        put = await self("put_node", **{"kind": "note", "content": content, **more})
        lineage: str = put["node"]["lineage_id"]
        return lineage

    async def edge(self, source: str, target: str, **more: Any) -> str:
        """Make an edge and return its id."""
        put = await self("put_edge", **{"from_lineage": source, "to_lineage": target, "kind": "cites", **more})
        edge: str = put["edge"]["id"]
        return edge


@asynccontextmanager
async def client(gateway: RunningGateway, secret: str) -> AsyncIterator[LineageClient]:
    async with gateway.http(secret, **rpc_headers()) as http:
        yield LineageClient(gateway, http)


@pytest.fixture
async def call(gateway: RunningGateway, key: str) -> AsyncIterator[LineageClient]:
    async with client(gateway, key) as calls:
        yield calls


def contents(answer: dict[str, Any]) -> list[str]:
    """The contents of the nodes in an answer."""
    found = answer.get("nodes") or answer.get("versions") or answer.get("hits") or []
    return [entry.get("node", entry)["content"] for entry in found]


async def found_by(call: LineageClient, tool: str, text: str, **more: Any) -> list[dict[str, Any]]:
    """The nodes of graph `notes` that a search finds, best first, in the form of `search_graph`."""
    if tool == "search_graph":
        return [hit["node"] for hit in (await call(tool, graph="notes", text=text, **more))["hits"]]
    if tool == "batch_search":
        queries = [{"text": text}, {"text": text}]
        return [hit["node"] for hit in (await call(tool, graph="notes", queries=queries, **more))["hits"]]
    result = await call.gateway.call(call.http, tool, {"graph": "notes", "query": text, **more}, path="/mcp/x/agent")
    memories = result["structuredContent"]["memories"]
    told = result["content"][0]["text"].splitlines()
    for memory, line in zip(memories, told, strict=False):
        heads = len(memory.get("conflicts", ())) + 1
        assert (f"one of {heads} versions in conflict" in line) is (heads > 1)
    listed = (await call("list_nodes", graph="notes", **more))["nodes"]
    newest = {node["lineage_id"]: node["id"] for node in reversed(listed)}
    return [
        {
            "id": memory.get("version_id", newest[memory["node"]]),
            "lineage_id": memory["node"],
            "content": memory["text"],
            "conflicts": memory.get("conflicts", []),
        }
        for memory in memories
    ]


class TestVersions:
    @pytest.mark.proves("lineage: put_node", "memgraph: immutable-versions")
    async def test_a_put_on_a_lineage_makes_a_new_version(self, call: LineageClient) -> None:
        first = await call("put_node", kind="note", content="one", tags=["Topic:Tea"], summary="s", metadata={"a": 1})
        lineage = first["node"]["lineage_id"]
        second = await call("put_node", kind="idea", content="two", lineage_id=lineage)
        assert (first["created"], second["created"]) == (True, False)
        node = (await call("get_node_by_lineage", lineage_id=lineage))["node"]
        assert node == second["node"]
        assert (node["version"], node["kind"], node["content"]) == (2, "idea", "two")
        assert (node["tags"], node["summary"], node["metadata"]) == ([], "", {})
        assert (node["is_current"], node["is_stale"], node["conflicts"]) == (True, False, [])

    @pytest.mark.proves("lineage: get_node_by_lineage", "memgraph: at-a-version-or-time")
    async def test_a_lineage_is_read_at_a_version_and_at_a_time(self, call: LineageClient) -> None:
        lineage = await call.note("one")
        written = (await call("get_node_by_lineage", lineage_id=lineage))["node"]["created_at"]
        await call.note("two", lineage_id=lineage)
        first = (await call("get_node_by_lineage", lineage_id=lineage, at_version=1))["node"]
        assert first == (await call("get_node_by_lineage", lineage_id=lineage, at_time=written))["node"]
        assert (first["content"], first["is_current"]) == ("one", False)
        now = datetime.now(UTC).isoformat()
        assert (await call("get_node_by_lineage", lineage_id=lineage, at_time=now))["node"]["content"] == "two"
        before = "2020-01-01T00:00:00Z"
        assert await call.refused("get_node_by_lineage", lineage_id=lineage, at_time=before) == "node_not_found"
        assert await call.refused("get_node_by_lineage", lineage_id=lineage, at_version=3) == "node_not_found"
        missing = await call.gateway.call(
            call.http, "get_node_by_lineage", {"lineage_id": lineage, "at_version": 3}, path=PATH
        )
        assert missing["content"][0]["text"] == f"at_version: Node {lineage} has no version 3; its newest is 2."
        both = {"at_version": 1, "at_time": now}
        assert await call.refused("get_node_by_lineage", lineage_id=lineage, **both) == "invalid_input"

    @pytest.mark.proves(
        "lineage: get_node_by_id", "lineage: history", "memgraph: immutable-versions", "memgraph: flags-of-nodes"
    )
    async def test_history_is_newest_first_and_names_the_superseding_version(self, call: LineageClient) -> None:
        lineage = await call.note("one")
        for content in ("two", "three"):
            await call.note(content, lineage_id=lineage)
        versions = (await call("history", lineage_id=lineage))["versions"]
        assert [version["content"] for version in versions] == ["three", "two", "one"]
        assert [version.get("superseded_by") for version in versions] == [None, versions[0]["id"], versions[1]["id"]]
        assert [version.get("based_on_version") for version in versions] == [2, 1, None]
        assert [version["is_current"] for version in versions] == [True, False, False]
        page = await call("history", lineage_id=lineage, limit=1, offset=1)
        assert (contents(page), page["more"]) == (["two"], True)
        for version in versions:
            assert (await call("get_node_by_id", id=version["id"]))["node"] == version

    @pytest.mark.proves("lineage: history")
    async def test_history_outlives_its_node(self, call: LineageClient) -> None:
        await call("create_entities", entities=[{"name": "Ada", "entityType": "person", "observations": []}])
        (node,) = (await call("list_nodes"))["nodes"]
        await call("delete_entities", entityNames=["Ada"])
        assert await call.refused("get_node_by_lineage", lineage_id=node["lineage_id"]) == "node_not_found"
        put = {"kind": "person", "content": "is back", "lineage_id": node["lineage_id"]}
        assert await call.refused("put_node", **put) == "node_not_found"
        versions = (await call("history", lineage_id=node["lineage_id"]))["versions"]
        assert [(v["version"], v.get("deleted", False), v["is_current"]) for v in versions] == [
            (2, True, False),
            (1, False, False),
        ]

    @pytest.mark.proves("lineage: search_graph", "memgraph: flags-of-nodes")
    async def test_stale_nodes_are_marked_and_can_be_left_out(self, call: LineageClient) -> None:
        hour = timedelta(hours=1)
        stale = await call.note("old news", freshness_at=(datetime.now(UTC) - hour).isoformat())
        fresh = await call.note("new news", freshness_at=(datetime.now(UTC) + hour).isoformat())
        found = {node["lineage_id"]: node["is_stale"] for node in (await call("list_nodes"))["nodes"]}
        assert found == {stale: True, fresh: False}
        assert set(contents(await call("search_graph", text="news"))) == {"old news", "new news"}
        assert contents(await call("search_graph", text="news", fresh_only=True)) == ["new news"]

    @pytest.mark.proves("memgraph: created-by")
    async def test_created_by_is_stored(self, call: LineageClient) -> None:
        lineage = await call.note("one", created_by="a colleague")
        other = await call.note("two")
        assert (await call("get_node_by_lineage", lineage_id=lineage))["node"]["created_by"] == "a colleague"
        assert (await call("get_node_by_lineage", lineage_id=other))["node"]["created_by"].startswith("key:")

    async def test_a_put_on_an_entity_keeps_its_name(self, call: LineageClient) -> None:
        entity = {"name": "Ada", "entityType": "person", "observations": ["writes programs"], "importance": 7}
        await call("create_entities", entities=[entity])
        (node,) = (await call("list_nodes"))["nodes"]
        assert (node["name"], node["kind"], node["content"]) == ("Ada", "person", "")
        put = await call("put_node", kind="pioneer", content="of computing", lineage_id=node["lineage_id"])
        assert (put["node"]["name"], put["node"]["kind"], put["node"]["version"]) == ("Ada", "pioneer", 2)
        opened = (await call("open_nodes", names=["Ada"]))["entities"]
        assert opened == [
            {"name": "Ada", "entityType": "pioneer", "observations": ["writes programs"], "content": "of computing"}
        ]

    @pytest.mark.proves("memgraph: error-codes")
    async def test_unknown_nodes_are_not_found(self, call: LineageClient) -> None:
        await call.note("one")
        for graph in ("default", "nowhere"):
            for tool in ("get_node_by_lineage", "history", "outgoing", "incoming", "traverse"):
                assert await call.refused(tool, graph=graph, lineage_id=NEVER) == "node_not_found"
            assert await call.refused("get_node_by_id", graph=graph, id=NEVER) == "node_not_found"
        put = {"kind": "note", "content": "x", "lineage_id": NEVER}
        assert await call.refused("put_node", **put) == "node_not_found"
        assert await call("list_nodes", graph="nowhere") == {"nodes": [], "more": False}

    async def test_a_nonexistent_base_version_is_refused(self, call: LineageClient) -> None:
        lineage = await call.note("one")
        put = {"kind": "note", "content": "two", "lineage_id": lineage, "based_on_version": 2}
        assert await call.refused("put_node", **put) == "invalid_input"

    async def test_thread_and_time_stay_until_they_are_given_again(self, call: LineageClient) -> None:
        said = {"thread": "kitchen", "at": "2026-01-31T09:00:00Z"}
        lineage = await call.note("one", thread="kitchen", at="2026-01-31T10:00:00+01:00")
        node = (await call("get_node_by_lineage", lineage_id=lineage))["node"]
        assert node.items() >= said.items()
        await call.note("two", lineage_id=lineage)
        assert (await call("get_node_by_lineage", lineage_id=lineage))["node"].items() >= said.items()
        await call.note("three", lineage_id=lineage, thread="garden")
        node = (await call("get_node_by_lineage", lineage_id=lineage))["node"]
        assert (node["thread"], node["at"]) == ("garden", said["at"])
        plain = await call("get_node_by_lineage", lineage_id=await call.note("plain"))
        assert {"thread", "at"}.isdisjoint(plain["node"])

    async def test_nodes_of_a_subgraph_have_thread_and_time(self, call: LineageClient) -> None:
        said = {"thread": "kitchen", "at": "2026-01-31T09:00:00Z"}
        nodes = [{"kind": "note", "content": content, **said} for content in ("one", "two")]
        await call("put_subgraph", nodes=nodes)
        listed = (await call("list_nodes"))["nodes"]
        assert [{name: node[name] for name in said} for node in listed] == [said, said]
        outside = {"kind": "note", "content": "x", "at": "0001-01-01T00:00:00+12:00"}
        (refused,) = (await call("put_subgraph", nodes=[outside]))["nodes"]
        assert (refused["code"], refused["error"].partition(":")[0]) == ("invalid_input", "at")


class TestConflicts:
    @pytest.mark.proves("memgraph: last-write-wins")
    async def test_lww_lets_the_newest_put_win(self, call: LineageClient) -> None:
        lineage = await call.note("one")
        await call.note("theirs", lineage_id=lineage, based_on_version=1)
        put = await call("put_node", kind="note", content="ours", lineage_id=lineage, based_on_version=1)
        assert "conflict" not in put
        assert (put["node"]["version"], put["node"]["conflicts"]) == (3, [])
        versions = (await call("history", lineage_id=lineage))["versions"]
        assert [(v["content"], v["is_current"]) for v in versions] == [
            ("ours", True),
            ("theirs", False),
            ("one", False),
        ]

    @pytest.mark.proves("memgraph: flags-of-nodes", "memgraph: manual-conflicts")
    async def test_manual_keeps_a_concurrent_put_as_a_sibling_head(self, call: LineageClient) -> None:
        await call("create_graph", name="notes", conflict_policy="manual")
        lineage = await call.note("one", graph="notes")
        theirs = await call.note("theirs", graph="notes", lineage_id=lineage, based_on_version=1)
        assert theirs == lineage
        put = await call("put_node", graph="notes", kind="note", content="ours", lineage_id=lineage, based_on_version=1)
        sibling = (await call("history", graph="notes", lineage_id=lineage))["versions"][1]
        assert put["conflict"]["code"] == "manual_conflict"
        assert put["conflict"]["heads"] == [put["node"]["id"], sibling["id"]]
        node = (await call("get_node_by_lineage", graph="notes", lineage_id=lineage))["node"]
        assert (node["content"], node["version"], node["conflicts"]) == ("ours", 3, [sibling["id"]])
        assert (sibling["content"], sibling["is_current"], sibling["conflicts"]) == ("theirs", True, [node["id"]])
        listed = (await call("list_nodes", graph="notes"))["nodes"]
        assert [(one["id"], one["content"], one["conflicts"]) for one in listed] == [
            (node["id"], "ours", [sibling["id"]]),
            (sibling["id"], "theirs", [node["id"]]),
        ]

    async def divided(self, call: LineageClient) -> tuple[str, list[str]]:
        """Make a lineage with three heads, and return its id and theirs, newest first."""
        await call("create_graph", name="notes", conflict_policy="manual")
        lineage = await call.note("the meeting is on Monday", graph="notes")
        for day in ("Tuesday", "Wednesday", "Friday"):
            content = f"the meeting is on {day}"
            put = await call(
                "put_node",
                graph="notes",
                kind="note",
                content=content,
                tags=[day],
                lineage_id=lineage,
                based_on_version=1,
            )
        return lineage, put["conflict"]["heads"]

    @pytest.mark.proves("memgraph: every-head-is-found")
    @pytest.mark.parametrize("searched", ["search_graph", "batch_search", "recall"])
    async def test_each_head_is_found_by_its_text_and_lists_its_conflicts(
        self, call: LineageClient, searched: str
    ) -> None:
        lineage, heads = await self.divided(call)
        found = {}
        for day in ("Tuesday", "Wednesday", "Friday"):
            hit = (await found_by(call, searched, f"meeting on {day}"))[0]
            assert (hit["content"], hit["lineage_id"]) == (f"the meeting is on {day}", lineage)
            found[hit["id"]] = set(hit["conflicts"])
        assert found == {head: set(heads) - {head} for head in heads}
        near = [hit["content"] for hit in await found_by(call, searched, "Monday")]
        assert "the meeting is on Monday" not in near, "other days are near in meaning"
        assert len(await found_by(call, searched, "meeting")) == 3

    @pytest.mark.proves("memgraph: every-head-is-found")
    @pytest.mark.parametrize("searched", ["search_graph", "batch_search", "recall"])
    async def test_only_the_resolution_of_a_conflict_is_found_and_in_the_past_every_head(
        self, call: LineageClient, searched: str, db: Database, caller: Caller
    ) -> None:
        lineage, heads = await self.divided(call)
        then = str(await revision_of(db, caller, "notes"))
        await call.note("the meeting is on Friday", graph="notes", lineage_id=lineage)
        (hit,) = await found_by(call, searched, "meeting")
        assert (hit["content"], hit["conflicts"]) == ("the meeting is on Friday", [])
        past = await found_by(call, searched, "meeting", as_of=then)
        assert {one["id"]: set(one["conflicts"]) for one in past} == {head: set(heads) - {head} for head in heads}
        listed = (await call("list_nodes", graph="notes", as_of=then))["nodes"]
        assert [(one["id"], one["conflicts"]) for one in listed] == [
            (head, [other for other in heads if other != head]) for head in heads
        ]
        first = await found_by(call, searched, "meeting", as_of="1")
        assert [(one["content"], one["conflicts"]) for one in first] == [("the meeting is on Monday", [])]

    @pytest.mark.proves("memgraph: every-head-is-found")
    async def test_a_filter_by_tags_lists_the_heads_that_have_them(self, call: LineageClient) -> None:
        _, heads = await self.divided(call)
        (listed,) = (await call("list_nodes", graph="notes", tags=["tuesday"]))["nodes"]
        assert (listed["content"], listed["conflicts"]) == ("the meeting is on Tuesday", heads[:2])
        page = await call("list_nodes", graph="notes", limit=1, offset=1)
        assert ([node["id"] for node in page["nodes"]], page["more"]) == ([heads[1]], True)

    @pytest.mark.proves("memgraph: conflict-resolution")
    @pytest.mark.parametrize("based_on", [3, None], ids=["on the highest", "on none"])
    async def test_a_put_resolves_a_conflict(self, call: LineageClient, based_on: int | None) -> None:
        await call("create_graph", name="notes", conflict_policy="manual")
        lineage = await call.note("one", graph="notes")
        for content in ("theirs", "ours"):
            await call.note(content, graph="notes", lineage_id=lineage, based_on_version=1)
        put = await call(
            "put_node", graph="notes", kind="note", content="both", lineage_id=lineage, based_on_version=based_on
        )
        assert "conflict" not in put
        assert put["node"]["conflicts"] == []
        versions = (await call("history", graph="notes", lineage_id=lineage))["versions"]
        settled = put["node"]["id"]
        superseded = [(v["content"], v.get("superseded_by"), v["conflicts"]) for v in versions[1:3]]
        assert superseded == [("ours", settled, []), ("theirs", settled, [])]

    @pytest.mark.proves("memgraph: manual-conflicts")
    async def test_a_put_based_on_an_older_sibling_makes_a_third_head(self, call: LineageClient) -> None:
        await call("create_graph", name="notes", conflict_policy="manual")
        lineage = await call.note("one", graph="notes")
        for content in ("theirs", "ours"):
            await call.note(content, graph="notes", lineage_id=lineage, based_on_version=1)
        put = await call("put_node", graph="notes", kind="note", content="3rd", lineage_id=lineage, based_on_version=2)
        assert len(put["conflict"]["heads"]) == 3
        assert len((await call("get_node_by_lineage", graph="notes", lineage_id=lineage))["node"]["conflicts"]) == 2

    async def test_edges_never_conflict(self, call: LineageClient) -> None:
        await call("create_graph", name="notes", conflict_policy="manual")
        one, two = [await call.note(text, graph="notes") for text in ("one", "two")]
        await call.note("one again", graph="notes", lineage_id=one)
        await call.edge(one, two, graph="notes")
        assert (await call("get_node_by_lineage", graph="notes", lineage_id=one))["node"]["conflicts"] == []


class TestGraphs:
    @pytest.mark.proves("lineage: list_graphs", "lineage: get_graph", "lineage: create_graph")
    async def test_a_graph_is_created_listed_and_shown(self, call: LineageClient) -> None:
        made = await call(
            "create_graph", name="notes", conflict_policy="manual", kind_whitelist=["note"], metadata={"a": 1}
        )
        assert made["created"]
        assert (await call("list_graphs"))["graphs"][1:] == [made["graph"]]
        await call.note("one", graph="notes")
        shown = await call("get_graph", graph="notes")
        assert shown == {"graph": made["graph"], "revision": 1, "nodes": 1, "observations": 0, "edges": 0}
        assert await call.refused("get_graph", graph="nowhere") == "graph_not_found"
        again = {"conflict_policy": "manual", "kind_whitelist": ["note"], "metadata": {"a": 1}}
        assert await call("create_graph", name="notes", **again) == {"graph": made["graph"], "created": False}
        assert await call.refused("create_graph", name="notes") == "graph_exists"

    @pytest.mark.proves("lineage: list_graphs")
    async def test_graphs_are_listed_in_pages(self, call: LineageClient) -> None:
        for name in ("a", "b", "c"):
            await call("create_graph", name=name)
        page = await call("list_graphs", limit=2)
        assert ([graph["name"] for graph in page["graphs"]], page["more"]) == (["a", "b"], True)
        page = await call("list_graphs", limit=2, after="b")
        assert ([graph["name"] for graph in page["graphs"]], page["more"]) == (["c", "default"], False)
        assert [graph["name"] for graph in (await call("list_graphs", graph="b"))["graphs"]] == ["b"]

    @pytest.mark.proves("lineage: update_graph_config", "memgraph: update-graph-config")
    async def test_configuration_changes_the_given_fields_and_empty_values_clear_them(
        self, call: LineageClient
    ) -> None:
        made = (await call("create_graph", name="notes", kind_whitelist=["note"], metadata={"a": 1}))["graph"]
        lineage = await call.note("one", graph="notes")
        changed = (await call("update_graph_config", graph="notes", name="papers", conflict_policy="manual"))["graph"]
        assert changed == made | {"name": "papers", "conflict_policy": "manual"}
        cleared = (await call("update_graph_config", graph="papers", kind_whitelist=[], metadata={}))["graph"]
        assert cleared == changed | {"kind_whitelist": [], "metadata": {}}
        assert (await call("get_node_by_lineage", graph="papers", lineage_id=lineage))["node"]["graph"] == "papers"
        assert await call.refused("update_graph_config", graph="notes", metadata={}) == "graph_not_found"
        await call("create_graph", name="notes")
        assert await call.refused("update_graph_config", graph="notes", name="papers") == "graph_exists"

    async def test_a_boolean_in_metadata_differs_from_a_number(self, call: LineageClient) -> None:
        await call("create_graph", name="notes", metadata={"on": 1})
        assert await call.refused("create_graph", name="notes", metadata={"on": True}) == "graph_exists"
        changed = await call("update_graph_config", graph="notes", metadata={"on": True})
        assert changed["graph"]["metadata"]["on"] is True

    async def test_an_invalid_graph_name_is_refused(self, call: LineageClient) -> None:
        for tool, arguments in (("create_graph", {}), ("update_graph_config", {"graph": "default"})):
            result = await call.gateway.call(call.http, tool, {"name": "papers\n", **arguments}, path=PATH)
            assert result["_meta"][ERROR_META] == {"code": "invalid_input", "path": "name"}
        assert [graph["name"] for graph in (await call("list_graphs"))["graphs"]] == ["default"]

    async def test_invalid_settings_in_metadata_are_refused(self, call: LineageClient) -> None:
        odd, sound = {"dedup": {"mode": "merge", "threshold": 7}}, {"dedup": {"mode": "merge", "threshold": 0.7}}
        for tool, arguments in (("create_graph", {"name": "notes"}), ("update_graph_config", {"graph": "default"})):
            result = await call.gateway.call(call.http, tool, {"metadata": odd, **arguments}, path=PATH)
            assert result["_meta"][ERROR_META] == {"code": "invalid_input", "path": "metadata.dedup.threshold"}
            assert (await call(tool, metadata=sound, **arguments))["graph"]["metadata"] == sound

    @pytest.mark.proves("memgraph: kind-whitelist", "memgraph: error-codes")
    async def test_the_whitelist_of_kinds_is_enforced(self, call: LineageClient) -> None:
        await call("create_graph", name="notes", kind_whitelist=["note"])
        put = {"graph": "notes", "kind": "idea", "content": "x"}
        assert await call.refused("put_node", **put) == "kind_not_allowed"
        entity = {"name": "Ada", "entityType": "person", "observations": []}
        assert await call.refused("create_entities", graph="notes", entities=[entity]) == "kind_not_allowed"
        written = await call(
            "put_subgraph",
            graph="notes",
            nodes=[{"kind": "idea", "content": "x"}, {"kind": "note", "content": "y"}],
        )
        assert [node.get("code") for node in written["nodes"]] == ["kind_not_allowed", None]
        await call("update_graph_config", graph="notes", kind_whitelist=["idea"])
        assert (await call("put_node", **put))["created"]
        lineage = written["nodes"][1]["lineage_id"]
        assert await call.refused("put_node", **put | {"kind": "plan", "lineage_id": lineage}) == "kind_not_allowed"
        await call.note("a node keeps the kind that it has", graph="notes", lineage_id=lineage)

    async def test_deleting_a_graph_has_a_long_statement_timeout(
        self, call: LineageClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A statement may run as long as that of an erasure, which does the same work."""
        bounds, delete = list[str](), graph_store.delete_nodes

        async def watched(tx: Transaction, *arguments: Any, **more: Any) -> UUID | None:
            bounds.append(await tx.fetchval(Query.compile("SHOW statement_timeout")))
            return await delete(tx, *arguments, **more)

        monkeypatch.setattr(graph_store, "delete_nodes", watched)
        await call.note("a platypus", graph="notes")
        assert (await call("delete_graph", graph="notes"))["deleted"]
        assert set(bounds) == {"10min"}

    @pytest.mark.proves("lineage: delete_graph")
    async def test_a_deleted_graph_is_gone_and_its_name_free(self, call: LineageClient) -> None:
        lineage = await call.note("a platypus", graph="notes")
        assert await call("delete_graph", graph="notes") == {"graph": "notes", "deleted": True}
        assert await call("delete_graph", graph="notes") == {"graph": "notes", "deleted": False}
        assert await call.refused("get_graph", graph="notes") == "graph_not_found"
        await call("create_graph", name="notes")
        assert await call.refused("history", graph="notes", lineage_id=lineage) == "node_not_found"
        assert (await call("search_graph", graph="notes", text="platypus"))["hits"] == []
        assert (await call("get_graph", graph="notes"))["revision"] == 0


class TestLists:
    @pytest.mark.proves("lineage: list_nodes", "memgraph: list-nodes")
    async def test_nodes_are_listed_by_kinds_and_tags_compactly_and_in_pages(self, call: LineageClient) -> None:
        await call.note("one", tags=["Topic:Tea"], metadata={"a": 1})
        await call.note("two", kind="idea", tags=["topic:tea", "hot"])
        await call.note("three", kind="plan")
        assert contents(await call("list_nodes", kinds=["note", "plan"])) == ["one", "three"]
        assert contents(await call("list_nodes", tags=["TOPIC:tea"])) == ["one", "two"]
        assert contents(await call("list_nodes", tags=["TOPIC:tea"], kinds=["idea"])) == ["two"]
        page = await call("list_nodes", limit=1, offset=1)
        assert (contents(page), page["more"]) == (["two"], True)
        (compact,) = (await call("list_nodes", kinds=["note"], compact=True))["nodes"]
        assert {"id", "lineage_id", "version", "kind", "summary", "is_current", "is_stale", "conflicts"} <= set(compact)
        assert compact["tags"] == ["Topic:Tea"]
        assert {"content", "metadata", "created_by"}.isdisjoint(compact)

    @OF_WORDLLAMA
    @pytest.mark.proves("lineage: batch_search")
    async def test_lists_read_the_past(self, call: LineageClient, db: Database, caller: Caller) -> None:
        lineage = await call.note("one", tags=["a:b"])
        target = await call.note("target")
        edge = await call.edge(lineage, target)
        then = str(await revision_of(db, caller))
        await call.note("two", lineage_id=lineage, kind="idea")
        await call("delete_edge", id=edge)
        assert contents(await call("list_nodes", as_of=then, tags=["A:B"])) == ["one"]
        assert (await call("list_tags"))["tags"] == []
        assert (await call("list_tags", as_of=then))["tags"] == [{"tag": "a:b", "count": 1}]
        kinds = (await call("describe_schema", as_of=then))["kinds"]
        assert [(kind["kind"], kind["count"]) for kind in kinds] == [("note", 2)]
        assert [e["id"] for e in (await call("outgoing", lineage_id=lineage, as_of=then))["edges"]] == [edge]
        assert [e["id"] for e in (await call("incoming", lineage_id=target, as_of=then))["edges"]] == [edge]
        assert contents(await call("traverse", lineage_id=lineage, as_of=then)) == ["one", "target"]
        assert contents(await call("traverse", lineage_id=lineage)) == ["two"]
        assert contents(await call("search_graph", text="one", as_of=then)) == ["one"]
        assert "one" not in contents(await call("search_graph", text="one"))
        queries = [{"text": "one"}, {"text": "target"}, {"text": "two"}]
        batch = await call("batch_search", queries=queries, as_of=then)
        assert sorted(contents(batch)) == ["one", "target"]
        assert batch["per_query_hits"] == [1, 1, 1], "the last one is near the first in meaning"
        assert sorted(contents(await call("batch_search", queries=queries))) == ["target", "two"]
        assert (await call("batch_search", queries=queries, as_of="0"))["hits"] == []

    @pytest.mark.proves("lineage: search_graph")
    async def test_search_finds_nodes_of_every_vocabulary_once(self, call: LineageClient) -> None:
        await call.note("Anvils are made of iron", tags=["Metal"])
        entity = {"name": "Acme", "entityType": "company", "observations": ["makes anvils", "sells anvils"]}
        await call("create_entities", entities=[entity])
        found = await call("search_graph", text="anvils")
        assert sorted(hit["node"].get("name", "") for hit in found["hits"]) == ["", "Acme"]
        assert contents(await call("search_graph", text="anvils", kinds=["note"])) == ["Anvils are made of iron"]
        assert contents(await call("search_graph", text="anvils", tags=["METAL"])) == ["Anvils are made of iron"]
        one = await call("search_graph", text="anvils", limit=1)
        assert (len(one["hits"]), one["more"]) == (1, True)

    @pytest.mark.proves("lineage: describe_schema", "memgraph: describe-schema")
    async def test_describe_schema_reports_kinds_and_tags(self, call: LineageClient) -> None:
        for n in range(4):
            await call.note(f"content {n}", summary=f"short {n}", tags=["Topic:Tea", f"topic:{n:02}"])
        await call.note("an idea", kind="idea", tags=["topic:TEA", "plain"])
        for n in range(12):
            await call.note("x", kind="many", tags=[f"number:{n}"])
        found = await call("describe_schema")
        assert found["node_count"] == 17
        assert [(k["kind"], k["count"], len(k["examples"])) for k in found["kinds"]] == [
            ("many", 12, 3),
            ("note", 4, 3),
            ("idea", 1, 1),
        ]
        assert found["kinds"][1]["examples"] == ["short 3", "short 2", "short 1"]
        assert found["kinds"][2]["examples"] == ["an idea"]
        prefixes = {prefix["prefix"].lower(): prefix for prefix in found["tag_prefixes"]}
        assert (prefixes["number"]["count"], len(prefixes["number"]["values"])) == (12, 10)
        assert (prefixes["topic"]["count"], prefixes["topic"]["values"][0]) == (9, "Tea")
        assert len(prefixes["topic"]["values"]) == 5
        assert found["tags"][0] == {"tag": "Topic:Tea", "count": 5}
        assert {"tag": "plain", "count": 1} in found["tags"]
        assert not found["more"]

    @pytest.mark.proves("lineage: list_tags", "memgraph: list-tags")
    async def test_tags_are_listed_by_prefix_most_used_first(self, call: LineageClient) -> None:
        await call.note("one", tags=["Topic:Tea", "other"])
        await call.note("two", tags=["topic:coffee"])
        await call.note("three", tags=["Topic:Tea", "TOPIC:tea"])
        listed = await call("list_tags", prefix="TOPIC:")
        assert listed == {
            "tags": [{"tag": "Topic:Tea", "count": 2}, {"tag": "topic:coffee", "count": 1}],
            "more": False,
        }
        one = await call("list_tags", limit=1)
        assert (one["tags"], one["more"]) == ([{"tag": "Topic:Tea", "count": 2}], True)
        assert (await call("list_tags", prefix="%"))["tags"] == []
        assert await call("list_tags", limit=101) == await call("list_tags")

    async def test_at_most_a_hundred_tags_are_listed(self, call: LineageClient) -> None:
        for part in range(3):
            await call.note(f"part {part}", tags=[f"tag{part}-{number}" for number in range(40)])
        listed = await call("list_tags", limit=1_000)
        assert (len(listed["tags"]), listed["more"]) == (100, True)


class TestEdges:
    @pytest.mark.proves("lineage: outgoing", "lineage: incoming", "memgraph: edges-survive-versions")
    async def test_edges_survive_new_versions_and_keep_their_ordinal(self, call: LineageClient) -> None:
        page, *lines = [await call.note(text) for text in ("page", "line 1", "line 2")]
        second = await call.edge(page, lines[1], ordinal=2, metadata={"m": [1]}, created_by="someone")
        first = await call.edge(page, lines[0], ordinal=1)
        await call.note("page again", lineage_id=page)
        await call.note("line 2 again", lineage_id=lines[1])
        edges = (await call("outgoing", lineage_id=page))["edges"]
        assert [edge["id"] for edge in edges] == [first, second]
        assert (edges[1]["ordinal"], edges[1]["metadata"], edges[1]["created_by"]) == (2, {"m": [1]}, "someone")
        assert (edges[1]["symlink"], edges[1]["dangling"]) == (False, False)
        assert (await call("incoming", lineage_id=lines[1]))["edges"] == [edges[1]]
        cut = await call("outgoing", lineage_id=page, limit=1)
        assert ([edge["id"] for edge in cut["edges"]], cut["more"]) == ([first], True)
        assert (await call("outgoing", lineage_id=page, edge_kinds=["other"]))["edges"] == []

    @pytest.mark.proves("lineage: put_edge", "lineage: delete_edge")
    async def test_an_existing_edge_is_returned_and_a_deleted_one_is_gone(self, call: LineageClient) -> None:
        one, two = [await call.note(text) for text in ("one", "two")]
        edge = await call.edge(one, two)
        again = await call("put_edge", from_lineage=one, to_lineage=two, kind="cites")
        assert (again["edge"]["id"], again["created"]) == (edge, False)
        assert await call("delete_edge", id=edge) == {"id": edge, "deleted": True}
        assert await call("delete_edge", id=edge) == {"id": edge, "deleted": False}
        assert (await call("outgoing", lineage_id=one))["edges"] == []

    @pytest.mark.proves("lineage: put_edge", "memgraph: put-edge-updates")
    async def test_an_edge_that_is_put_again_is_updated_under_its_id(
        self, call: LineageClient, db: Database, caller: Caller
    ) -> None:
        """This differs deliberately from the package, which may make a parallel edge of the same kind."""
        one, two = [await call.note(text) for text in ("one", "two")]
        edge = await call.edge(one, two, metadata={"page": 1}, ordinal=1, created_by="someone")
        before = str(await revision_of(db, caller))
        ends = {"from_lineage": one, "to_lineage": two, "kind": "cites"}
        known = await call("put_edge", **ends, metadata={"page": 1})
        assert (known["edge"]["id"], known["created"], known["updated"]) == (edge, False, False)
        assert str(await revision_of(db, caller)) == before
        put = await call("put_edge", **ends, metadata={"page": 2}, created_by="another")
        assert (put["edge"]["id"], put["created"], put["updated"]) == (edge, False, True)
        assert put["edge"] == known["edge"] | {"metadata": {"page": 2}}
        assert (await call("outgoing", lineage_id=one))["edges"] == [put["edge"]]
        [then] = (await call("outgoing", lineage_id=one, as_of=before))["edges"]
        assert (then["id"], then["metadata"]) == (edge, {"page": 1})
        emptied = await call("put_edge", **ends, metadata={})
        assert (emptied["edge"]["metadata"], emptied["edge"]["ordinal"], emptied["updated"]) == ({}, 1, True)
        assert await call("delete_edge", id=edge) == {"id": edge, "deleted": True}

    @pytest.mark.proves("memgraph: symlinks")
    async def test_the_ends_of_an_edge_must_exist_in_their_graphs(self, call: LineageClient) -> None:
        here, there = await call.note("here"), await call.note("there", graph="other")
        put = {"from_lineage": here, "to_lineage": there, "kind": "cites"}
        assert await call.refused("put_edge", **put) == "node_not_found"
        assert await call.refused("put_edge", **put, to_graph="nowhere") == "graph_not_found"
        assert await call.refused("put_edge", **put | {"from_lineage": there}, to_graph="other") == "node_not_found"
        assert await call.refused("put_edge", **put | {"to_lineage": NEVER}) == "node_not_found"
        assert (await call("put_edge", **put, to_graph="other"))["edge"]["symlink"]

    async def test_an_edge_to_an_unknown_name_is_dangling(self, call: LineageClient) -> None:
        """It stays so until an entity of that name is created, whose history begins then."""
        await call("create_entities", entities=[{"name": "Ada", "entityType": "person", "observations": []}])
        await call("create_relations", relations=[{"from": "Ada", "to": "Babbage", "relationType": "knows"}])
        (ada,) = (await call("list_nodes"))["nodes"]
        (edge,) = (await call("outgoing", lineage_id=ada["lineage_id"]))["edges"]
        assert (edge["kind"], edge["dangling"]) == ("knows", True)
        assert await call.refused("history", lineage_id=edge["to_lineage"]) == "node_not_found"
        assert len((await call("traverse", lineage_id=ada["lineage_id"]))["nodes"]) == 1
        await call("create_entities", entities=[{"name": "Babbage", "entityType": "person", "observations": []}])
        (edge,) = (await call("incoming", lineage_id=edge["to_lineage"]))["edges"]
        assert not edge["dangling"]
        (version,) = (await call("history", lineage_id=edge["to_lineage"]))["versions"]
        assert (version["name"], version["is_current"]) == ("Babbage", True)


class TestTraversal:
    @pytest.fixture
    async def chain(self, call: LineageClient) -> list[str]:
        """Five notes, each citing the next, and one that only the first mentions."""
        notes = [await call.note(str(n)) for n in range(5)]
        for source, target in pairwise(notes):
            await call.edge(source, target)
        await call.edge(notes[0], await call.note("aside"), kind="mentions")
        return notes

    @pytest.mark.proves("lineage: traverse", "memgraph: traverse")
    async def test_the_default_traversal_is_outgoing_and_two_edges_deep(
        self, call: LineageClient, chain: list[str]
    ) -> None:
        found = await call("traverse", lineage_id=chain[0])
        assert [(n["node"]["content"], n["depth"]) for n in found["nodes"]] == [
            ("0", 0),
            ("1", 1),
            ("aside", 1),
            ("2", 2),
        ]
        assert len(found["edges"]) == 3
        assert found["cut"] == ""
        assert contents(await call("traverse", lineage_id=chain[2])) == ["2", "3", "4"]
        assert contents(await call("traverse", lineage_id=chain[2], direction="incoming")) == ["2", "1", "0"]
        both = contents(await call("traverse", lineage_id=chain[2], direction="both", max_depth=1))
        assert sorted(both) == ["1", "2", "3"]

    @pytest.mark.proves("lineage: traverse", "memgraph: traverse")
    async def test_a_traversal_is_bounded(self, call: LineageClient, chain: list[str]) -> None:
        assert len(contents(await call("traverse", lineage_id=chain[0], max_depth=10))) == 6
        only = contents(await call("traverse", lineage_id=chain[0], max_depth=10, edge_kinds=["cites"]))
        assert only == ["0", "1", "2", "3", "4"]
        cut = await call("traverse", lineage_id=chain[0], max_depth=10, max_nodes=3)
        assert (len(cut["nodes"]), cut["cut"]) == (3, "nodes")
        assert await call.refused("traverse", lineage_id=chain[0], max_depth=11) == "invalid_input"

    @pytest.mark.proves("memgraph: following-symlinks")
    async def test_symlinks_are_followed_only_when_asked(self, call: LineageClient) -> None:
        here = await call.note("here")
        there, further = [await call.note(text, graph="other") for text in ("there", "further")]
        await call.edge(here, there, to_graph="other")
        await call.edge(there, further, graph="other")
        assert contents(await call("traverse", lineage_id=here)) == ["here"]
        found = await call("traverse", lineage_id=here, follow_symlinks=True)
        assert contents(found) == ["here", "there", "further"]
        assert [node["node"]["graph"] for node in found["nodes"]] == ["default", "other", "other"]
        assert [(e["graph"], e["to_graph"], e["symlink"]) for e in found["edges"]] == [
            ("default", "other", True),
            ("other", "other", False),
        ]
        back = await call("traverse", graph="other", lineage_id=there, direction="incoming", follow_symlinks=True)
        assert contents(back) == ["there", "here"]
        past = {"lineage_id": here, "follow_symlinks": True, "as_of": "1"}
        assert await call.refused("traverse", **past) == "invalid_input"

    @pytest.mark.proves("lineage: symlink_manifest", "memgraph: symlinks", "memgraph: symlink-manifest")
    async def test_a_symlink_to_a_deleted_target_is_marked_as_dangling(self, call: LineageClient) -> None:
        here, other = await call.note("here"), await call.note("there", graph="other")
        await call("create_entities", graph="third", entities=[{"name": "A", "entityType": "t", "observations": []}])
        (entity,) = (await call("list_nodes", graph="third"))["nodes"]
        edges = [
            await call.edge(here, other, to_graph="other"),
            await call.edge(here, entity["lineage_id"], to_graph="third"),
        ]
        manifest = await call("symlink_manifest")
        assert [(e["id"], e["dangling"], e["to_graph"]) for e in manifest["symlinks"]] == [
            (edges[0], False, "other"),
            (edges[1], False, "third"),
        ]
        await call("delete_graph", graph="other")
        await call("delete_entities", graph="third", entityNames=["A"])
        manifest = await call("symlink_manifest")
        assert [(e["id"], e["dangling"], e.get("to_graph")) for e in manifest["symlinks"]] == [
            (edges[0], True, None),
            (edges[1], True, "third"),
        ]
        targets = [(t.get("graph"), t["count"], t["dangling"]) for t in manifest["targets"]]
        assert targets == [(None, 1, 1), ("third", 1, 1)]
        assert [edge["dangling"] for edge in (await call("outgoing", lineage_id=here))["edges"]] == [True, True]
        assert contents(await call("traverse", lineage_id=here, follow_symlinks=True)) == ["here"]


class TestSubgraphs:
    @pytest.mark.proves(
        "lineage: put_subgraph",
        "memgraph: put-subgraph",
        "memgraph: put-subgraph-order",
        "memgraph: put-subgraph-edge-ends",
        "memgraph: error-codes",
    )
    async def test_each_item_of_a_subgraph_reports_its_outcome(
        self, call: LineageClient, db: Database, caller: Caller
    ) -> None:
        known = await call.note("known")
        before = await revision_of(db, caller)
        written = await call(
            "put_subgraph",
            nodes=[
                {"ref": "a", "kind": "note", "content": "new"},
                {"ref": "b", "kind": "note", "content": "known again", "lineage_id": known, "based_on_version": 1},
                {"ref": "c", "kind": "note", "content": "lost", "lineage_id": NEVER},
                {"ref": "a", "kind": "note", "content": "another a"},
                {"kind": "note", "content": "nameless"},
                {"kind": "note", "content": "known a third time", "lineage_id": known},
            ],
            edges=[
                {"kind": "cites", "from_ref": "a", "to_ref": "b"},
                {"kind": "cites", "from_ref": "a", "to_ref": "c"},
                {"kind": "cites", "from_ref": "a", "from_lineage": known, "to_ref": "b"},
                {"kind": "cites", "from_ref": "a"},
                {"kind": "cites", "from_lineage": known, "to_lineage": NEVER},
                {"kind": "cites", "from_lineage": known, "to_ref": "a", "to_graph": "nowhere"},
                {"kind": "cites", "from_lineage": known, "to_ref": "a", "ordinal": 3, "created_by": "someone"},
            ],
        )
        assert await revision_of(db, caller) == before + 1
        assert [(n["created"], n.get("version"), n.get("code")) for n in written["nodes"]] == [
            (True, 1, None),
            (False, 2, None),
            (False, None, "node_not_found"),
            (False, None, "invalid_input"),
            (True, 1, None),
            (False, 3, None),
        ]
        assert [node.get("ref") for node in written["nodes"]] == ["a", "b", "c", "a", None, None]
        assert [edge.get("code") for edge in written["edges"]] == [
            None,
            "invalid_input",
            "invalid_input",
            "invalid_input",
            "node_not_found",
            "graph_not_found",
            None,
        ]
        assert all(("edge_id" in edge) != ("error" in edge) for edge in written["edges"])
        assert contents(await call("list_nodes")) == ["known a third time", "new", "nameless"]
        versions = await call("history", lineage_id=known)
        assert contents(versions) == ["known a third time", "known again", "known"]
        (edge,) = (await call("outgoing", lineage_id=known))["edges"]
        assert (edge["ordinal"], edge["created_by"]) == (3, "someone")

    @pytest.mark.proves("memgraph: error-codes")
    async def test_a_manual_conflict_is_written_and_reported(self, call: LineageClient) -> None:
        await call("create_graph", name="notes", conflict_policy="manual")
        lineage = await call.note("one", graph="notes")
        await call.note("theirs", graph="notes", lineage_id=lineage, based_on_version=1)
        node = {"kind": "note", "content": "ours", "lineage_id": lineage, "based_on_version": 1}
        (written,) = (await call("put_subgraph", graph="notes", nodes=[node]))["nodes"]
        assert (written["version"], written["code"]) == (3, "manual_conflict")

    @pytest.mark.proves("memgraph: put-subgraph", "memgraph: put-subgraph-item-errors", "memgraph: error-codes")
    async def test_a_malformed_subgraph_is_refused_as_a_whole(self, call: LineageClient) -> None:
        node = {"kind": "note", "content": "x"}
        edge = {"kind": "cites", "from_lineage": NEVER, "to_lineage": NEVER}
        misshapen: list[dict[str, Any]] = [
            {},
            {"nodes": [], "edges": []},
            {"nodes": node},
            {"nodes": [node], "edges": "none"},
            {"nodes": [node] * 51},
            {"nodes": [node], "edges": [edge] * 101},
            {"nodes": [node], "edge": []},
            {"nodes": [node], "graph": "no graph\0"},
        ]
        for arguments in misshapen:
            assert await call.refused("put_subgraph", **arguments) == "invalid_input"
        assert (await call("list_nodes"))["nodes"] == []
        assert len((await call("put_subgraph", nodes=[node] * 50, edges=[edge] * 100))["nodes"]) == 50

    @pytest.mark.proves("memgraph: put-subgraph-item-errors")
    async def test_an_invalid_node_of_a_subgraph_fails_alone(self, call: LineageClient) -> None:
        node = {"kind": "note", "content": "x"}
        deep: Any = "deep"
        for _ in range(40):
            deep = {"in": deep}
        wrong: dict[str, Any] = {
            "kind: Required": {"content": "x"},
            "kind": node | {"kind": ""},
            "content": node | {"content": ""},
            "tags.0": node | {"tags": [""]},
            "tags.1": node | {"tags": ["fine", 7]},
            "freshness_at": node | {"freshness_at": "soon"},
            "at": node | {"at": "0001-01-01T00:00:00+14:00"},
            "lineage_id": node | {"lineage_id": "nobody"},
            "content: Holds": node | {"content": "a\0b"},
            "metadata": node | {"metadata": {"big": "x" * 200_000}},
            "metadata.": node | {"metadata": deep},
            "colour: Unknown argument": node | {"colour": "red"},
            "Expected `object`": "a note",
            "": None,
        }
        nodes = [
            item | {"ref": f"wrong {n}"} if isinstance(item, dict) else item for n, item in enumerate(wrong.values())
        ]
        written = await call("put_subgraph", nodes=[*nodes, node | {"ref": "right"}])
        *failed, right = written["nodes"]
        assert [one["code"] for one in failed] == ["invalid_input"] * len(wrong)
        assert [one["created"] for one in failed] == [False] * len(wrong)
        for (said, item), one, place in zip(wrong.items(), failed, range(len(wrong)), strict=True):
            assert one["error"].startswith(said), one
            assert one.get("ref") == (f"wrong {place}" if isinstance(item, dict) else None)
        assert (right["created"], right["ref"]) == (True, "right")
        assert contents(await call("list_nodes")) == ["x"]

    @pytest.mark.proves("memgraph: put-subgraph-item-errors")
    async def test_an_invalid_edge_of_a_subgraph_fails_alone(self, call: LineageClient) -> None:
        one, two = [await call.note(text) for text in ("one", "two")]
        edge = {"kind": "cites", "from_lineage": one, "to_lineage": two}
        wrong: dict[str, Any] = {
            "kind": edge | {"kind": ""},
            "from_lineage": edge | {"from_lineage": "nobody"},
            "to_graph": edge | {"to_graph": "no graph"},
            "ordinal": edge | {"ordinal": 2**40},
            "kind: Holds": edge | {"kind": "a\0b"},
            "from_ref: ": edge | {"from_ref": "both"},
            "Expected `object`": ["cites", one, two],
        }
        nodes = [{"kind": "", "content": "x", "ref": "lost"}]
        lost = {"kind": "cites", "from_lineage": one, "to_ref": "lost"}
        written = await call("put_subgraph", nodes=nodes, edges=[*wrong.values(), lost, edge])
        *failed, right = written["edges"]
        assert [one["code"] for one in failed] == ["invalid_input"] * (len(wrong) + 1)
        for said, told in zip([*wrong, "to_ref"], failed, strict=True):
            assert told["error"].startswith(said), told
        [made] = (await call("outgoing", lineage_id=one))["edges"]
        assert (made["id"], made["to_lineage"]) == (right["edge_id"], two)

    async def test_an_invalid_ref_is_left_out_of_the_answer(self, call: LineageClient) -> None:
        refs: list[Any] = ["x" * 200, "a\0b", 7, {"ref": 1}]
        nodes = [{"kind": "note", "content": "x", "ref": ref} for ref in refs]
        written = (await call("put_subgraph", nodes=nodes))["nodes"]
        assert [(one.get("ref"), one["error"].partition(":")[0]) for one in written] == [(None, "ref")] * len(refs)
        assert (await call("list_nodes"))["nodes"] == []

    async def test_the_schema_describes_the_items_of_a_subgraph(self) -> None:
        (tool,) = [tool for tool in CATALOGUE if tool.name == "put_subgraph"]
        listed, whole = definition(tool).input_schema["properties"], json_schema(tool.arguments)["properties"]
        for name, item in (("nodes", SubgraphNode), ("edges", EdgeIn)):
            assert listed[name]["items"] == listed_schema(item)
            assert whole[name]["items"] == json_schema(item)
            assert whole[name]["maxItems"] in (50, 100)

    @pytest.mark.proves("memgraph: put-subgraph-known-edges")
    async def test_an_existing_edge_is_updated(self, call: LineageClient) -> None:
        one, two = [await call.note(text) for text in ("one", "two")]
        ends = {"kind": "cites", "from_lineage": one, "to_lineage": two}
        puts = [ends, ends | {"ordinal": 1}, ends | {"metadata": {"page": 2}}, ends]
        told = (await call("put_subgraph", edges=puts))["edges"]
        assert [edge.get("updated", False) for edge in told] == [False, True, True, False]
        assert len({edge["edge_id"] for edge in told}) == 1
        [edge] = (await call("outgoing", lineage_id=one))["edges"]
        assert (edge["ordinal"], edge["metadata"]) == (1, {"page": 2})

    async def test_edges_of_a_subgraph_may_lead_to_other_graphs(self, call: LineageClient) -> None:
        there = await call.note("there", graph="other")
        written = await call(
            "put_subgraph",
            nodes=[{"ref": "a", "kind": "note", "content": "here"}],
            edges=[
                {"kind": "cites", "from_ref": "a", "to_lineage": there, "to_graph": "other"},
                {"kind": "cites", "from_ref": "a", "to_ref": "a", "to_graph": "other"},
            ],
        )
        assert [edge.get("code") for edge in written["edges"]] == [None, "node_not_found"]
        assert (await call("symlink_manifest"))["symlinks"][0]["id"] == written["edges"][0]["edge_id"]


class TestIsolation:
    """Each tool with ids of another tenant, and with a key that is confined to some graphs."""

    READERS = ("get_node_by_lineage", "history", "outgoing", "incoming", "traverse")

    @pytest.fixture
    async def foreign(
        self, gateway: RunningGateway, new_tenant: NewTenant, issue: NewApiKey
    ) -> AsyncIterator[LineageClient]:
        """A client of another tenant, with graphs `default` and `theirs`."""
        secret = (await issue(operator_caller(await new_tenant()), kind="admin")).secret
        async with client(gateway, secret) as calls:
            yield calls

    @pytest.mark.proves("rules: no-foreign-ids", "memgraph: following-symlinks")
    async def test_nodes_of_another_tenant_are_never_found_linked_or_counted(
        self, call: LineageClient, foreign: LineageClient
    ) -> None:
        theirs, other = [await foreign.note(text, tags=["secret:tag"]) for text in ("a platypus", "other")]
        edge = await foreign.edge(theirs, other)
        hidden = await foreign.note("hidden", graph="theirs")
        said = {"text": "lays eggs", "about": ["platypus"], "kind": "secret", "tags": ["secret:other"]}
        await foreign.gateway.call(foreign.http, "remember", {"items": [said]}, path="/mcp/x/agent")
        assert [tag["tag"] for tag in (await foreign("list_tags"))["tags"]] == ["secret:tag", "secret:other"]
        version = (await foreign("get_node_by_lineage", lineage_id=theirs))["node"]["id"]
        mine = await call.note("mine")
        state = [await foreign("list_nodes"), await foreign("outgoing", lineage_id=theirs), await foreign("get_graph")]
        checked = set()

        for tool in self.READERS:
            assert await call.refused(tool, lineage_id=theirs) == "node_not_found"
            checked.add(tool)
        assert await call.refused("get_node_by_id", id=version) == "node_not_found"
        assert [graph["name"] for graph in (await call("list_graphs"))["graphs"]] == ["default"]
        assert await call.refused("get_graph", graph="theirs") == "graph_not_found"
        assert await call.refused("update_graph_config", graph="theirs", metadata={}) == "graph_not_found"
        assert (await call("delete_graph", graph="theirs"))["deleted"] is False
        assert (await call("create_graph", name="theirs"))["created"]
        assert await call.refused("put_node", kind="note", content="x", lineage_id=theirs) == "node_not_found"
        for source, target in ((mine, theirs), (theirs, mine)):
            put = {"from_lineage": source, "to_lineage": target, "kind": "cites"}
            assert await call.refused("put_edge", **put) == "node_not_found"
            assert [e["code"] for e in (await call("put_subgraph", edges=[put]))["edges"]] == ["node_not_found"]
        into = {"from_lineage": mine, "to_lineage": hidden, "to_graph": "theirs", "kind": "cites"}
        assert await call.refused("put_edge", **into) == "node_not_found"
        updated = await call("put_subgraph", nodes=[{"kind": "note", "content": "x", "lineage_id": theirs}])
        assert updated["nodes"][0]["code"] == "node_not_found"
        assert (await call("delete_edge", id=edge))["deleted"] is False
        assert contents(await call("list_nodes")) == ["mine"]
        assert contents(await call("search_graph", text="platypus")) in ([], ["mine"])
        batched = await call("batch_search", queries=[{"text": "platypus"}, {"text": "theirs"}])
        assert contents(batched) in ([], ["mine"])
        described = await call("describe_schema")
        assert (described["node_count"], described["tags"], described["tag_prefixes"]) == (1, [], [])
        assert [kind["kind"] for kind in described["kinds"]] == ["note"]
        assert (await call("list_tags"))["tags"] == []
        assert (await call("symlink_manifest"))["symlinks"] == []
        assert contents(await call("traverse", lineage_id=mine, follow_symlinks=True, direction="both")) == ["mine"]

        after = [await foreign("list_nodes"), await foreign("outgoing", lineage_id=theirs), await foreign("get_graph")]
        assert after == state
        checked |= {"get_node_by_id", "list_graphs", "get_graph", "update_graph_config", "delete_graph", "create_graph"}
        checked |= {"put_node", "put_edge", "put_subgraph", "delete_edge", "list_nodes", "search_graph", "batch_search"}
        checked |= {"describe_schema", "list_tags", "symlink_manifest"}
        assert checked == {tool.name for tool in CATALOGUE if "lineage" in tool.toolsets}

    @pytest.fixture
    async def confined(
        self, gateway: RunningGateway, call: LineageClient, issue: NewApiKey, caller: Caller
    ) -> AsyncIterator[LineageClient]:
        """A client whose key may use `default` and `open`, but not `closed`."""
        graphs = {
            name: (await call("create_graph", name=name))["graph"]["id"] for name in ("default", "open", "closed")
        }
        allowed = (graphs["default"], graphs["open"])
        secret = (await issue(caller, kind="admin", graph_ids=allowed)).secret
        async with client(gateway, secret) as calls:
            yield calls

    @pytest.mark.proves("memgraph: following-symlinks")
    async def test_a_confined_key_follows_symlinks_only_into_its_graphs(
        self, call: LineageClient, confined: LineageClient
    ) -> None:
        here = await call.note("here")
        opened, closed = [await call.note(graph, graph=graph) for graph in ("open", "closed")]
        for target, graph in ((opened, "open"), (closed, "closed")):
            await call.edge(here, target, to_graph=graph)
            await call.edge(target, here, graph=graph, to_graph="default")
        assert sorted(contents(await call("traverse", lineage_id=here, follow_symlinks=True))) == [
            "closed",
            "here",
            "open",
        ]
        for direction in ("outgoing", "incoming", "both"):
            found = await confined("traverse", lineage_id=here, follow_symlinks=True, direction=direction)
            assert contents(found) == ["here", "open"]
            assert closed not in str(found)
        for tool in ("outgoing", "incoming"):
            assert len((await call(tool, lineage_id=here))["edges"]) == 2
            (edge,) = (await confined(tool, lineage_id=here))["edges"]
            assert closed not in str(edge)
        assert [e["to_graph"] for e in (await confined("symlink_manifest"))["symlinks"]] == ["open"]
        put = {"from_lineage": here, "to_lineage": closed, "to_graph": "closed", "kind": "cites"}
        assert await confined.refused("put_edge", **put) == "graph_not_allowed"
        (edge,) = (await confined("put_subgraph", edges=[put | {"kind": "other"}]))["edges"]
        assert edge["code"] == "graph_not_allowed"

    async def test_a_confined_key_sees_no_names_from_other_graphs(
        self, call: LineageClient, confined: LineageClient
    ) -> None:
        """Neither of targets nor of sources of edges, now or in the past, in any vocabulary."""
        lineages = {}
        for name, graph in (("Ada", "default"), ("Open", "open"), ("Closed", "closed")):
            await call("create_entities", graph=graph, entities=[{"name": name, "entityType": "t", "observations": []}])
            (node,) = (await call("list_nodes", graph=graph))["nodes"]
            lineages[name] = node["lineage_id"]
        for name in ("Open", "Closed"):
            await call.edge(lineages["Ada"], lineages[name], to_graph=name.lower())
            await call.edge(lineages[name], lineages["Ada"], graph=name.lower(), to_graph="default")
        readers: list[tuple[str, dict[str, Any]]] = [
            ("open_nodes", {"names": ["Ada"]}),
            ("read_graph", {}),
            ("read_graph", {"limit": 10, "offset": 0}),
            ("search_nodes", {"query": "Ada"}),
            ("search_relations", {}),
        ]
        for tool, arguments in readers:
            for past in ({}, {"as_of": "3"}):
                told = (await call(tool, **arguments, **past))["relations"]
                assert [(r["from"], r["to"]) for r in told] == [("Ada", "Open"), ("Ada", "Closed")], (tool, past)
                told = (await confined(tool, **arguments, **past))["relations"]
                assert [(r["from"], r["to"]) for r in told] == [("Ada", "Open")], (tool, past)

    async def test_a_confined_key_can_neither_manage_graphs_nor_use_others(
        self, call: LineageClient, confined: LineageClient
    ) -> None:
        lineage = await call.note("closed", graph="closed")
        assert [graph["name"] for graph in (await confined("list_graphs"))["graphs"]] == ["default", "open"]
        assert await confined.refused("create_graph", name="new") == "graph_not_allowed"
        for graph in ("open", "closed", "nowhere"):
            assert await confined.refused("delete_graph", graph=graph) == "graph_not_allowed"
            assert await confined.refused("update_graph_config", graph=graph, metadata={}) == "graph_not_allowed"
        for tool in self.READERS:
            assert await confined.refused(tool, graph="closed", lineage_id=lineage) == "graph_not_allowed"
        put = {"kind": "note", "content": "x"}
        assert await confined.refused("put_node", graph="closed", **put) == "graph_not_allowed"
        assert await confined.refused("put_node", graph="nowhere", **put) == "graph_not_allowed"
        assert (await confined("put_node", graph="open", **put))["created"]
