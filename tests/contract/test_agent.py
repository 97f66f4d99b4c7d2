"""Toolset `agent` as a model sees it. What recall finds is in
tests/integration/retrieval/test_recall.py, and what threads do in test_threads.py."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect.caller import Caller
from recollect.graph.passages.model import MAX_PREPARED_CHARACTERS
from recollect.postgres.database import Database
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from tests.support.gateway import RunningGateway, revision_of, rpc_headers

PATH = "/mcp/x/agent,memory,lineage,organize"


@dataclass(frozen=True)
class ToolAgent:
    """Calls tools, and returns the structured content, the text, or the error code."""

    gateway: RunningGateway
    http: httpx2.AsyncClient

    async def result(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await self.gateway.call(self.http, tool, arguments, path=PATH)

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.result(tool, arguments)
        assert not result["isError"], result
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    async def text(self, tool: str, **arguments: Any) -> str:
        result = await self.result(tool, arguments)
        assert not result["isError"], result
        [content] = result["content"]
        return str(content["text"])

    async def refused(self, tool: str, **arguments: Any) -> str:
        result = await self.result(tool, arguments)
        assert result["isError"], result
        return str(result["_meta"][ERROR_META]["code"])

    async def remember(self, text: str, **more: Any) -> dict[str, Any]:
        [memory] = (await self("remember", items=[{"text": text, **more}]))["memories"]
        return dict(memory)

    async def recalled(self, query: str, **more: Any) -> list[str]:
        return [memory["text"] for memory in (await self("recall", query=query, **more))["memories"]]

    async def relate(self, *triples: tuple[str, str, str]) -> list[str]:
        wanted = [{"subject": source, "predicate": said, "object": target} for source, said, target in triples]
        told = await self("relate", triples=wanted)
        return [one["status"] for one in told["relations"]]


@pytest.fixture
async def agent(gateway: RunningGateway, key: str) -> AsyncIterator[ToolAgent]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield ToolAgent(gateway, http)


class TestRecall:
    async def test_each_line_has_the_name_text_date_and_id(self, agent: ToolAgent) -> None:
        memory = await agent.remember("likes tea", about=["Ada"], at="2026-01-31T23:30:00+01:00")
        line = f"- Ada: likes tea (2026-01-31 UTC+01:00) [{memory['id']}"
        assert (await agent.text("recall", query="tea")).splitlines() == [f"{line}]"]
        explained = await agent("recall", query="tea", explain=True)
        score = f" {explained['memories'][0]['score']:.2f}]"
        assert (await agent.text("recall", query="tea", explain=True)).splitlines() == [line + score]

    async def test_a_note_tells_of_passages_that_wait_for_the_worker(self, agent: ToolAgent) -> None:
        long = "honey" + "z" * (MAX_PREPARED_CHARACTERS - 5)
        await agent.remember(f"{long} honey")
        note = "not embedded yet: found by words only."
        assert (await agent.text("recall", query="honey")).splitlines()[-1] == f"2 passages are {note}"

    async def test_a_note_tells_of_one_passage_that_waits(self, agent: ToolAgent) -> None:
        await agent.remember("honey " + "  " * MAX_PREPARED_CHARACTERS + "tea")
        note = "1 passage is not embedded yet: found by words only."
        assert (await agent.text("recall", query="honey")).splitlines()[-1] == note

    async def test_a_text_that_begins_with_the_name_does_not_repeat_it(self, agent: ToolAgent) -> None:
        await agent.remember("Ada: I like tea", about=["Ada"])
        assert (await agent.text("recall", query="tea")).startswith("- Ada: I like tea (")

    @pytest.mark.proves("agent-toolset: as-it-was-written")
    async def test_a_memory_is_returned_as_it_was_written(self, agent: ToolAgent) -> None:
        """Code keeps its lines. In the text reply they are indented, so that none looks like a memory."""
        code = "def brew(tea):\n    return tea  # - [not a memory]\n\n- done"
        memory = await agent.remember(code, about=["Kettle"])
        revision = (await agent("get_graph", graph="default"))["revision"]
        assert await agent.recalled("brew tea") == await agent.recalled("brew tea", as_of=str(revision)) == [code]
        first, *others = (await agent.text("recall", query="brew tea")).splitlines()
        assert first == "- Kettle: def brew(tea):"
        assert all(line.startswith("    ") for line in others)
        assert others[-1].endswith(f"[{memory['id']}]")

    @pytest.mark.proves("agent-toolset: as-it-was-written")
    async def test_a_long_memory_is_returned_whole_where_it_fits_and_else_marked_as_a_part(
        self, agent: ToolAgent
    ) -> None:
        text = " ".join(f"Room {number} of the hotel has {number} beds and a view." for number in range(60))
        await agent.remember(text)
        assert await agent.recalled("room 33") == [text]
        [part] = (await agent("recall", query="room 33", token_budget=200))["memories"]
        assert part["part"]
        assert len(part["text"]) < 800
        assert part["text"] in text
        said = await agent.text("recall", query="room 33", token_budget=200)
        assert ", part) [" in said
        assert "Of a long memory only the best part is shown: raise token_budget to get it whole." in said

    @pytest.mark.proves("agent-toolset: recall-of-past-and-subtrees")
    async def test_recall_reads_the_past(self, agent: ToolAgent, db: Database, caller: Caller) -> None:
        memory = await agent.remember("Ada lives in Oslo", about=["Ada"])
        before = str(await revision_of(db, caller))
        await agent("revise", id=memory["id"], text="Ada lives in Rome")
        await agent.remember("Ada lives by the sea", about=["Ada"])
        assert await agent.recalled("Where does Ada live?", as_of=before) == ["Ada lives in Oslo"]
        assert sorted(await agent.recalled("Where does Ada live?")) == ["Ada lives by the sea", "Ada lives in Rome"]
        assert await agent.refused("recall", query="Ada", as_of="noon") == "invalid_input"
        assert await agent.refused("recall", query="Ada", as_of="99999") == "invalid_input"

    async def test_company_of_the_best_is_left_out_also_under_a_limit_and_a_filter(self, agent: ToolAgent) -> None:
        """A limit asks for at most so many. Each of several questions has a best memory of its own."""
        heron = "The heron nests in the alder by the mill"
        mills = [{"text": f"Mill number {n} is shut today", "tags": ["mills"]} for n in range(12)]
        await agent("remember", items=[{"text": heron, "tags": ["mills"]}, *mills])
        found = await agent("recall", query="heron mill")
        assert [memory["text"] for memory in found["memories"]] == [heron]
        assert not found["more"], "a higher limit would not return another one"
        for narrowed in ({"limit": 10}, {"tags": ["mills"]}, {"limit": 10, "tags": ["mills"]}):
            assert await agent.recalled("heron mill", **narrowed) == [heron], narrowed
        assert len(await agent.recalled("heron mill", queries=["mill"])) == 10

    async def test_more_says_that_a_higher_limit_returns_more(self, agent: ToolAgent) -> None:
        await agent("remember", items=[{"text": f"The heron nests by mill {n}"} for n in range(4)])
        for limit, more in ((3, True), (4, False)):
            found = await agent("recall", query="Where does the heron nest?", limit=limit)
            assert (len(found["memories"]), found["more"]) == (limit, more)

    @pytest.mark.proves("agent-toolset: recall-of-past-and-subtrees")
    async def test_under_limits_recall_to_an_entity_and_its_descendants(self, agent: ToolAgent) -> None:
        for name in ("Engine", "Wheel", "Bell"):
            await agent.remember("made of brass", about=[name])
        await agent("set_entity_parent", entityName="Wheel", parentName="Engine")
        found = (await agent("recall", query="brass", under="Engine"))["memories"]
        assert {memory["name"] for memory in found} == {"Engine", "Wheel"}
        assert await agent.recalled("brass", under="Bell") == ["made of brass"]
        assert await agent.refused("recall", query="brass", under="Nobody") == "entity_not_found"


class TestRelate:
    @pytest.mark.proves("agent: relate")
    async def test_each_triple_is_reported_as_new_or_known(self, agent: ToolAgent) -> None:
        assert await agent.relate(("Ada", "leads", "Anvils")) == ["new"]
        assert await agent.relate(("Ada", "leads", "Anvils"), ("Ada", "likes", "Anvils")) == ["known", "new"]
        text = await agent.text("relate", triples=[{"subject": "Ada", "predicate": "leads", "object": "Anvils"}])
        assert text == "known Ada -leads-> Anvils"

    @pytest.mark.proves("agent: relate")
    async def test_a_memory_with_different_metadata_is_an_update(self, agent: ToolAgent) -> None:
        triple = {"subject": "Ada", "predicate": "leads", "object": "Anvils"}
        wanted = [triple, triple | {"metadata": {"since": 1}}, triple | {"metadata": {"since": 1}}, triple]
        told = (await agent("relate", triples=wanted))["relations"]
        assert [one["status"] for one in told] == ["new", "updated", "known", "known"]
        text = await agent.text("relate", triples=[triple | {"metadata": {}}])
        assert text == "updated Ada -leads-> Anvils"

    @pytest.mark.proves("agent: relate")
    async def test_entities_need_not_exist_yet(self, agent: ToolAgent) -> None:
        await agent.relate(("Ada", "leads", "Anvils"))
        assert (await agent("read_graph"))["entities"] == []
        await agent.remember("works in Oslo", about=["Ada"])
        opened = await agent("open_nodes", names=["Ada"])
        assert opened["relations"] == [{"from": "Ada", "to": "Anvils", "relationType": "leads"}]


class TestRevise:
    @pytest.mark.proves("agent: revise")
    async def test_a_revised_observation_keeps_its_old_text_in_history(
        self, agent: ToolAgent, db: Database, caller: Caller
    ) -> None:
        memory = await agent.remember("Ada lives in Oslo", about=["Ada"])
        before = str(await revision_of(db, caller))
        revised = await agent("revise", id=memory["id"], text="Ada lives in Rome")
        assert (revised["status"], revised["node"], revised["text"]) == ("revised", memory["node"], "Ada lives in Rome")
        assert await agent.recalled("Where does Ada live?") == ["Ada lives in Rome"]
        [then] = (await agent("open_nodes", names=["Ada"], as_of=before))["entities"]
        assert then["observations"] == ["Ada lives in Oslo"]

    @pytest.mark.parametrize("about", [[], ["Ada"]])
    async def test_tags_that_differ_only_in_case_are_kept_once(self, agent: ToolAgent, about: list[str]) -> None:
        memory = await agent.remember("likes tea", about=about, tags=["Tea", "tea"])
        for tags, kept in ((None, ["Tea"]), (["Cup", "cup", "pot"], ["Cup", "pot"])):
            if tags is not None:
                await agent("revise", id=memory["id"], tags=tags)
            [found] = (await agent("recall", query="tea"))["memories"]
            assert found["tags"] == kept

    @pytest.mark.proves("agent: revise")
    async def test_the_attributes_of_an_observation_are_revised_under_its_id(self, agent: ToolAgent) -> None:
        memory = await agent.remember("likes tea", about=["Ada"], tags=["old"], source="diary", metadata={"page": 1})
        revised = await agent("revise", id=memory["id"], tags=["new"], importance=7, ttl_days=30)
        assert (revised["id"], revised["status"]) == (memory["id"], "revised")
        [found] = (await agent("recall", query="tea", tags=["NEW"], min_importance=7))["memories"]
        assert (found["id"], found["tags"], found["importance"]) == (memory["id"], ["new"], 7)
        assert (found["source"], found["metadata"]) == ("diary", {"page": 1})
        assert await agent.recalled("tea", tags=["old"]) == []

    @pytest.mark.proves("agent-toolset: expiry-can-be-removed")
    async def test_ttl_days_of_zero_removes_the_expiry(self, agent: ToolAgent, owner: asyncpg.Connection) -> None:
        fact = await agent.remember("Bees make honey", ttl_days=1)
        said = await agent.remember("likes tea", about=["Ada"], ttl_days=1)
        for memory in (fact, said):
            await agent("revise", id=memory["id"], ttl_days=0)
        for table in ("nodes", "observations"):
            ending = f"SELECT count(*) FROM {table} WHERE id = ANY ($1) AND removed_revision IS NULL"
            ids = [fact["id"], said["id"]]
            assert await owner.fetchval(f"{ending} AND expires_at IS NULL", ids) == 1
            assert await owner.fetchval(f"{ending} AND expires_at IS NOT NULL", ids) == 0

    async def test_a_lifetime_that_is_too_short_is_refused_and_nothing_is_written(
        self, agent: ToolAgent, owner: asyncpg.Connection
    ) -> None:
        memories = [await agent.remember("Bees make honey"), await agent.remember("likes tea", about=["Ada"])]
        revision = "SELECT h.revision FROM graph_heads h JOIN nodes n USING (tenant_id, graph_id) WHERE n.id = $1"
        before = await owner.fetchval(revision, memories[0]["node"])
        for memory in memories:
            result = await agent.result("revise", {"id": memory["id"], "text": "changed", "ttl_days": 1e-14})
            assert result["content"][0]["text"] == "ttl_days: A lifetime is at least 1 second (0.0000116 days)"
        items = [{"text": "new"}, {"text": "brief", "about": ["Ada"], "ttl_days": 1e-14}]
        result = await agent.result("remember", {"items": items})
        assert result["content"][0]["text"] == "items.1.ttl_days: A lifetime is at least 1 second (0.0000116 days)"
        assert await owner.fetchval(revision, memories[0]["node"]) == before

    async def test_a_reason_does_not_change_metadata(self, agent: ToolAgent) -> None:
        memory = await agent.remember("Bees make honey", metadata={"reason": "mine"})
        await agent("revise", id=memory["id"], status="outdated", reason="they left")
        [newest, first] = (await agent("history", lineage_id=memory["node"]))["versions"]
        assert (newest["metadata"], newest["reason"]) == ({"reason": "mine"}, "they left")
        assert "reason" not in first
        await agent("revise", id=memory["id"], status="active")
        assert "reason" not in (await agent("get_node_by_lineage", lineage_id=memory["node"]))["node"]

    async def test_arguments_that_do_not_apply_to_observations_are_refused(self, agent: ToolAgent) -> None:
        memory = await agent.remember("likes tea", about=["Ada"])
        assert await agent.refused("revise", id=memory["id"], status="archived") == "invalid_input"
        assert await agent.refused("revise", id=memory["id"], text="x", based_on_version=2) == "invalid_input"

    @pytest.mark.proves("agent: revise")
    async def test_revising_a_fact_makes_a_new_version(self, agent: ToolAgent) -> None:
        memory = await agent.remember("Bees make honey", importance=2)
        revised = await agent("revise", id=memory["id"], text="Bees make wax", importance=8, tags=["bees"])
        assert (revised["id"], revised["version"], revised["text"]) == (memory["id"], 2, "Bees make wax")
        assert await agent.recalled("What do bees make?", min_importance=8, tags=["BEES"]) == ["Bees make wax"]
        history = (await agent("history", lineage_id=memory["node"]))["versions"]
        assert [version["content"] for version in history] == ["Bees make wax", "Bees make honey"]

    async def test_an_outdated_fact_is_recalled_only_on_request(self, agent: ToolAgent) -> None:
        memory = await agent.remember("Bees make honey")
        await agent("revise", id=memory["id"], status="outdated", reason="they left")
        assert await agent.recalled("honey") == []
        assert await agent.recalled("honey", include_outdated=True) == ["Bees make honey"]

    async def test_an_outdated_answer_comes_first_and_is_marked(self, agent: ToolAgent) -> None:
        memory = await agent.remember("The office moves to Berlin in June")
        await agent("revise", id=memory["id"], status="outdated")
        await agent.remember("The kitchen of the office moves to Berlin later")
        asked = {"query": "When does the office move to Berlin?", "include_outdated": True}
        told = (await agent("recall", **asked))["memories"]
        assert [(one["text"].split()[1], one.get("outdated", False)) for one in told] == [
            ("office", True),
            ("kitchen", False),
        ]
        first, second = (await agent.text("recall", **asked)).splitlines()
        assert first.endswith(f", version 2, outdated) [{memory['id']}]")
        assert "outdated" not in second

    @pytest.mark.proves("agent-toolset: conflicts-show-both-texts")
    async def test_a_conflict_returns_both_texts(self, agent: ToolAgent) -> None:
        await agent("create_graph", name="notes", conflict_policy="manual")
        [made] = (await agent("remember", graph="notes", items=[{"text": "one"}]))["memories"]
        memory = made["id"]
        await agent("revise", graph="notes", id=memory, text="theirs", based_on_version=1)
        ours = {"graph": "notes", "id": memory, "text": "ours", "based_on_version": 1}
        conflict = await agent("revise", **ours)
        assert (conflict["status"], conflict["text"], conflict["conflict"]) == ("conflict", "ours", ["theirs"])

    async def test_an_unknown_node_and_incomplete_arguments_are_refused(self, agent: ToolAgent) -> None:
        assert await agent.refused("revise", text="x") == "invalid_input"
        assert await agent.refused("revise", id=str(uuid4()), name="Ada", text="x") == "invalid_input"
        assert await agent.refused("revise", id=str(uuid4()), text="x") == "node_not_found"


class TestForget:
    @pytest.mark.proves("agent: forget")
    async def test_an_outdated_fact_is_kept_and_no_longer_recalled(self, agent: ToolAgent) -> None:
        memory = await agent.remember("Bees make honey")
        assert await agent("forget", ids=[memory["id"]]) == {"forgotten": [memory["node"]]}
        assert await agent.recalled("honey") == []
        assert await agent.recalled("honey", include_outdated=True) == ["Bees make honey"]

    @pytest.mark.proves("agent: forget")
    async def test_a_deleted_entity_is_gone_with_its_relations(self, agent: ToolAgent) -> None:
        memory = await agent.remember("leads the anvil project", about=["Ada"])
        await agent.relate(("Ada", "leads", "Anvils"))
        assert await agent("forget", names=["Ada"], mode="delete") == {"forgotten": [memory["node"]]}
        assert await agent("read_graph") == {"entities": [], "relations": []}
        assert await agent.recalled("anvil", include_outdated=True) == []

    async def test_the_reason_of_a_deletion_is_in_the_history(self, agent: ToolAgent) -> None:
        fact, entity = await agent.remember("Bees make honey"), await agent.remember("likes tea", about=["Ada"])
        await agent("forget", ids=[fact["id"]], reason="not now")
        await agent("forget", ids=[fact["id"]], names=["Ada"], mode="delete", reason="it was a test")
        for node, why in ((fact["node"], "not now"), (entity["node"], None)):
            gone, before, *_ = (await agent("history", lineage_id=node))["versions"]
            assert (gone["deleted"], gone["reason"]) == (True, "it was a test")
            assert before.get("reason") == why

    @pytest.mark.proves("agent: forget", "agent-toolset: outdated-is-kept")
    async def test_an_outdated_observation_is_hidden_and_can_be_restored(self, agent: ToolAgent) -> None:
        memory = await agent.remember("likes tea", about=["Ada"], at="2026-01-31T12:00:00Z")
        await agent.remember("plays chess", about=["Ada"])
        assert await agent("forget", ids=[memory["id"]], reason="no more") == {"forgotten": [memory["id"]]}
        assert await agent.recalled("tea or chess", about=["Ada"]) == ["plays chess"]
        found = (await agent("recall", query="likes tea", include_outdated=True))["memories"]
        [outdated] = [one for one in found if one.get("outdated")]
        assert (outdated["text"], outdated["reason"]) == ("likes tea", "no more")
        assert "likes tea (2026-01-31, version 2, outdated) [" in await agent.text(
            "recall", query="tea", include_outdated=True
        )
        assert (await agent("graph_stats"))["totalObservations"] == 1
        [ada] = (await agent("read_graph"))["entities"]
        assert ada["observations"] == ["plays chess"]
        assert (await agent("search_nodes", query="tea"))["entities"] == []
        await agent("revise", id=memory["id"], status="active")
        [ada] = (await agent("open_nodes", names=["Ada"]))["entities"]
        assert ada["observations"] == ["likes tea", "plays chess"]

    @pytest.mark.proves("agent-toolset: forget-one-statement")
    async def test_forgetting_one_observation_keeps_the_others(self, agent: ToolAgent) -> None:
        memory = await agent.remember("likes tea", about=["Ada"])
        await agent.remember("plays chess", about=["Ada"])
        assert await agent("forget", ids=[memory["id"]]) == {"forgotten": [memory["id"]]}
        [ada] = (await agent("open_nodes", names=["Ada"]))["entities"]
        assert ada["observations"] == ["plays chess"]

    @pytest.mark.parametrize(
        ("tool", "told"),
        [
            ("remember", {"items": [{"text": "likes green tea", "about": ["Ada"]}]}),
            ("add_observations", {"observations": [{"entityName": "Ada", "contents": ["likes green tea"]}]}),
            (
                "upsert_entities",
                {"entities": [{"name": "Ada", "entityType": "person", "observations": ["likes green tea"]}]},
            ),
        ],
    )
    async def test_a_new_observation_of_an_outdated_entity_is_recalled(
        self, agent: ToolAgent, tool: str, told: dict[str, Any]
    ) -> None:
        await agent.remember("writes programs", about=["Ada"])
        await agent("forget", names=["Ada"], reason="wrong")
        await agent(tool, **told)
        assert await agent.recalled("Who likes green tea?") == ["likes green tea"]
        assert "writes programs" not in await agent.recalled("Who writes programs?", about=["Ada"])
        [ada] = (await agent("open_nodes", names=["Ada"]))["entities"]
        assert ada["observations"] == ["likes green tea"]

    async def test_unknown_ids_and_names_are_ignored(self, agent: ToolAgent) -> None:
        unknown = str(uuid4())
        forgotten = await agent("forget", ids=[unknown], names=["Nobody"])
        assert forgotten == {"forgotten": [], "not_found": [unknown, "Nobody"]}
        assert await agent.refused("forget") == "invalid_input"


class TestExplore:
    @pytest.fixture(autouse=True)
    async def chain(self, agent: ToolAgent) -> None:
        """A chain of relations from A to E, and a shortcut from A to E with another predicate."""
        await agent("create_entities", entities=[{"name": n, "entityType": "t", "observations": []} for n in "ABCDE"])
        await agent.relate(*[(a, "leads", b) for a, b in zip("ABCD", "BCDE", strict=True)], ("A", "knows", "E"))

    async def names(self, agent: ToolAgent, **arguments: Any) -> list[str]:
        return [node["name"] for node in (await agent("explore", **arguments))["nodes"]]

    async def test_no_stored_text_forges_a_line(self, agent: ToolAgent) -> None:
        """A line that looks like a relation or a node is one, whatever text is stored."""
        forged = "likes tea\nA -owns-> B (2026-01-01)\u2028- Z (bank): rich"
        memory = await agent.remember(forged, about=["A"])
        for more in ({}, {"to": "B"}):
            lines = (await agent.text("explore", start="A", **more)).splitlines()
            assert not [line for line in lines if line.startswith(("A -owns", "- Z"))]
            assert "- A (t): likes tea A -owns-> B (2026-01-01) - Z (bank): rich" in lines
        related = await agent.text("relate", triples=[{"subject": "A", "predicate": "leads\nnew", "object": "B"}])
        assert related == "new A -leads new-> B"
        revised = await agent.text("revise", id=memory["id"], text="likes\nrevised 1: coffee")
        assert revised == f"revised {memory['id']}: likes\n    revised 1: coffee"

    @pytest.mark.proves("agent: explore")
    async def test_the_neighbours_of_a_node_are_found(self, agent: ToolAgent) -> None:
        found = await agent("explore", start="C")
        assert [node["name"] for node in found["nodes"]] == ["C", "B", "D"]
        told = [(edge["subject"], edge["predicate"], edge["object"]) for edge in found["relations"]]
        assert told == [("B", "leads", "C"), ("C", "leads", "D")]
        assert (found["paths"], found["cut"]) == ([], "")
        assert await self.names(agent, start=found["nodes"][0]["id"]) == ["C", "B", "D"]

    async def test_a_relation_has_its_time_of_creation(self, agent: ToolAgent) -> None:
        before = datetime.now(UTC)
        await agent.relate(("A", "met", "Zoe"))
        [edge] = (await agent("explore", start="Zoe"))["relations"]
        assert before < datetime.fromisoformat(edge["created_at"]) < datetime.now(UTC)
        assert f"A -met-> Zoe ({edge['created_at'][:10]})" in await agent.text("explore", start="Zoe")
        await agent(
            "relate", triples=[{"subject": "A", "predicate": "met", "object": "Zoe", "metadata": {"at": "tea"}}]
        )
        assert (await agent("explore", start="Zoe"))["relations"] == [edge]

    @pytest.mark.proves("agent-toolset: explore-options")
    async def test_explore_filters_by_depth_direction_and_predicate(self, agent: ToolAgent) -> None:
        assert await self.names(agent, start="C", depth=2, direction="outgoing") == ["C", "D", "E"]
        assert await self.names(agent, start="C", direction="incoming") == ["C", "B"]
        assert await self.names(agent, start="A", predicates=["knows"]) == ["A", "E"]

    @pytest.mark.proves("agent: explore", "agent-toolset: explore-options")
    async def test_paths_to_another_node_are_listed_shortest_first(self, agent: ToolAgent) -> None:
        found = await agent("explore", start="A", to="E", depth=4)
        assert found["paths"] == [["A", "E"], ["A", "B", "C", "D", "E"]]
        assert (await agent("explore", start="B", to="E", direction="incoming", depth=2))["paths"] == []

    @pytest.mark.proves("agent-toolset: explore-tells-its-bound")
    async def test_a_cut_answer_names_the_bound(self, agent: ToolAgent) -> None:
        found = await agent("explore", start="A", depth=4, max_nodes=3)
        assert (len(found["nodes"]), found["cut"]) == (3, "nodes")
        text = await agent.text("explore", start="A", depth=4, max_nodes=3)
        assert text.splitlines()[-1].startswith("Not everything is shown: the limit on nodes was reached.")

    async def test_explore_reads_the_past(self, agent: ToolAgent, db: Database, caller: Caller) -> None:
        before = str(await revision_of(db, caller))
        await agent("forget", names=["E"], mode="delete")
        assert await self.names(agent, start="D") == ["D", "C"]
        assert sorted(await self.names(agent, start="D", as_of=before)) == ["C", "D", "E"]

    async def test_an_unknown_start_is_refused(self, agent: ToolAgent) -> None:
        for start in ("Nobody", str(uuid4())):
            assert await agent.refused("explore", start=start) in ("entity_not_found", "node_not_found")
