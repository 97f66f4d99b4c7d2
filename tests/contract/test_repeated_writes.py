"""A call that is sent again because its answer was lost writes nothing the second time."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from recollect.caller import Caller
from recollect.postgres.database import Database
from tests.support.gateway import RunningGateway, revision_of, rpc_headers

METADATA = {"page": 2, "share": 0.1, "checked": True, "of": [1, {"deep": None}]}
NOTE = {
    "kind": "note",
    "content": "Tea is made of leaves",
    "summary": "tea",
    "tags": ["topic:tea", "hot"],
    "metadata": METADATA,
    "freshness_at": "2098-01-01T00:00:00Z",
    "thread": "kitchen",
    "at": "2026-01-31T09:00:00.123456+01:00",
}


class Repeating:
    """Calls of one key, which can be sent twice."""

    def __init__(self, gateway: RunningGateway, http: Any, db: Database, caller: Caller) -> None:
        self.gateway, self.http, self.db, self.caller = gateway, http, db, caller

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The answer of a tool that must not refuse."""
        result = await self.gateway.call(self.http, tool, arguments, path="/mcp/x/all")
        assert not result["isError"], result
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    async def twice(self, tool: str, **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Both answers; the second call must not move the revision."""
        first = await self(tool, **arguments)
        before = await revision_of(self.db, self.caller, arguments.get("graph", "default"))
        second = await self(tool, **arguments)
        assert await revision_of(self.db, self.caller, arguments.get("graph", "default")) == before
        return first, second

    async def contents(self, lineage: str, graph: str = "default") -> list[str]:
        """The contents of the versions of a node, newest first."""
        versions = (await self("history", lineage_id=lineage, graph=graph))["versions"]
        return [version["content"] for version in versions]


@pytest.fixture
async def call(gateway: RunningGateway, key: str, db: Database, caller: Caller) -> AsyncIterator[Repeating]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield Repeating(gateway, http, db, caller)


async def drafted(call: Repeating, **more: Any) -> str:
    """A node with one version."""
    lineage: str = (await call("put_node", kind="note", content="one", **more))["node"]["lineage_id"]
    return lineage


class TestPutNode:
    @pytest.mark.proves("rules: no-equal-versions")
    async def test_an_equal_put_returns_the_unchanged_node(self, call: Repeating) -> None:
        lineage = await drafted(call)
        first, second = await call.twice("put_node", lineage_id=lineage, created_by="a colleague", **NOTE)
        assert "unchanged" not in first
        assert second == {**first, "unchanged": True}
        assert await call.contents(lineage) == [NOTE["content"], "one"]

    async def test_an_equal_put_with_a_base_version_returns_the_unchanged_node(self, call: Repeating) -> None:
        lineage = await drafted(call)
        first, second = await call.twice("put_node", lineage_id=lineage, based_on_version=1, **NOTE)
        assert second == {**first, "unchanged": True}

    @pytest.mark.parametrize(
        "otherwise",
        [
            {"content": "Tea is made of herbs"},
            {"kind": "idea"},
            {"summary": ""},
            {"tags": ["hot", "topic:tea"]},
            {"metadata": {**METADATA, "checked": 1}},
            {"metadata": {**METADATA, "of": [True, {"deep": None}]}},
            {"freshness_at": None},
            {"thread": "garden"},
            {"at": "2026-01-31T09:00:00.123457+01:00"},
            {"created_by": "somebody"},
        ],
        ids=str,
    )
    async def test_a_put_that_differs_in_any_field_makes_a_version(
        self, call: Repeating, otherwise: dict[str, Any]
    ) -> None:
        lineage = await drafted(call)
        await call("put_node", lineage_id=lineage, **NOTE)
        put = await call("put_node", lineage_id=lineage, **{**NOTE, **otherwise})
        assert (put["node"]["version"], "unchanged" in put) == (3, False)

    async def test_a_return_to_an_earlier_content_makes_a_version(self, call: Repeating) -> None:
        lineage = await drafted(call)
        for content in ("two", "one"):
            await call("put_node", lineage_id=lineage, kind="note", content=content)
        assert await call.contents(lineage) == ["one", "two", "one"]


class TestConflicts:
    @pytest.mark.proves("rules: no-equal-versions")
    async def test_a_repeated_sibling_is_not_duplicated(self, call: Repeating) -> None:
        await call("create_graph", name="notes", conflict_policy="manual")
        lineage = await drafted(call, graph="notes")
        put = {"graph": "notes", "lineage_id": lineage, "kind": "note", "based_on_version": 1}
        for content in ("mine", "theirs"):
            await call("put_node", content=content, **put)
        for content in ("mine", "theirs"):
            first, second = await call.twice("put_node", content=content, **put)
            assert first == second
            assert (first["unchanged"], first["node"]["content"]) == (True, "theirs")
            assert len(first["conflict"]["heads"]) == 2
        assert await call.contents(lineage, "notes") == ["theirs", "mine", "one"]

    async def test_a_resolution_is_written_even_if_it_equals_a_head(self, call: Repeating) -> None:
        await call("create_graph", name="notes", conflict_policy="manual")
        lineage = await drafted(call, graph="notes")
        put = {"graph": "notes", "lineage_id": lineage, "kind": "note"}
        for content in ("mine", "theirs"):
            await call("put_node", content=content, based_on_version=1, **put)
        settled, again = await call.twice("put_node", content="theirs", based_on_version=3, **put)
        assert (settled["node"]["version"], settled["node"]["conflicts"]) == (4, [])
        assert again == {**settled, "unchanged": True}


class TestOtherTools:
    @pytest.mark.proves("rules: no-equal-versions")
    async def test_put_subgraph_reports_for_each_node_whether_it_was_written(self, call: Repeating) -> None:
        lineage = await drafted(call)
        nodes = [{"ref": "a", "lineage_id": lineage, **NOTE}, {"ref": "b", "lineage_id": lineage, **NOTE}]
        edges = [{"kind": "about", "from_ref": "a", "to_ref": "b"}]
        first, second = await call.twice("put_subgraph", nodes=nodes, edges=edges)
        assert [node.get("unchanged", False) for node in first["nodes"]] == [False, True]
        assert [(node["version"], node["unchanged"]) for node in second["nodes"]] == [(2, True), (2, True)]
        assert first["edges"] == second["edges"]

    @pytest.mark.proves("rules: no-equal-versions")
    async def test_a_repeated_revise_changes_nothing(self, call: Repeating) -> None:
        items = [{"text": "Bees make honey"}, {"text": "likes tea", "about": ["Ada"]}]
        for memory in (await call("remember", items=items))["memories"]:
            amendment = {"text": "said anew", "tags": ["b", "a"], "importance": 3.3, "reason": "looked again"}
            first, second = await call.twice("revise", id=memory["id"], **amendment)
            assert (first["status"], second) == ("revised", {**first, "status": "unchanged"})
            first, second = await call.twice("revise", id=memory["id"], status="outdated")
            assert (first["status"], second) == ("revised", {**first, "status": "unchanged"})

    @pytest.mark.proves("rules: no-equal-versions")
    async def test_a_repeated_update_node_changes_nothing(self, call: Repeating) -> None:
        node = (await call("create_node", node_type="Fact", text="Bees make honey"))["node"]
        changed = {"text": "Bees make wax", "metadata": {"seen": 1}, "status": "outdated", "source": "a book"}
        first, second = await call.twice("update_node", node_id=node["id"], versioning=True, **changed)
        assert first == second
        truth = await call("update_node", node_id=node["id"], versioning=True, metadata={"seen": True})
        assert truth["node"]["version"] == first["node"]["version"] + 1
