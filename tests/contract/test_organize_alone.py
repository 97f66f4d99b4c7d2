"""Toolset `organize` alone replaces the enhanced memory server, whose first nine tools are those of the official one.

Source of truth: that server's description of its data flow (entity, relation and search operations, error handling).
"""

from datetime import datetime
from math import log
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from mcp import Client
from mcp_types import Tool

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect_gateway.mcp_endpoint.schema import json_schema
from recollect_gateway.mcp_endpoint.server import definition
from recollect_gateway.mcp_endpoint.tools import CATALOGUE, TOOLS
from tests.conftest import NewTenant
from tests.contract.conftest import ConnectedClient
from tests.support.gateway import MODES, NewApiKey, RunningGateway, answer, refused, revision_of, text_of

NINE = (
    *("create_entities", "create_relations", "add_observations"),
    *("delete_entities", "delete_observations", "delete_relations"),
    *("read_graph", "search_nodes", "open_nodes"),
)
OFFICIAL_ENTITY = {"name", "entityType", "observations"}
ALICE: dict[str, Any] = {
    "name": "Alice",
    "entityType": "person",
    "observations": ["Engineer"],
    "tags": ["VIP", "vip", "Staff"],
    "importance": 7,
    "parentId": "Team",
}
TEAM: dict[str, Any] = {"name": "Team", "entityType": "team", "observations": ["Engineers all"]}
SEARCHES: dict[str, dict[str, Any]] = {
    "read_graph": {},
    "search_nodes": {"query": "engineer"},
    "search_nodes_ranked": {"query": "engineer engineers"},
    "boolean_search": {"query": "observation:engineer"},
    "fuzzy_search": {"query": "Engineer", "threshold": 0.6},
    "search_by_date_range": {},
}


@pytest.fixture(params=MODES)
async def client(request: pytest.FixtureRequest, connected: ConnectedClient, key: str) -> Client:
    return await connected(key, "/mcp/x/organize", request.param)


async def created_entities(client: Client) -> list[dict[str, Any]]:
    entities: list[dict[str, Any]] = (await answer(client, "create_entities", entities=[ALICE, TEAM]))["entities"]
    return entities


async def found(client: Client, tool: str, **arguments: Any) -> list[str]:
    """The names that a search finds, in any of the two shapes of results."""
    said = await answer(client, tool, **{**SEARCHES[tool], **arguments})
    return sorted(one["name"] for one in said.get("entities") or [hit["entity"] for hit in said.get("results", ())])


async def listed(client: Client) -> dict[str, Tool]:
    return {tool.name: tool for tool in (await client.list_tools()).tools}


class TestDialect:
    @pytest.mark.proves(
        "organize: delete_entities",
        "organize: delete_observations",
        "organize: delete_relations",
        "enhanced-server: dialect",
    )
    async def test_answers_match_the_listed_schemas(self, client: Client) -> None:
        """Each answer is validated by the schema of the same session."""
        tools = await listed(client)
        assert set(NINE) <= tools.keys()
        calls: list[tuple[str, dict[str, Any]]] = [
            ("create_entities", {"entities": [ALICE, TEAM]}),
            ("create_relations", {"relations": [{"from": "Alice", "to": "Team", "relationType": "is in"}]}),
            ("add_observations", {"observations": [{"entityName": "Team", "contents": ["meets on Mondays"]}]}),
            *SEARCHES.items(),
            ("open_nodes", {"names": ["Team", "Alice"]}),
            ("delete_observations", {"deletions": [{"entityName": "Team", "observations": ["Engineers all"]}]}),
            ("delete_relations", {"relations": [{"from": "Alice", "to": "Team", "relationType": "is in"}]}),
            ("delete_entities", {"entityNames": ["Alice"]}),
        ]
        for name, arguments in calls:
            Draft202012Validator(tools[name].input_schema).validate(arguments)
            said = await answer(client, name, **arguments)
            Draft202012Validator(json_schema(TOOLS[name].dialect_for(frozenset({"organize"})).result)).validate(said)

    @pytest.mark.proves("organize: read_graph", "enhanced-server: dialect")
    async def test_entities_have_tags_importance_times_and_parent(self, client: Client) -> None:
        alice, team = await created_entities(client)
        assert alice["tags"] == ["vip", "staff"]
        assert (alice["importance"], alice["parentId"]) == (7, "Team")
        assert team.keys() == {*OFFICIAL_ENTITY, "tags", "createdAt", "lastModified"}
        assert datetime.fromisoformat(alice["createdAt"]) <= datetime.fromisoformat(alice["lastModified"])
        for name in ("read_graph", "search_nodes", "open_nodes"):
            arguments = {"names": ["Alice"]} if name == "open_nodes" else SEARCHES[name]
            assert alice in (await answer(client, name, **arguments))["entities"]

    @pytest.mark.proves("organize: create_relations", "enhanced-server: create-relations-times")
    async def test_relations_have_their_time_of_creation(self, client: Client) -> None:
        edge = {"from": "Alice", "to": "not yet there", "relationType": "knows"}
        [new] = (await answer(client, "create_relations", relations=[edge]))["relations"]
        created = datetime.fromisoformat(new.pop("createdAt"))
        assert created == datetime.fromisoformat(new.pop("lastModified"))
        assert new == edge
        assert (await answer(client, "create_relations", relations=[edge]))["relations"] == []

    @pytest.mark.proves("organize: search_nodes")
    async def test_search_filters_by_tags_and_importance(self, client: Client) -> None:
        await created_entities(client)
        assert await found(client, "search_nodes") == ["Alice", "Team"]
        assert await found(client, "search_nodes", tags=["VIP"]) == ["Alice"]
        assert await found(client, "search_nodes", minImportance=8) == []

    @pytest.mark.proves("organize: add_observations")
    async def test_errors_have_the_text_of_that_server(self, client: Client) -> None:
        code, text = await refused(
            client, "add_observations", observations=[{"entityName": "Nobody", "contents": ["x"]}]
        )
        assert (code, text) == ("entity_not_found", "Error: Entity 'Nobody' not found")

    async def test_an_error_of_merge_entities_has_the_text_of_that_server(
        self, client: Client, gateway: RunningGateway, key: str
    ) -> None:
        await created_entities(client)
        for merged in ({"entityNames": ["Team", "Nobody"]}, {"source": "Nobody", "target": "Team"}):
            code, text = await refused(client, "merge_entities", **merged)
            assert (code, text) == ("entity_not_found", "Error: Entity 'Nobody' not found")
            async with gateway.client(key, "/mcp/x/memory,organize") as official:
                assert (await refused(official, "merge_entities", **merged))[1] == "Entity with name Nobody not found"

    @pytest.mark.proves("organize: create_entities")
    async def test_an_unknown_parent_is_refused_and_nothing_is_written(
        self, client: Client, db: Any, caller: Caller
    ) -> None:
        code, text = await refused(client, "create_entities", entities=[{**TEAM, "parentId": "Nobody"}])
        assert (code, text) == ("entity_not_found", "Error: Entity 'Nobody' not found")
        own, _ = await refused(client, "create_entities", entities=[{**TEAM, "parentId": "Team"}])
        assert own == "cycle"
        assert await revision_of(db, caller) == 0


class TestSelection:
    @pytest.mark.proves("enhanced-server: dialect")
    @pytest.mark.parametrize("path", ["/mcp/x/memory", "/mcp/x/memory,organize", "/mcp/x/all"])
    async def test_with_toolset_memory_the_official_shapes_are_kept_exactly(
        self, gateway: RunningGateway, key: str, client: Client, path: str
    ) -> None:
        await created_entities(client)
        edge = {"from": "Alice", "to": "Team", "relationType": "is in"}
        async with gateway.client(key, path) as official:
            tools = await listed(official)
            for name in NINE:
                assert tools[name].input_schema == definition(TOOLS[name]).input_schema
            assert (await answer(official, "create_relations", relations=[edge]))["relations"] == [edge]
            said = await answer(official, "read_graph")
        assert [entity.keys() for entity in said["entities"]] == [OFFICIAL_ENTITY, OFFICIAL_ENTITY]
        assert said["relations"] == [edge]

    async def test_a_key_confined_to_organize_always_gets_its_dialect(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller
    ) -> None:
        narrow = (await issue(caller, toolsets=("organize",))).secret
        async with gateway.client(narrow, "/mcp/x/all") as client:
            assert (await created_entities(client))[0]["importance"] == 7
            assert "memory://knowledge-graph" not in {each.uri for each in (await client.list_resources()).resources}

    def test_a_dialect_has_the_properties_of_its_tool(self) -> None:
        for tool in CATALOGUE:
            for dialect in tool.dialects:
                same = (dialect.name, dialect.read_only, dialect.destructive, dialect.idempotent)
                assert same == (tool.name, tool.read_only, tool.destructive, tool.idempotent)
                assert dialect.toolsets < tool.toolsets
        assert {tool.name for tool in CATALOGUE if tool.dialects} == {*NINE, "merge_entities", "search"}


class TestArchive:
    @pytest.mark.proves("enhanced-server: archived-is-hidden")
    @pytest.mark.parametrize("tool", SEARCHES)
    async def test_an_archived_entity_is_not_found(self, client: Client, tool: str) -> None:
        await created_entities(client)
        assert await found(client, tool) == ["Alice", "Team"]
        archived = await answer(client, "archive_entities", tags=["vip"])
        assert archived == {"archived": 1, "entityNames": ["Alice"]}
        assert await found(client, tool) == ["Team"]
        assert await found(client, tool, as_of="1") == ["Alice", "Team"]

    @pytest.mark.proves("organize: open_nodes", "enhanced-server: archived-is-hidden")
    async def test_an_archived_entity_is_opened_by_name_with_its_status(
        self, gateway: RunningGateway, key: str, client: Client
    ) -> None:
        await created_entities(client)
        await answer(client, "archive_entities", tags=["vip"])
        alice, team = (await answer(client, "open_nodes", names=["Alice", "Team"]))["entities"]
        assert alice["status"] == "archived"
        assert "status" not in team
        async with gateway.client(key) as official:  # that server knows no archive: the mark is ours
            assert [e["name"] for e in (await answer(official, "read_graph"))["entities"]] == ["Alice", "Team"]
            said = (await answer(official, "search_nodes", query="Alice"))["entities"]
            assert [entity.keys() for entity in said] == [{*OFFICIAL_ENTITY, "status"}]

    async def test_rarity_counts_only_entities_that_can_be_found(self, client: Client) -> None:
        """A word weighs ln(N / n): N does not count archived entities, with a filter or without."""
        animals = [{"name": name, "entityType": "animal", "importance": 1} for name in ("Cat", "Dog", "Eel", "Fox")]
        await answer(client, "create_entities", entities=animals)
        await answer(client, "add_tags", entityName="Cat", tags=["old"])
        assert await answer(client, "archive_entities", tags=["old"])
        for filters in ({}, {"minImportance": 1}):
            [hit] = (await answer(client, "search_nodes_ranked", query="dog", **filters))["results"]
            assert hit["score"] == pytest.approx(log(3) / 2)  # one of its two words; one of three that are found


async def test_tenants_are_isolated(
    gateway: RunningGateway, client: Client, issue: NewApiKey, new_tenant: NewTenant
) -> None:
    await created_entities(client)
    before = text_of(await client.call_tool("read_graph", {}))
    stranger = (await issue(operator_caller(await new_tenant()))).secret
    async with gateway.client(stranger, "/mcp/x/organize") as other:
        for name, arguments in SEARCHES.items():
            said = await answer(other, name, **arguments)
            assert not said.get("entities")
            assert not said.get("results")
        assert (await answer(other, "open_nodes", names=["Alice"]))["entities"] == []
        await answer(other, "delete_entities", entityNames=["Alice", "Team"])
        assert len(await created_entities(other)) == 2
        await answer(other, "delete_observations", deletions=[{"entityName": "Alice", "observations": ["Engineer"]}])
    assert text_of(await client.call_tool("read_graph", {})) == before
