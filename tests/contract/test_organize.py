"""Toolset `organize`: hierarchy, tags and importance as in the enhanced memory server, and merging.

Source of truth: that server's description of its data flow (hierarchy operations, merge flow, error handling).
"""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from mcp import Client
from mcp_types import CallToolResult

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.curation.merging import service as merging
from recollect.errors import Conflict, ErrorCode, NotFound
from recollect.graph.entities import service as entities
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.hierarchy.model import PageRequest
from recollect.graph.lineages import service as lineages
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway, answer, error_of, refused, revision_of, text_of, texts_of
from tests.support.memories import Agent
from tests.support.plans import Counting

TREE = {"CTO": "CEO", "CFO": "CEO", "Dev": "CTO", "Ops": "CTO", "Intern": "Dev"}
"""Children and their parents; CEO has none."""
ORDER = ["CEO", "CTO", "CFO", "Dev", "Ops", "Intern"]
"""The entities in the order of their creation."""


@pytest.fixture
def agent(db: Database, caller: Caller) -> Agent:
    return Agent(db, caller)


async def create(client: Client, *names: str, **fields: Any) -> None:
    entities = [{"name": name, "entityType": "role", "observations": [], **fields} for name in names]
    await answer(client, "create_entities", entities=entities)


async def plant(client: Client) -> None:
    """Create the tree."""
    await create(client, *ORDER)
    for name, parent in TREE.items():
        await answer(client, "set_entity_parent", entityName=name, parentName=parent)


async def names(client: Client, tool: str, /, **arguments: Any) -> list[str]:
    return [entity["name"] for entity in (await answer(client, tool, **arguments))["entities"]]


async def set_parent(agent: Agent, name: str, parent: str | None) -> None:
    async with agent.writing() as (tx, revision):
        await hierarchy.set_parent(tx, revision, name, parent)


class TestDialect:
    @pytest.mark.proves("enhanced-server: fields-of-entities")
    async def test_an_entity_has_the_shape_of_the_enhanced_server(self, client: Client) -> None:
        made = {"name": "Alice", "entityType": "person", "observations": ["likes tea"]}
        await answer(client, "create_entities", entities=[{**made, "tags": ["VIP", "vip"], "importance": 7.5}])
        await create(client, "Team")
        began = datetime.now(UTC)
        result = await client.call_tool("set_entity_parent", {"entityName": "Alice", "parentName": "Team"})
        entity = result.structured_content or {}
        assert json.loads(text_of(result)) == entity
        created, modified = (datetime.fromisoformat(entity.pop(field)) for field in ("createdAt", "lastModified"))
        assert entity == {**made, "tags": ["vip"], "importance": 7.5, "parentId": "Team"}
        assert created <= began + timedelta(seconds=1) <= modified + timedelta(seconds=1)

    @pytest.mark.proves("enhanced-server: fields-of-entities")
    async def test_missing_attributes_of_an_entity_are_left_out(self, client: Client) -> None:
        await create(client, "Plain")
        [entity] = (await answer(client, "get_root_entities"))["entities"]
        assert set(entity) == {"name", "entityType", "observations", "tags", "createdAt", "lastModified"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entity["createdAt"])

    @pytest.mark.proves("enhanced-server: error-texts")
    @pytest.mark.parametrize(
        ("tool", "more"),
        [
            ("set_entity_parent", {"parentName": None}),
            ("get_parent", {}),
            ("get_children", {}),
            ("get_ancestors", {}),
            ("get_descendants", {}),
            ("get_subtree", {}),
            ("add_tags", {"tags": ["x"]}),
            ("remove_tags", {"tags": ["x"]}),
            ("set_importance", {"importance": 1}),
        ],
    )
    async def test_an_unknown_entity_is_refused(
        self, client: Client, db: Database, caller: Caller, tool: str, more: Any
    ) -> None:
        """A placeholder is refused, too, and so is any name in an unknown graph."""
        await answer(
            client, "create_relations", relations=[{"from": "Unknown", "to": "Other", "relationType": "knows"}]
        )
        before = await revision_of(db, caller)
        for graph in ("default", "nowhere"):
            said = await refused(client, tool, entityName="Unknown", graph=graph, **more)
            assert said == ("entity_not_found", "Error: Entity 'Unknown' not found")
        assert await revision_of(db, caller) == before

    @pytest.mark.proves("enhanced-server: importance-range")
    async def test_an_invalid_argument_is_refused_with_its_path(self, client: Client) -> None:
        said = await refused(client, "set_importance", entityName="A", importance=11)
        assert said == ("invalid_input", "importance: Number must be less than or equal to 10")
        assert (await refused(client, "add_tags", entityName="A", tags=[]))[1].startswith("tags: ")
        assert await refused(client, "set_entity_parent", entityName="A") == ("invalid_input", "parentName: Required")


class TestHierarchy:
    @pytest.mark.proves(
        "organize: get_parent",
        "organize: get_children",
        "organize: get_ancestors",
        "organize: get_descendants",
        "organize: get_root_entities",
        "enhanced-server: descendants",
    )
    async def test_ancestors_and_descendants_are_read(self, client: Client) -> None:
        await plant(client)
        assert (await answer(client, "get_parent", entityName="Dev"))["parent"]["name"] == "CTO"
        assert await names(client, "get_ancestors", entityName="Intern") == ["Dev", "CTO", "CEO"]
        assert await names(client, "get_children", entityName="CTO") == ["Dev", "Ops"]
        assert await names(client, "get_descendants", entityName="CEO") == ["CTO", "Dev", "Intern", "Ops", "CFO"]
        assert await names(client, "get_root_entities") == ["CEO"]
        assert await names(client, "get_ancestors", entityName="CEO") == []
        assert await names(client, "get_children", entityName="Intern") == []
        assert await names(client, "get_root_entities", graph="nowhere") == []

    async def test_lists_are_arrays_in_the_text(self, client: Client) -> None:
        await plant(client)
        for tool, name in (("get_children", "CEO"), ("get_ancestors", "Dev"), ("get_descendants", "CTO")):
            result = await client.call_tool(tool, {"entityName": name})
            assert json.loads(text_of(result)) == (result.structured_content or {})["entities"]
        roots = await client.call_tool("get_root_entities", {})
        assert json.loads(text_of(roots)) == (roots.structured_content or {})["entities"]

    @pytest.mark.proves("organize: get_parent")
    async def test_a_root_has_no_parent(self, client: Client) -> None:
        await plant(client)
        result = await client.call_tool("get_parent", {"entityName": "CEO"})
        assert (text_of(result), result.structured_content) == ("null", {"parent": None})

    @pytest.mark.proves("organize: get_subtree", "enhanced-server: times-of-relations")
    async def test_a_subtree_includes_the_relations_inside_it(self, client: Client) -> None:
        await plant(client)
        inside = [{"from": "Dev", "to": "Ops", "relationType": "helps"}]
        across = [{"from": "Dev", "to": "CFO", "relationType": "asks"}]
        await answer(client, "create_relations", relations=inside + across)
        found = await answer(client, "get_subtree", entityName="CTO")
        assert [entity["name"] for entity in found["entities"]] == ["CTO", "Dev", "Intern", "Ops"]
        [relation] = found["relations"]
        assert {name: relation[name] for name in inside[0]} == inside[0]
        assert relation["createdAt"] == relation["lastModified"]

    @pytest.mark.proves("organize: get_children")
    async def test_each_page_has_the_next_offset(self, client: Client) -> None:
        await plant(client)
        whole = {
            "get_children": (["CTO", "CFO"], {"entityName": "CEO"}),
            "get_descendants": (["CTO", "Dev", "Intern", "Ops", "CFO"], {"entityName": "CEO"}),
            "get_subtree": (["CEO", "CTO", "Dev", "Intern", "Ops", "CFO"], {"entityName": "CEO"}),
            "get_root_entities": (["CEO", "Lone"], {}),
        }
        await create(client, "Lone")
        for tool, (wanted, arguments) in whole.items():
            for limit in (1, 2, 6):
                seen: list[str] = []
                offset: int | None = 0
                while offset is not None:
                    result = await client.call_tool(tool, {**arguments, "offset": offset, "limit": limit})
                    page = result.structured_content or {}
                    seen += [entity["name"] for entity in page["entities"]]
                    offset = page.get("nextOffset")
                    assert texts_of(result)[1:] == ([] if offset is None else [f"More follow: offset={offset}."])
                assert seen == wanted, (tool, limit)

    @pytest.mark.proves("organize: set_entity_parent", "enhanced-server: parents", "enhanced-server: subtrees-move")
    async def test_a_subtree_moves_with_its_root(self, client: Client, db: Database, caller: Caller) -> None:
        await plant(client)
        before = await revision_of(db, caller)
        moved = await answer(client, "set_entity_parent", entityName="CTO", parentName="CFO")
        assert moved["parentId"] == "CFO"
        assert await revision_of(db, caller) == before + 1
        assert await names(client, "get_ancestors", entityName="Intern") == ["Dev", "CTO", "CFO", "CEO"]
        assert await names(client, "get_descendants", entityName="CEO") == ["CFO", "CTO", "Dev", "Intern", "Ops"]
        for nobody in ("", None):
            await answer(client, "set_entity_parent", entityName="CTO", parentName="CFO")
            freed = await answer(client, "set_entity_parent", entityName="CTO", parentName=nobody)
            assert "parentId" not in freed
        assert await names(client, "get_root_entities") == ["CEO", "CTO"]
        assert await names(client, "get_descendants", entityName="CEO") == ["CFO"]

    @pytest.mark.proves("enhanced-server: no-cycles")
    @pytest.mark.parametrize("parent", ["CTO", "Dev", "Intern"])
    async def test_a_cycle_is_refused(self, client: Client, db: Database, caller: Caller, parent: str) -> None:
        await plant(client)
        before = await revision_of(db, caller)
        said = await refused(client, "set_entity_parent", entityName="CTO", parentName=parent)
        assert said == ("cycle", f"Error: Setting parent '{parent}' for entity 'CTO' would close a cycle")
        assert await revision_of(db, caller) == before

    @pytest.mark.proves("organize: set_entity_parent", "enhanced-server: parents")
    async def test_an_unknown_parent_is_refused(self, client: Client) -> None:
        await create(client, "Child")
        said = await refused(client, "set_entity_parent", entityName="Child", parentName="Ghost")
        assert said == ("entity_not_found", "Error: Entity 'Ghost' not found")

    async def test_children_of_a_deleted_entity_become_roots(self, client: Client) -> None:
        await plant(client)
        await answer(client, "delete_entities", entityNames=["CTO"])
        assert await names(client, "get_root_entities") == ["CEO", "Dev", "Ops"]
        assert await names(client, "get_ancestors", entityName="Intern") == ["Dev"]
        assert (await answer(client, "get_parent", entityName="Dev"))["parent"] is None
        assert await names(client, "get_descendants", entityName="CEO") == ["CFO"]

    async def test_every_read_of_the_hierarchy_reads_the_past(
        self, client: Client, db: Database, caller: Caller
    ) -> None:
        """Every read of the state before the tree was changed."""
        await plant(client)
        reads: list[tuple[str, dict[str, Any]]] = [
            ("get_parent", {"entityName": "Dev"}),
            ("get_ancestors", {"entityName": "Intern"}),
            ("get_children", {"entityName": "CTO"}),
            ("get_descendants", {"entityName": "CEO"}),
            ("get_subtree", {"entityName": "CTO"}),
            ("get_root_entities", {}),
        ]
        then = {tool: _timeless(await answer(client, tool, **arguments)) for tool, arguments in reads}
        before = str(await revision_of(db, caller))
        await answer(client, "set_entity_parent", entityName="Intern", parentName=None)
        await answer(client, "delete_entities", entityNames=["CTO", "Ops"])
        for tool, arguments in reads:
            assert _timeless(await answer(client, tool, **arguments, as_of=before)) == then[tool], tool
            now = await client.call_tool(tool, arguments)
            assert now.is_error or _timeless(now.structured_content) != then[tool], tool


def _timeless(found: Any) -> Any:
    """The result without the time of the last change, which in the past is that of the version."""
    return json.loads(re.sub(r'"lastModified": "[^"]*", ', "", json.dumps(found)))


class TestConcurrentMoves:
    @pytest.mark.proves("enhanced-server: no-cycles")
    async def test_one_of_two_concurrent_moves_that_close_a_cycle_is_refused(self, agent: Agent) -> None:
        for turn in range(10):
            one, other = f"One {turn}", f"Other {turn}"
            await agent.create(one, other)
            done = await asyncio.gather(
                set_parent(agent, one, other), set_parent(agent, other, one), return_exceptions=True
            )
            [refusal] = [outcome for outcome in done if outcome is not None]
            assert isinstance(refusal, Conflict)
            assert refusal.code is ErrorCode.CYCLE
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            assert len((await hierarchy.get_roots(await graphs.view(tx, None), PageRequest())).entities) == 10

    @pytest.mark.proves("enhanced-server: no-cycles")
    async def test_one_of_many_concurrent_moves_that_close_a_cycle_is_refused(self, agent: Agent) -> None:
        ring = [f"R{n}" for n in range(8)]
        await agent.create(*ring)
        moves = [set_parent(agent, name, ring[place - 1]) for place, name in enumerate(ring)]
        done = await asyncio.gather(*moves, return_exceptions=True)
        assert len([outcome for outcome in done if isinstance(outcome, Conflict)]) == 1
        assert len([outcome for outcome in done if outcome is None]) == 7
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            [root] = (await hierarchy.get_roots(await graphs.view(tx, None), PageRequest())).entities
            assert (
                len((await hierarchy.get_descendants(await graphs.view(tx, None), root.name, PageRequest())).entities)
                == 7
            )

    async def test_a_cycle_through_more_levels_than_are_read_is_refused(
        self, agent: Agent, owner: asyncpg.Connection, client: Client
    ) -> None:
        """A chain of 1,200 entities, written as rows: the bound on reads does not limit the check."""
        chain = [f"L{n}" for n in range(1_200)]
        await agent.create(*chain)
        await owner.execute(
            "UPDATE nodes n SET parent_id = p.id FROM nodes p WHERE n.tenant_id = $1 AND p.tenant_id = $1 "
            "AND p.name = 'L' || (substr(n.name, 2)::integer - 1)",
            agent.caller.tenant_id,
        )
        with pytest.raises(Conflict):
            await set_parent(agent, "L0", "L1199")
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            above = await hierarchy.get_ancestors(await graphs.view(tx, None), "L1199")
            assert [entity.name for entity in above.entities] == chain[-2:-1002:-1]
            assert above.next_offset is not None
        result = await client.call_tool("get_ancestors", {"entityName": "L1199"})
        following = (result.structured_content or {})["nextOffset"]
        assert text_of(CallToolResult(content=result.content[1:])) == f"More follow: offset={following}."
        last = await client.call_tool("get_ancestors", {"entityName": "L1199", "offset": 1_150, "limit": 100})
        assert [entity["name"] for entity in (last.structured_content or {})["entities"]] == chain[48::-1]

    async def test_a_cycle_through_an_expired_entity_is_refused(self, agent: Agent, owner: asyncpg.Connection) -> None:
        """Its expiry may be extended again; until then it is no parent."""
        await agent.create("Top", "Middle", "Bottom")
        await set_parent(agent, "Middle", "Top")
        await set_parent(agent, "Bottom", "Middle")
        await owner.execute(
            "UPDATE nodes SET expires_at = now() - interval '1 hour' WHERE tenant_id = $1 AND name = 'Middle'",
            agent.caller.tenant_id,
        )
        with pytest.raises(Conflict):
            await set_parent(agent, "Top", "Bottom")
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            roots = (await hierarchy.get_roots(await graphs.view(tx, None), PageRequest())).entities
            assert [(entity.name, entity.parent) for entity in roots] == [("Top", None), ("Bottom", None)]
            assert (await hierarchy.get_ancestors(await graphs.view(tx, None), "Bottom")).entities == []
            assert await hierarchy.get_parent(await graphs.view(tx, None), "Bottom") is None
            with pytest.raises(NotFound):
                await hierarchy.get_parent(await graphs.view(tx, None), "Middle")


@pytest.mark.proves("enhanced-server: descendants")
async def test_no_read_makes_a_query_per_node(db: Database, caller: Caller) -> None:
    counts = []
    for size in (2, 80):
        agent = Agent(db, caller, f"size-{size}")
        await agent.create("Top", *(f"N{n}" for n in range(size)))
        for n in range(size):
            await set_parent(agent, f"N{n}", f"N{n - 1}" if n % 2 else "Top")
        async with db.transaction(caller, read_only=True) as tx:
            counting = Counting(tx)
            reads: Any = counting
            assert (
                len(
                    (
                        await hierarchy.get_descendants(await graphs.view(reads, agent.graph), "Top", PageRequest())
                    ).entities
                )
                == size
            )
            await hierarchy.get_ancestors(await graphs.view(reads, agent.graph), f"N{size - 1}")
            await hierarchy.get_children(await graphs.view(reads, agent.graph), "Top", PageRequest())
            await hierarchy.get_subtree(await graphs.view(reads, agent.graph), "Top", PageRequest())
            await hierarchy.get_roots(await graphs.view(reads, agent.graph), PageRequest())
            counts.append(counting.queries)
    assert counts[0] == counts[1]


class TestTagsAndImportance:
    @pytest.mark.proves("organize: add_tags", "enhanced-server: tags-in-lower-case")
    async def test_tags_are_added_once_in_lower_case(self, client: Client) -> None:
        await create(client, "Alice", tags=["VIP"])
        added = await answer(client, "add_tags", entityName="Alice", tags=["vip", "Friend", "FRIEND", "Ünïq"])
        assert added == {"entityName": "Alice", "addedTags": ["friend", "ünïq"]}
        [entity] = (await answer(client, "get_root_entities"))["entities"]
        assert entity["tags"] == ["vip", "friend", "ünïq"]
        assert await names_found(client, tags=["FRIEND"]) == ["Alice"]

    @pytest.mark.proves("organize: remove_tags", "enhanced-server: tags-in-lower-case")
    async def test_tags_are_removed_in_any_case(self, client: Client) -> None:
        await create(client, "Alice", tags=["VIP", "Friend"])
        removed = await answer(client, "remove_tags", entityName="Alice", tags=["vip", "other"])
        assert removed == {"entityName": "Alice", "removedTags": ["vip"]}
        [entity] = (await answer(client, "get_root_entities"))["entities"]
        assert entity["tags"] == ["friend"]
        assert await names_found(client, tags=["vip"]) == []

    @pytest.mark.proves("organize: set_importance", "enhanced-server: importance-range")
    async def test_importance_is_set(self, client: Client) -> None:
        await create(client, "Alice", "Bob")
        changed = await answer(client, "set_importance", entityName="Alice", importance=7.5)
        assert changed == {"entityName": "Alice", "importance": 7.5}
        assert await names_found(client, minImportance=7) == ["Alice"]
        await answer(client, "set_importance", entityName="Alice", importance=0)
        assert await names_found(client, maxImportance=0) == ["Alice"]

    async def test_each_change_of_tags_and_importance_is_a_version(self, client: Client, agent: Agent) -> None:
        await create(client, "Alice", observations=["likes tea"], tags=["VIP"])
        await answer(client, "add_tags", entityName="Alice", tags=["friend"])
        await answer(client, "set_importance", entityName="Alice", importance=3)
        await answer(client, "remove_tags", entityName="Alice", tags=["vip"])
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            graph = await graphs.get_graph(tx, "default")
            [entity] = await entities.open_entities(GraphView(tx, graph), ["Alice"])
            versions = await lineages.history(tx, graph, entity.id)
        assert entity.observations == ("likes tea",)
        assert [(v.version, v.tags, v.importance) for v in reversed(versions)] == [
            (1, ("VIP",), None),
            (2, ("VIP", "friend"), None),
            (3, ("VIP", "friend"), 3),
            (4, ("friend",), 3),
        ]


async def names_found(client: Client, **only: Any) -> list[str]:
    return await names(client, "search_nodes", query="", **only)


class TestMergeEntities:
    """With entityNames; tests/contract/test_memory_crate.py has the crate's shape."""

    @pytest.mark.proves("organize: merge_entities", "enhanced-server: merge-several")
    async def test_the_first_entity_takes_over_the_others(self, client: Client) -> None:
        entities = [
            {"name": "Al", "entityType": "person", "observations": ["a", "b"], "tags": ["X"], "importance": 2},
            {"name": "Alice", "entityType": "human", "observations": ["b", "c"], "tags": ["x", "y"], "importance": 8},
            {"name": "Bob", "entityType": "person", "observations": []},
        ]
        for entity in entities:
            await answer(client, "create_entities", entities=[entity])
        first = (await answer(client, "get_root_entities"))["entities"][0]
        triples = [("Alice", "Bob"), ("Al", "Bob"), ("Bob", "Alice"), ("Alice", "Al"), ("Alice", "Alice")]
        await answer(
            client,
            "create_relations",
            relations=[{"from": a, "to": b, "relationType": "knows"} for a, b in triples],
        )
        result = await client.call_tool("merge_entities", {"entityNames": ["Al", "Alice"]})
        merged = result.structured_content or {}
        assert json.loads(text_of(result)) == merged
        assert {key: value for key, value in merged.items() if key != "lastModified"} == {
            "name": "Al",
            "entityType": "person",
            "observations": ["a", "b", "c"],
            "tags": ["x", "y"],
            "importance": 8,
            "createdAt": first["createdAt"],
        }
        assert merged["lastModified"] >= first["lastModified"]
        graph = await answer(client, "read_graph")
        assert [entity["name"] for entity in graph["entities"]] == ["Al", "Bob"]
        ends = sorted((relation["from"], relation["to"]) for relation in graph["relations"])
        assert ends == [("Al", "Bob"), ("Bob", "Al")]

    @pytest.mark.proves("enhanced-server: merge-several")
    async def test_a_merged_entity_has_the_earliest_creation_time(self, client: Client) -> None:
        await create(client, "Old")
        await create(client, "New")
        [old, _] = (await answer(client, "get_root_entities"))["entities"]
        merged = await answer(client, "merge_entities", entityNames=["New", "Old"])
        assert (merged["name"], merged["createdAt"]) == ("New", old["createdAt"])

    @pytest.mark.proves("organize: merge_entities", "enhanced-server: merge-under-a-taken-name")
    @pytest.mark.parametrize("taken_by", ["nothing", "one of them", "a placeholder"])
    async def test_a_merged_entity_can_be_renamed(self, client: Client, taken_by: str) -> None:
        target = {"one of them": "B"}.get(taken_by, "Target")
        await create(client, "A", "B", "Z")
        if taken_by == "a placeholder":
            await answer(
                client, "create_relations", relations=[{"from": "Z", "to": "Target", "relationType": "waits for"}]
            )
        merged = await answer(client, "merge_entities", entityNames=["A", "B"], targetName=target)
        assert (merged["name"], merged["observations"]) == (target, [])
        graph = await answer(client, "read_graph")
        assert sorted(entity["name"] for entity in graph["entities"]) == sorted([target, "Z"])
        assert len(graph["relations"]) == (taken_by == "a placeholder")
        counts = await answer(client, "graph_stats")
        assert (counts["entities"], counts["relations"]) == (2, len(graph["relations"]))

    @pytest.mark.proves("enhanced-server: merge-under-a-taken-name")
    async def test_the_name_of_an_unrelated_entity_is_refused_as_target(self, client: Client) -> None:
        await create(client, "A", "B")
        await create(client, "Innocent", observations=["was there"])
        before = await answer(client, "read_graph")
        arguments = {"entityNames": ["A", "B"], "targetName": "Innocent"}
        result = await client.call_tool("merge_entities", arguments)
        assert error_of(result) == {"code": "name_taken", "path": "targetName"}
        assert await answer(client, "read_graph") == before

    async def test_a_merged_entity_is_found_by_its_old_names(self, agent: Agent) -> None:
        """Also by names from an earlier merge, and by the one that a new name replaced."""
        await agent.create("Zuse", "Konrad", "Sponsor", "Patron")
        for name in ("Zuse", "Konrad", "Sponsor", "Patron"):
            await agent.observe(name, f"statement of {name.lower()[::-1]}")
        async with agent.writing() as (tx, revision):
            await merging.merge_entities(tx, revision, ["Konrad", "Zuse"])
        async with agent.writing() as (tx, revision):
            await merging.merge_entities(tx, revision, ["Patron", "Konrad"], "Inventor")
        for name in ("Zuse", "Konrad", "Patron", "Inventor"):
            assert "statement of norta" + "p" in " ".join(await agent.recalled(name)), name

    @pytest.mark.proves("enhanced-server: merge-needs-two")
    async def test_too_few_or_unknown_entities_are_refused(self, client: Client, db: Database, caller: Caller) -> None:
        await create(client, "A", "B")
        before = await revision_of(db, caller)
        for few in (["A"], ["A", "A"]):
            said = await refused(client, "merge_entities", entityNames=few)
            assert said == ("invalid_input", "entityNames: At least two entities are needed")
        assert (await refused(client, "merge_entities", entityNames=["A", "Ghost"]))[0] == "entity_not_found"
        assert await revision_of(db, caller) == before

    async def test_children_of_merged_entities_move_to_the_target(self, client: Client) -> None:
        await plant(client)
        await answer(client, "merge_entities", entityNames=["CFO", "CTO"])
        assert await names(client, "get_children", entityName="CFO") == ["Dev", "Ops"]
        assert await names(client, "get_ancestors", entityName="Intern") == ["Dev", "CFO", "CEO"]

    @pytest.mark.parametrize(
        ("merged", "above", "below"),
        [
            (["Intern", "CTO"], ["CEO"], ["Dev", "Ops"]),
            (["Dev", "CTO"], ["CEO"], ["Ops", "Intern"]),
            (["Intern", "CEO"], [], ["CTO", "Dev", "Ops", "CFO"]),
            (["Intern", "CTO", "CEO"], [], ["CFO", "Dev", "Ops"]),
            (["Ops", "Dev"], ["CTO", "CEO"], ["Intern"]),
        ],
    )
    async def test_an_entity_that_takes_over_its_ancestor_takes_its_place(
        self, client: Client, merged: list[str], above: list[str], below: list[str]
    ) -> None:
        """Otherwise it would be a descendant of its own children."""
        await plant(client)
        await answer(client, "merge_entities", entityNames=merged)
        assert await names(client, "get_ancestors", entityName=merged[0]) == above
        assert sorted(await names(client, "get_descendants", entityName=merged[0])) == sorted(below)

    async def test_a_name_can_be_merged_again(self, client: Client) -> None:
        """A name that was merged away, created again, and merged again."""
        await create(client, "A")
        for _ in range(2):
            await create(client, "B")
            merged = await answer(client, "merge_entities", entityNames=["A", "B"])
            assert merged["name"] == "A"


@pytest.mark.proves("rules: no-foreign-ids")
async def test_another_tenant_finds_nothing_with_any_tool(
    gateway: RunningGateway, agent: Agent, issue: NewApiKey, new_tenant: NewTenant
) -> None:
    """Another tenant calls every tool with the same names; the entities of the first tenant do not change."""
    other = operator_caller(await new_tenant())
    await agent.create(*ORDER)
    for name, parent in TREE.items():
        await set_parent(agent, name, parent)
    before = (await agent.read(), await agent.head())
    async with gateway.client((await issue(other)).secret, "/mcp/x/all") as client:
        assert (await answer(client, "get_root_entities"))["entities"] == []
        for tool in ("get_parent", "get_children", "get_ancestors", "get_descendants", "get_subtree"):
            assert (await refused(client, tool, entityName="CTO"))[0] == "entity_not_found", tool
        await create(client, "CTO", "CEO", "Mine")
        for tool in ("get_children", "get_ancestors", "get_descendants"):
            assert await names(client, tool, entityName="CTO") == [], tool
        assert await names(client, "get_subtree", entityName="CEO") == ["CEO"]
        assert (await answer(client, "get_parent", entityName="CTO"))["parent"] is None
        await answer(client, "set_entity_parent", entityName="CEO", parentName="CTO")
        assert (await refused(client, "set_entity_parent", entityName="CTO", parentName="CFO"))[0] == "entity_not_found"
        await answer(client, "add_tags", entityName="CTO", tags=["theirs"])
        await answer(client, "remove_tags", entityName="CTO", tags=["theirs"])
        await answer(client, "set_importance", entityName="CTO", importance=1)
        await answer(client, "merge_entities", entityNames=["CTO", "Mine"], targetName="Dev")
        assert (await refused(client, "merge_entities", entityNames=["Dev", "Ops"]))[0] == "entity_not_found"
    assert (await agent.read(), await agent.head()) == before
