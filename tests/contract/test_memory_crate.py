"""The rest of toolset `memory`: what the mcp-memory crate adds, in its shapes.

Source of truth: the README of https://crates.io/crates/mcp-memory. Every test speaks both wire revisions through the
official client, which also holds `structuredContent` against `outputSchema`.
"""

import json
from typing import Any

import pytest
from mcp import Client

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.graph.traversal import service as traversal
from recollect.graph.traversal.model import NamedPaths
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.contract.conftest import ConnectedClient
from tests.support.gateway import (
    MODES,
    NewApiKey,
    RunningGateway,
    answer,
    error_of,
    refused,
    revision_of,
    text_of,
    texts_of,
)
from tests.support.memories import Agent, found_path
from tests.support.plans import Counting

ROAD = [
    ("Alice", "Bob", "knows"),
    ("Charlie", "Bob", "knows"),
    ("Charlie", "Dora", "likes"),
    ("Alice", "Dora", "likes"),
]
"""A ring: every path between two of them goes against the direction of some relation."""


@pytest.fixture(params=MODES)
async def client(request: pytest.FixtureRequest, connected: ConnectedClient, key: str) -> Client:
    return await connected(key, "/mcp/x/memory", request.param)


def entity(name: str, *observations: str, kind: str = "person") -> dict[str, Any]:
    return {"name": name, "entityType": kind, "observations": list(observations)}


def relation(source: str, target: str, kind: str) -> dict[str, str]:
    return {"from": source, "to": target, "relationType": kind}


async def remember_ring(client: Client) -> None:
    names = ("Alice", "Bob", "Charlie", "Dora")
    await answer(client, "create_entities", entities=[entity(name) for name in names])
    await answer(client, "create_relations", relations=[relation(*triple) for triple in ROAD])


class TestUpsertEntities:
    @pytest.mark.proves("memory: upsert_entities", "crate: upsert")
    async def test_new_entities_are_created_and_known_ones_gain_observations(self, client: Client) -> None:
        await answer(client, "create_entities", entities=[entity("Alice", "likes tea")])
        wanted = [entity("Bob", "plays chess", "plays chess"), entity("Alice", "likes tea", "new fact", kind="cat")]
        result = await client.call_tool("upsert_entities", {"entities": wanted})
        told = [
            {"name": "Bob", "created": True, "addedObservations": ["plays chess"]},
            {"name": "Alice", "created": False, "addedObservations": ["new fact"]},
        ]
        assert result.structured_content == {"results": told}
        assert text_of(result) == json.dumps(told, separators=(",", ":"))
        assert await answer(client, "get_entity", name="Alice") == entity("Alice", "likes tea", "new fact")

    @pytest.mark.proves("crate: upsert")
    async def test_an_equal_upsert_changes_nothing(self, client: Client, db: Database, caller: Caller) -> None:
        wanted = [entity("Alice", "likes tea"), entity("Alice", "likes tea", "sings")]
        told = (await answer(client, "upsert_entities", entities=wanted))["results"]
        assert [(one["created"], one["addedObservations"]) for one in told] == [
            (True, ["likes tea"]),
            (False, ["sings"]),
        ]
        before = await revision_of(db, caller)
        told = (await answer(client, "upsert_entities", entities=wanted))["results"]
        assert [(one["created"], one["addedObservations"]) for one in told] == [(False, []), (False, [])]
        assert await revision_of(db, caller) == before

    async def test_a_placeholder_becomes_an_entity(self, client: Client) -> None:
        await answer(client, "create_relations", relations=[relation("Alice", "Bob", "knows")])
        told = await answer(client, "upsert_entities", entities=[entity("Bob", "sings")])
        assert told["results"] == [{"name": "Bob", "created": True, "addedObservations": ["sings"]}]


class TestMergeEntities:
    """In the crate's shape; tests/contract/test_organize.py has the other."""

    @pytest.mark.proves("memory: merge_entities", "crate: merge")
    async def test_observations_and_relations_move_and_the_source_is_deleted(self, client: Client) -> None:
        await answer(
            client,
            "create_entities",
            entities=[
                entity("Alice", "likes tea", "sings", "lives in Oslo"),
                entity("Alicia", "likes tea"),
                entity("Bob"),
            ],
        )
        triples = [
            ("Alice", "Bob", "knows"),
            ("Bob", "Alice", "knows"),
            ("Alice", "Alicia", "is"),
            ("Alicia", "Bob", "knows"),
        ]
        await answer(client, "create_relations", relations=[relation(*triple) for triple in triples])
        result = await client.call_tool("merge_entities", {"source": "Alice", "target": "Alicia"})
        observations = {"movedObservations": 3, "addedObservations": 2}
        relations = {"redirectedRelations": 1, "duplicateRelations": 1, "selfLoops": 1}
        assert result.structured_content == {"source": "Alice", "target": "Alicia", **observations, **relations}
        assert json.loads(text_of(result)) == result.structured_content
        graph = await answer(client, "read_graph")
        assert graph["entities"] == [entity("Alicia", "likes tea", "sings", "lives in Oslo"), entity("Bob")]
        assert sorted(graph["relations"], key=str) == sorted(
            [relation("Alicia", "Bob", "knows"), relation("Bob", "Alicia", "knows")], key=str
        )

    @pytest.mark.proves("enhanced-server: merge-redirects-relations")
    async def test_the_state_before_a_merge_can_be_read(self, client: Client, db: Database, caller: Caller) -> None:
        await answer(client, "create_entities", entities=[entity("Alice", "sings"), entity("Alicia")])
        before = str(await revision_of(db, caller))
        await answer(client, "merge_entities", source="Alice", target="Alicia")
        assert await answer(client, "get_entity", name="Alice", as_of=before) == entity("Alice", "sings")
        assert await answer(client, "get_entity", name="Alicia", as_of=before) == entity("Alicia")

    async def test_both_entities_must_exist(self, client: Client, db: Database, caller: Caller) -> None:
        await answer(client, "create_entities", entities=[entity("Alice")])
        before = await revision_of(db, caller)
        for source, target in (("Alice", "Nobody"), ("Nobody", "Alice")):
            said = await refused(client, "merge_entities", source=source, target=target)
            assert said == ("entity_not_found", "Entity with name Nobody not found")
        assert await revision_of(db, caller) == before

    @pytest.mark.parametrize(
        ("arguments", "path"),
        [
            ({}, "source"),
            ({"source": "A"}, "source"),
            ({"target": "A"}, "source"),
            ({"source": "A", "target": "A"}, "source"),
            ({"source": "A", "target": "B", "targetName": "C"}, "source"),
            ({"source": "A", "target": "B", "entityNames": ["A", "B"]}, "entityNames"),
        ],
    )
    async def test_the_two_forms_of_arguments_cannot_be_mixed(self, client: Client, arguments: Any, path: str) -> None:
        result = await client.call_tool("merge_entities", arguments)
        assert error_of(result) == {"code": "invalid_input", "path": path}


class TestGetting:
    @pytest.mark.proves("memory: get_entity")
    async def test_get_entity_returns_one_entity(self, client: Client) -> None:
        await answer(client, "create_entities", entities=[entity("Alice", "likes tea")])
        result = await client.call_tool("get_entity", {"name": "Alice"})
        assert result.structured_content == entity("Alice", "likes tea")
        assert json.loads(text_of(result)) == entity("Alice", "likes tea")
        assert await refused(client, "get_entity", name="Bob") == ("entity_not_found", "Entity with name Bob not found")

    @pytest.mark.proves("memory: batch_get_entities", "crate: batch-get-order")
    async def test_batch_get_entities_keeps_the_order_with_null_for_missing_ones(self, client: Client) -> None:
        await answer(client, "create_entities", entities=[entity("Alice"), entity("Bob")])
        await answer(client, "create_relations", relations=[relation("Bob", "Ghost", "fears")])
        names = ["Bob", "Ghost", "Alice", "Bob"]
        result = await client.call_tool("batch_get_entities", {"names": names})
        found = [entity("Bob"), None, entity("Alice"), entity("Bob")]
        assert result.structured_content == {"entities": found}
        assert json.loads(text_of(result)) == found

    @pytest.mark.proves("memory: describe_entity", "crate: describe-entity")
    async def test_describe_entity_returns_relations_neighbours_and_degree(self, client: Client) -> None:
        await remember_ring(client)
        await answer(
            client, "create_relations", relations=[relation("Bob", "Bob", "is"), relation("Bob", "Alice", "knows")]
        )
        assert await answer(client, "describe_entity", name="Bob") == {
            "entity": entity("Bob"),
            "relations": [
                relation("Alice", "Bob", "knows"),
                relation("Charlie", "Bob", "knows"),
                relation("Bob", "Bob", "is"),
                relation("Bob", "Alice", "knows"),
            ],
            "neighbors": ["Alice", "Charlie"],
            "degree": 4,
        }
        assert (await refused(client, "describe_entity", name="Nobody"))[0] == "entity_not_found"

    @pytest.mark.proves("memory: graph_stats", "crate: graph-stats")
    async def test_graph_stats_counts(self, client: Client) -> None:
        empty = {"internedStrings": 0, "internedBytes": 0}
        zero = dict.fromkeys(("entities", "relations", "totalObservations", "searchIndexEntries"), 0)
        assert await answer(client, "graph_stats", graph="nowhere") == zero | empty
        await remember_ring(client)
        await answer(client, "add_observations", observations=[{"entityName": "Bob", "contents": ["a", "b"]}])
        counted = {"entities": 4, "relations": 4, "totalObservations": 2, "searchIndexEntries": 4}
        assert await answer(client, "graph_stats") == counted | empty

    @pytest.mark.proves("memory: list_entity_types", "memory: list_relation_types", "crate: types-are-counted")
    async def test_types_are_listed_most_used_first_and_then_by_name(self, client: Client) -> None:
        kinds = ["b", "a", "c", "c"]
        await answer(client, "create_entities", entities=[entity(str(n), kind=kind) for n, kind in enumerate(kinds)])
        await answer(client, "create_relations", relations=[relation("0", "Ghost", "z"), relation("1", "2", "y")])
        result = await client.call_tool("list_entity_types", {})
        counted = [("c", 2), ("a", 1), ("b", 1)]
        assert json.loads(text_of(result)) == [{"type": kind, "count": count} for kind, count in counted]
        found = (await answer(client, "list_relation_types"))["types"]
        assert found == [{"type": "y", "count": 1}, {"type": "z", "count": 1}]


class TestSearchRelations:
    @pytest.mark.proves("memory: search_relations", "crate: search-relations")
    async def test_relations_are_filtered(self, client: Client, subtests: pytest.Subtests) -> None:
        await remember_ring(client)
        cases: list[tuple[dict[str, str], list[tuple[str, str, str]]]] = [
            ({}, ROAD),
            ({"from": "", "to": "", "relationType": ""}, ROAD),
            ({"from": "Alice"}, [ROAD[0], ROAD[3]]),
            ({"to": "Bob"}, ROAD[:2]),
            ({"relationType": "likes"}, ROAD[2:]),
            ({"from": "Charlie", "to": "Dora", "relationType": "likes"}, [ROAD[2]]),
            ({"from": "Charlie", "relationType": "hates"}, []),
            ({"from": "Nobody"}, []),
            ({"graph": "nowhere"}, []),
        ]
        for only, found in cases:
            with subtests.test(str(only)):
                result = await client.call_tool("search_relations", only)
                assert result.structured_content == {"relations": [relation(*triple) for triple in found]}
                assert json.loads(text_of(result)) == [relation(*triple) for triple in found]

    async def test_each_page_has_the_next_offset(self, client: Client) -> None:
        await remember_ring(client)
        result = await client.call_tool("search_relations", {"limit": 3})
        assert result.structured_content == {"relations": [relation(*t) for t in ROAD[:3]], "nextOffset": 3}
        array, note = texts_of(result)
        assert len(json.loads(array)) == 3
        assert note == "More follow: offset=3."
        assert await answer(client, "search_relations", limit=3, offset=3) == {"relations": [relation(*ROAD[3])]}


class TestPaths:
    @pytest.mark.proves("memory: find_path", "crate: paths")
    async def test_find_path_ignores_the_direction_of_relations(self, client: Client) -> None:
        await remember_ring(client)
        await answer(client, "create_relations", relations=[relation("Eve", "Dora", "knows")])
        result = await client.call_tool("find_path", {"from": "Eve", "to": "Alice"})
        assert result.structured_content == {"path": ["Eve", "Dora", "Alice"]}
        assert json.loads(text_of(result)) == ["Eve", "Dora", "Alice"]

    async def test_the_path_to_itself_is_one_node_and_to_an_unconnected_one_empty(self, client: Client) -> None:
        await remember_ring(client)
        await answer(client, "create_entities", entities=[entity("Hermit")])
        assert await answer(client, "find_path", **{"from": "Bob", "to": "Bob"}) == {"path": ["Bob"]}
        assert await answer(client, "find_path", **{"from": "Bob", "to": "Hermit"}) == {"path": []}
        assert (await answer(client, "find_all_paths", **{"from": "Bob", "to": "Hermit"})) == {"paths": []}

    @pytest.mark.parametrize("tool", ["find_path", "find_all_paths"])
    async def test_an_unknown_name_is_reported(self, client: Client, tool: str) -> None:
        await remember_ring(client)
        for ends in ({"from": "Nobody", "to": "Bob"}, {"from": "Bob", "to": "Nobody"}):
            assert await refused(client, tool, **ends) == ("entity_not_found", "Entity with name Nobody not found")
        assert (await refused(client, tool, graph="nowhere", **{"from": "Bob", "to": "Bob"}))[0] == "entity_not_found"

    @pytest.mark.proves("memory: find_all_paths", "crate: paths", "crate: find-all-paths")
    async def test_all_paths_are_found_shortest_first(self, client: Client) -> None:
        await remember_ring(client)
        await answer(
            client, "create_relations", relations=[relation("Charlie", "Alice", "met"), relation("Bob", "Dora", "met")]
        )
        paths = (await answer(client, "find_all_paths", **{"from": "Alice", "to": "Charlie"}))["paths"]
        assert paths[0] == ["Alice", "Charlie"]
        assert [len(path) for path in paths] == [2, 3, 3, 4, 4]
        assert sorted(map(str, paths)) == sorted(
            map(
                str,
                [
                    ["Alice", "Charlie"],
                    ["Alice", "Bob", "Charlie"],
                    ["Alice", "Dora", "Charlie"],
                    ["Alice", "Bob", "Dora", "Charlie"],
                    ["Alice", "Dora", "Bob", "Charlie"],
                ],
            )
        )

    @pytest.mark.proves("crate: find-all-paths")
    async def test_bounded_paths_are_marked_as_cut(self, client: Client) -> None:
        await remember_ring(client)
        ends = {"from": "Alice", "to": "Charlie"}
        result = await client.call_tool("find_all_paths", {**ends, "maxPaths": 1})
        structured = result.structured_content or {}
        assert (len(structured["paths"]), structured["cut"]) == (1, "paths")
        array, note = texts_of(result)
        assert json.loads(array) == structured["paths"]
        assert note == "Not everything is shown: the limit on paths was reached."
        assert await answer(client, "find_all_paths", **ends, maxDepth=1) == {"paths": []}
        assert "cut" not in await answer(client, "find_all_paths", **ends, maxPaths=2)

    async def test_a_path_beyond_the_depth_is_marked_as_cut(self, client: Client) -> None:
        chain = [relation(str(n), str(n + 1), "next") for n in range(20)]
        await answer(client, "create_relations", relations=chain)
        path = (await answer(client, "find_path", **{"from": "0", "to": "12"}))["path"]
        assert path == [str(n) for n in range(13)]
        result = await client.call_tool("find_path", {"from": "0", "to": "13"})
        assert result.structured_content == {"path": [], "cut": "depth"}
        assert texts_of(result) == ["[]", "Not everything is shown: the limit on depth was reached."]


class TestGetNeighbors:
    @pytest.mark.proves("memory: get_neighbors", "crate: get-neighbors")
    async def test_neighbours_and_the_relations_to_them_are_returned(self, client: Client) -> None:
        await remember_ring(client)
        await answer(
            client, "create_relations", relations=[relation("Bob", name, "fears") for name in ("Ghost", "Bob")]
        )
        found = await answer(client, "get_neighbors", name="Bob")
        assert found == {
            "entities": [entity("Alice"), entity("Charlie")],
            "relations": [relation(*ROAD[0]), relation(*ROAD[1]), relation("Bob", "Ghost", "fears")],
        }

    @pytest.mark.proves("crate: get-neighbors")
    async def test_neighbours_are_filtered_by_direction_and_type(self, client: Client) -> None:
        await remember_ring(client)
        for arguments, names in (
            ({"direction": "outgoing"}, ["Bob", "Dora"]),
            ({"direction": "incoming"}, []),
            ({"relationTypes": ["likes"]}, ["Dora"]),
            ({"as_of": "1"}, []),
        ):
            found = await answer(client, "get_neighbors", name="Alice", **arguments)
            assert [one["name"] for one in found["entities"]] == names, arguments

    @pytest.mark.proves("crate: get-neighbors")
    async def test_neighbours_are_listed_in_pages(self, client: Client) -> None:
        await remember_ring(client)
        first = await answer(client, "get_neighbors", name="Alice", limit=1)
        assert first == {"entities": [entity("Bob")], "relations": [relation(*ROAD[0])], "nextOffset": 1}
        second = await answer(client, "get_neighbors", name="Alice", limit=1, offset=1)
        assert second == {"entities": [entity("Dora")], "relations": [relation(*ROAD[3])]}

    async def test_an_unknown_entity_is_reported(self, client: Client) -> None:
        assert (await refused(client, "get_neighbors", name="Nobody"))[0] == "entity_not_found"


class TestExtractSubgraph:
    @pytest.mark.proves("memory: extract_subgraph", "crate: extract-subgraph")
    async def test_a_subgraph_has_the_entities_within_its_depth_and_their_relations(self, client: Client) -> None:
        await remember_ring(client)
        await answer(client, "create_relations", relations=[relation("Bob", "Ghost", "fears")])
        at_once = await answer(client, "extract_subgraph", names=["Bob", "Nobody"], depth=0)
        assert at_once == {"entities": [entity("Bob")], "relations": []}
        near = await answer(client, "extract_subgraph", names=["Bob"], depth=1)
        assert near["entities"] == [entity("Bob"), entity("Alice"), entity("Charlie")]
        assert near["relations"] == [relation(*ROAD[0]), relation(*ROAD[1]), relation("Bob", "Ghost", "fears")]
        far = await answer(client, "extract_subgraph", names=["Bob"], depth=2)
        assert {one["name"] for one in far["entities"]} == {"Alice", "Bob", "Charlie", "Dora"}
        assert far["relations"][:4] == [relation(*triple) for triple in ROAD]

    @pytest.mark.proves("crate: extract-subgraph")
    async def test_relations_among_the_farthest_entities_are_included(self, client: Client) -> None:
        await answer(
            client,
            "create_relations",
            relations=[
                relation("A", "B", "r"),
                relation("A", "C", "r"),
                relation("B", "C", "r"),
                relation("C", "D", "r"),
            ],
        )
        found = (await answer(client, "extract_subgraph", names=["A"], depth=1))["relations"]
        assert found == [relation("A", "B", "r"), relation("A", "C", "r"), relation("B", "C", "r")]

    @pytest.mark.proves("crate: bounded-walks")
    async def test_a_bounded_subgraph_is_marked_as_cut(self, client: Client) -> None:
        await remember_ring(client)
        result = await client.call_tool("extract_subgraph", {"names": ["Bob"], "depth": 2, "limit": 2})
        structured = result.structured_content or {}
        assert (len(structured["entities"]), structured["cut"]) == (2, "nodes")
        assert texts_of(result)[1] == "Not everything is shown: the limit on nodes was reached."

    async def test_the_subgraph_of_an_unknown_graph_is_empty(self, client: Client) -> None:
        assert await answer(client, "extract_subgraph", names=["A"], graph="no") == {"entities": [], "relations": []}


class TestThePast:
    """Every read of the state before everything was deleted."""

    READS: list[tuple[str, dict[str, Any]]] = [
        ("get_entity", {"name": "Bob"}),
        ("batch_get_entities", {"names": ["Bob", "Ghost"]}),
        ("search_relations", {"to": "Bob"}),
        ("find_path", {"from": "Bob", "to": "Dora"}),
        ("find_all_paths", {"from": "Bob", "to": "Dora"}),
        ("extract_subgraph", {"names": ["Bob"], "depth": 2}),
        ("describe_entity", {"name": "Bob"}),
        ("list_entity_types", {}),
        ("list_relation_types", {}),
    ]

    async def test_every_tool_reads_the_past(self, client: Client, db: Database, caller: Caller) -> None:
        await remember_ring(client)
        then = {tool: await answer(client, tool, **arguments) for tool, arguments in self.READS}
        before = str(await revision_of(db, caller))
        await answer(client, "delete_entities", entityNames=["Alice", "Bob", "Charlie", "Dora"])
        for tool, arguments in self.READS:
            assert await answer(client, tool, **arguments, as_of=before) == then[tool], tool
            now = await client.call_tool(tool, arguments)
            assert now.is_error or now.structured_content != then[tool], tool


@pytest.mark.parametrize(("name", "cut"), [("MAX_NODES", "nodes"), ("MAX_EDGES", "edges")])
async def test_a_path_beyond_the_bounds_on_work_is_marked_as_cut(
    db: Database, caller: Caller, monkeypatch: pytest.MonkeyPatch, name: str, cut: str
) -> None:
    """The bound is lowered so that this graph reaches it: two hubs of twenty spokes, joined by their last ones."""
    agent = Agent(db, caller)
    await agent.relate(*((hub, f"{hub} {n}", "to") for hub in "AB" for n in range(20)), ("A 19", "B 19", "to"))
    async with db.transaction(caller, read_only=True) as tx:
        view = await graphs.view(tx, None)
        assert (await found_path(view, "A", "B")).paths == [["A", "A 19", "B 19", "B"]]
        monkeypatch.setattr(traversal, name, 5)
        assert await found_path(view, "A", "B") == NamedPaths([], cut)


@pytest.mark.proves("crate: bounded-walks")
async def test_a_traversal_makes_one_query_per_level_for_any_size(db: Database, caller: Caller) -> None:
    counts = []
    for width in (2, 60):
        agent = Agent(db, caller, f"width-{width}")
        triples = [("Root", f"{n}", "to") for n in range(width)] + [
            (f"{n}", f"{n}.{m}", "to") for n in range(width) for m in (1, 2)
        ]
        await agent.relate(*triples)
        async with db.transaction(caller, read_only=True) as tx:
            counted = Counting(tx)
            view = await graphs.view(counted, agent.graph)  # type: ignore[arg-type]
            found = await traversal.extract_subgraph(view, ["Root"], depth=2, max_nodes=1_000)
            await found_path(view, "Root", "1.2")
            assert len(found.subgraph.relations) == 3 * width
            counts.append(counted.queries)
    assert counts[0] == counts[1]


@pytest.mark.proves("rules: no-foreign-ids")
async def test_another_tenant_finds_nothing_with_any_tool(
    gateway: RunningGateway, db: Database, caller: Caller, key: str, issue: NewApiKey, new_tenant: NewTenant
) -> None:
    """Another tenant calls every tool with the same names, and changes its own entities of these names."""
    other = operator_caller(await new_tenant())
    mine = Agent(db, caller)
    await mine.relate(*ROAD)
    for name in ("Alice", "Bob", "Charlie", "Dora"):
        await mine.create(name)
    before = (await mine.read(), await mine.head())
    async with gateway.client((await issue(other)).secret) as client:
        for tool, arguments in TestThePast.READS:
            result = await client.call_tool(tool, arguments)
            found = result.structured_content or {}
            assert result.is_error or not any(value for value in found.values() if value != [None, None]), (tool, found)
        assert (await answer(client, "graph_stats"))["entities"] == 0
        made = await answer(client, "upsert_entities", entities=[entity("Alice", "is mine"), entity("Bob")])
        assert [one["created"] for one in made["results"]] == [True, True]
        assert (await refused(client, "merge_entities", source="Charlie", target="Alice"))[0] == "entity_not_found"
        await answer(client, "merge_entities", source="Bob", target="Alice")
        assert await answer(client, "find_path", **{"from": "Alice", "to": "Alice"}) == {"path": ["Alice"]}
    assert (await mine.read(), await mine.head()) == before
