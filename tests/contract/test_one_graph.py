"""One graph that every vocabulary writes and reads completely: contents, observations, counts and names."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.contract.test_lineage import LineageClient
from tests.support.gateway import RunningGateway, rpc_headers

ALL = "/mcp/x/all"


class Everything(LineageClient):
    """Calls the tools of every toolset with one key."""

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.gateway.call(self.http, tool, arguments, path=ALL)
        assert not result["isError"], (tool, result)
        answer: dict[str, Any] = result["structuredContent"]
        return answer


@pytest.fixture
async def client(gateway: RunningGateway, key: str) -> AsyncIterator[Everything]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield Everything(gateway, http)


CONTENT = "Alice keeps the harbour's lighthouse"
SAID = ["likes tea", "plays chess"]


async def lineage_of(client: Everything, name: str) -> str:
    nodes = (await client("list_nodes"))["nodes"]
    (lineage,) = [node["lineage_id"] for node in nodes if node.get("name") == name]
    assert isinstance(lineage, str)
    return lineage


async def write_all(client: Everything) -> dict[str, str]:
    """Write a graph with every vocabulary, and return ids by name."""
    alice = {"name": "Alice", "entityType": "person", "observations": SAID}
    await client("create_entities", entities=[alice, {"name": "Acme", "entityType": "company", "observations": []}])
    await client("create_relations", relations=[{"from": "Alice", "to": "Acme", "relationType": "works_at"}])
    await client("create_relations", relations=[{"from": "Acme", "to": "Ghost", "relationType": "hires"}])
    await client("create_relations", relations=[{"from": "Ghost", "to": "Bob", "relationType": "hires"}])
    ids = {"Alice": await lineage_of(client, "Alice")}
    await client("put_node", lineage_id=ids["Alice"], kind="person", content=CONTENT)
    ids["note"] = await client.note("Leaves grow on bushes")
    await client.edge(ids["Alice"], ids["note"], kind="wrote")
    entity = await client("create_node", text="Bob", node_type="Entity", entity_type="person")
    fact = await client("create_node", text="Bob mends the Acme clock")
    ids |= {"Bob": entity["node"]["id"], "fact": fact["node"]["id"]}
    await client("create_triplet", subject="Bob", predicate="mends", object_value="Clock", fact_id=ids["fact"])
    await client("remember", items=[{"text": "likes coffee", "about": ["Bob"]}, {"text": "Bees make honey"}])
    await client("relate", triples=[{"subject": "Bob", "predicate": "knows", "object": "Alice"}])
    await client("set_entity_parent", entityName="Alice", parentName="Acme")
    return ids


class TestContent:
    @pytest.mark.proves("rules: same-content-in-every-vocabulary")
    async def test_the_official_vocabulary_returns_content_beside_observations(self, client: Everything) -> None:
        await write_all(client)
        told = {"name": "Alice", "entityType": "person", "observations": SAID, "content": CONTENT}
        assert await client("get_entity", name="Alice") == told
        assert (await client("open_nodes", names=["Alice"]))["entities"] == [told]
        assert told in (await client("read_graph"))["entities"]
        assert (await client("describe_entity", name="Alice"))["entity"] == told
        assert (await client("open_nodes", names=["Acme"]))["entities"] == [
            {"name": "Acme", "entityType": "company", "observations": []}
        ]
        (child,) = (await client("get_children", entityName="Acme"))["entities"]
        assert child["content"] == CONTENT

    @pytest.mark.proves("rules: same-content-in-every-vocabulary")
    async def test_opened_entities_can_be_created_in_another_graph(self, client: Everything) -> None:
        await write_all(client)
        opened = (await client("open_nodes", names=["Alice", "Acme"]))["entities"]
        made = await client("create_entities", graph="elsewhere", entities=opened)
        assert made["entities"] == opened
        assert (await client("open_nodes", graph="elsewhere", names=["Alice", "Acme"]))["entities"] == opened
        found = await client("recall", graph="elsewhere", query="Who keeps the lighthouse of the harbour?")
        assert found["memories"][0]["text"] == CONTENT

    @pytest.mark.proves("rules: same-content-in-every-vocabulary")
    async def test_the_content_is_not_an_observation(self, client: Everything) -> None:
        await write_all(client)
        before = (await client("graph_stats"))["totalObservations"]
        await client("delete_observations", deletions=[{"entityName": "Alice", "observations": [CONTENT, *SAID]}])
        entity = await client("get_entity", name="Alice")
        assert (entity["observations"], entity["content"]) == ([], CONTENT)
        assert (await client("graph_stats"))["totalObservations"] == before - len(SAID)

    async def test_the_content_is_read_as_of_a_revision(self, client: Everything) -> None:
        await write_all(client)
        assert "content" not in await client("get_entity", name="Alice", as_of="2")
        assert (await client("get_entity", name="Alice", as_of="2"))["observations"] == SAID


class TestObservations:
    @pytest.mark.proves("rules: same-content-in-every-vocabulary")
    async def test_the_contract_vocabulary_returns_content_and_observations(self, client: Everything) -> None:
        ids = await write_all(client)
        node = (await client("get_node", node_id=ids["Alice"]))["node"]
        assert (node["text"], node["content"], node["observations"]) == ("Alice", CONTENT, SAID)
        fact = (await client("get_node", node_id=ids["fact"]))["node"]
        assert fact["text"] == "Bob mends the Acme clock"
        assert not {"content", "observations"} & fact.keys()

    @pytest.mark.proves("rules: same-content-in-every-vocabulary")
    async def test_the_lineage_vocabulary_returns_observations(self, client: Everything) -> None:
        ids = await write_all(client)
        node = (await client("get_node_by_lineage", lineage_id=ids["Alice"]))["node"]
        assert (node["content"], node["observations"]) == (CONTENT, SAID)
        version = (await client("get_node_by_id", id=node["id"]))["node"]
        assert version["observations"] == SAID
        listed = {node["lineage_id"]: node for node in (await client("list_nodes"))["nodes"]}
        assert listed[ids["Alice"]]["observations"] == SAID
        assert listed[ids["Bob"]]["observations"] == ["likes coffee"]
        assert "observations" not in listed[ids["note"]]
        compact = (await client("list_nodes", compact=True))["nodes"]
        assert not any("observations" in node for node in compact)

    @pytest.mark.proves("rules: same-content-in-every-vocabulary")
    async def test_observations_are_read_as_of_a_time(self, client: Everything) -> None:
        ids = await write_all(client)
        then = (await client("put_node", lineage_id=ids["Alice"], kind="person", content="then"))["node"]["created_at"]
        await client("add_observations", observations=[{"entityName": "Alice", "contents": ["sails"]}])
        now = (await client("get_node_by_lineage", lineage_id=ids["Alice"]))["node"]
        assert now["observations"] == [*SAID, "sails"]
        read = {"lineage_id": ids["Alice"], "at_time": then}
        assert (await client("get_node_by_lineage", **read))["node"]["observations"] == SAID


class TestCounts:
    @pytest.mark.proves("rules: counts-match-lists")
    async def test_each_count_equals_the_length_of_its_list(self, client: Everything) -> None:
        await write_all(client)
        await self.compare(client)

    @pytest.mark.proves("rules: counts-match-lists")
    async def test_each_count_equals_the_length_of_its_list_after_deletions(self, client: Everything) -> None:
        ids = await write_all(client)
        await client("delete_node", node_id=ids["fact"])
        await client("delete_entities", entityNames=["Acme"])
        await client("create_graph", name="other")
        far = await client.note("far", graph="other")
        await client.edge(ids["note"], far, to_graph="other")
        await client.edge(ids["Bob"], far, to_graph="other")
        await self.compare(client)

    async def compare(self, client: Everything) -> None:
        graph, stats = await client("read_graph"), await client("graph_stats")
        said = sum(len(entity["observations"]) for entity in graph["entities"])
        assert stats["entities"] == len(graph["entities"])
        assert stats["relations"] == len(graph["relations"]) == len((await client("search_relations"))["relations"])
        assert stats["totalObservations"] == said
        types = {one["type"]: one["count"] for one in (await client("list_entity_types"))["types"]}
        assert sum(types.values()) == stats["entities"]
        kinds = [relation["relationType"] for relation in graph["relations"]]
        told = {one["type"]: one["count"] for one in (await client("list_relation_types"))["types"]}
        assert told == {kind: kinds.count(kind) for kind in kinds}
        assert len((await client("search_triplets"))["triplets"]) == stats["relations"]

        nodes = (await client("list_nodes"))["nodes"]
        contract, detail = (await client("get_stats"))["stats"], await client("get_graph")
        assert len(nodes) == contract["total_nodes"] == detail["nodes"]
        assert (await client("describe_schema"))["node_count"] == len(nodes)
        assert contract["entities"] == stats["entities"]
        assert contract["facts"] == sum("name" not in node for node in nodes)
        assert contract["observations"] == detail["observations"] == said
        assert said == sum(len(node.get("observations", [])) for node in nodes)
        edges: dict[str, Any] = {}
        for node in nodes:
            edges |= {e["id"]: e for e in (await client("outgoing", lineage_id=node["lineage_id"]))["edges"]}
            edges |= {e["id"]: e for e in (await client("incoming", lineage_id=node["lineage_id"]))["edges"]}
        assert contract["relations"] == detail["edges"] == sum(contract["relation_types"].values()) == len(edges)


class TestPaths:
    @pytest.mark.proves("rules: paths-name-every-node")
    async def test_paths_name_every_node_by_one_rule(self, client: Everything) -> None:
        """An entity or placeholder by its name, a node without a name by its id."""
        ids = await write_all(client)
        await client("create_relation", from_id=ids["note"], to_id=ids["fact"], relation_type="CITES")
        every = await client("find_all_paths", **{"from": "Alice", "to": "Bob"}, maxDepth=6)
        paths = every["paths"]
        assert ["Alice", "Acme", "Ghost", "Bob"] in paths
        assert ["Alice", ids["note"], ids["fact"], "Bob"] in paths
        explored = await client("explore", start="Alice", to="Bob", depth=6)
        assert sorted(explored["paths"]) == sorted(paths)
        traced = (await client("get_trace", from_id=ids["Alice"], to_id=ids["Bob"], max_paths=50))["paths"]
        assert sorted([self.called(node) for node in path["nodes"]] for path in traced) == sorted(paths)
        for path in traced:
            assert len(path["nodes"]) == path["length"] + 1
            ends = {frozenset((edge["from_id"], edge["to_id"])) for edge in path["edges"]}
            assert len(ends) == path["length"], json.dumps(path)
        assert (await client("find_path", **{"from": "Alice", "to": "Bob"}))["path"] in paths

    def called(self, node: dict[str, Any]) -> str:
        label: str = node["text"] if node["node_type"] == "Entity" else node["id"]
        return label


@pytest.mark.proves("crate: extract-subgraph-depth-0")
async def test_a_subgraph_of_depth_zero_has_the_relations_among_its_entities(client: Everything) -> None:
    await write_all(client)
    await client("create_relations", relations=[{"from": "Bob", "to": "Bob", "relationType": "shaves"}])
    shaves = {"from": "Bob", "to": "Bob", "relationType": "shaves"}
    knows = {"from": "Bob", "to": "Alice", "relationType": "knows"}
    found = await client("extract_subgraph", names=["Alice", "Bob"], depth=0)
    assert [entity["name"] for entity in found["entities"]] == ["Alice", "Bob"]
    assert found["relations"] == [knows, shaves]
    assert (await client("extract_subgraph", names=["Bob"], depth=0))["relations"] == [shaves]
    ids = {"node_id": await lineage_of(client, "Bob")}
    context = await client("get_context", **ids, depth=0)
    assert [edge["relation_type"] for edge in context["edges"]] == ["shaves"]
