"""Resources of graphs and nodes, their templates, and the completion of their names, in both wire revisions."""

import json
from typing import Any
from uuid import UUID

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, PromptReference, ResourceTemplateReference, TextResourceContents

from recollect.caller import Caller, Scope
from recollect_gateway.mcp_endpoint.prompts_and_resources import resources
from recollect_gateway.mcp_endpoint.prompts_and_resources.resource_uris import (
    GRAPH_TEMPLATE,
    GRAPHS,
    NODE_TEMPLATE,
    TOOL_TEMPLATE,
    graph_uri,
    node_uri,
)
from tests.support.gateway import NewApiKey, RunningGateway, answer

ALICE = {"name": "Alice", "entityType": "person", "observations": ["likes tea"]}
ODD_NAME = "a/b c%2Fd?é#🧠"
ODD = {"name": ODD_NAME, "entityType": "thing", "observations": []}


async def read(client: Client, uri: str) -> Any:
    [content] = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    assert (content.uri, content.mime_type) == (uri, "application/json")
    return json.loads(content.text)


async def refused(client: Client, uri: str) -> None:
    with pytest.raises(MCPError, match="Unknown resource") as error:
        await client.read_resource(uri)
    assert (error.value.error.code, error.value.error.data) == (INVALID_PARAMS, {"uri": uri})


async def completed(client: Client, typed: str, argument: str = "name_or_id", **chosen: str) -> list[str]:
    found = await client.complete(
        ResourceTemplateReference(uri=NODE_TEMPLATE), {"name": argument, "value": typed}, context_arguments=chosen
    )
    assert found.completion.has_more is False
    return found.completion.values


class TestReading:
    @pytest.mark.proves("memgraph: resource-list")
    async def test_graphs_are_listed_beside_the_official_resource(self, client: Client) -> None:
        await answer(client, "create_entities", graph="tea", entities=[ALICE])
        await answer(client, "create_entities", graph="coffee", entities=[ALICE])
        listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
        assert listed == [
            "memory://knowledge-graph",
            GRAPHS,
            graph_uri("coffee"),
            graph_uri("default"),
            graph_uri("tea"),
        ]
        templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        assert templates == [GRAPH_TEMPLATE, NODE_TEMPLATE, TOOL_TEMPLATE]

    @pytest.mark.proves("rules: resources")
    async def test_every_listed_resource_can_be_read(self, client: Client) -> None:
        await answer(client, "create_entities", entities=[ALICE])
        for resource in (await client.list_resources()).resources:
            assert await read(client, str(resource.uri))

    async def test_the_resource_of_all_graphs_equals_list_graphs(self, client: Client) -> None:
        await answer(client, "create_entities", graph="tea", entities=[ALICE])
        assert await read(client, GRAPHS) == await answer(client, "list_graphs")

    @pytest.mark.proves("rules: resources")
    async def test_the_resource_of_a_graph_is_its_schema(self, client: Client) -> None:
        await answer(client, "create_entities", graph="tea", entities=[ALICE])
        schema = await answer(client, "describe_schema", graph="tea")
        assert await read(client, graph_uri("tea")) == schema
        assert await read(client, graph_uri(schema["graph_id"])) == schema

    @pytest.mark.proves("rules: resources")
    async def test_the_resource_of_a_node_has_its_observations_and_relations(self, client: Client) -> None:
        await answer(client, "create_entities", entities=[ALICE, ODD])
        await answer(client, "create_relations", relations=[{"from": "Alice", "to": ODD_NAME, "relationType": "knows"}])
        told = await read(client, node_uri("default", "Alice"))
        assert (told["graph"], told["node"]["name"], told["node"]["kind"]) == ("default", "Alice", "person")
        assert told["node"]["observations"] == ["likes tea"]
        [relation] = told["relations"]
        assert (relation["type"], relation["direction"], relation["target"]["name"]) == (
            "knows",
            "outgoing",
            ODD_NAME,
        )
        assert told["more_relations"] is False
        assert await read(client, node_uri("default", told["node"]["id"])) == told

    async def test_a_name_may_contain_any_character(self, client: Client) -> None:
        await answer(client, "create_entities", entities=[ODD])
        assert (await read(client, node_uri("default", ODD_NAME)))["node"]["name"] == ODD_NAME

    async def test_the_relations_of_a_node_are_bounded_and_marked_as_cut(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(resources, "MAX_RELATIONS", 2)
        ends = [{"from": "Alice", "to": f"E{number}", "relationType": "knows"} for number in range(3)]
        await answer(client, "create_entities", entities=[ALICE])
        await answer(client, "create_relations", relations=ends)
        told = await read(client, node_uri("default", "Alice"))
        assert [relation["target"]["name"] for relation in told["relations"]] == ["E0", "E1"]
        assert told["more_relations"] is True

    async def test_resources_are_listed_in_pages_by_name(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(resources, "PAGE", 2)
        for name in ("a", "b", "c", "d"):
            await answer(client, "create_entities", graph=name, entities=[ALICE])
        listed: list[str] = []
        cursor = None
        while cursor is not None or not listed:
            page = await client.list_resources(cursor=cursor)
            listed += [resource.name for resource in page.resources]
            cursor = page.next_cursor
        assert listed == ["knowledge-graph", "graphs", "a", "b", "c", "d", "default"]

    async def test_other_uris_are_unknown(self, client: Client, subtests: pytest.Subtests) -> None:
        await answer(client, "create_entities", entities=[ALICE])
        for uri in [
            graph_uri("nowhere"),
            node_uri("default", "Nobody"),
            node_uri("nowhere", "Alice"),
            node_uri("default", "01890a5d-ac96-774b-bcce-b302099a8057"),
            graph_uri("no graph's name"),
            "recollect://graphs/default/nodes/",
            "recollect://graphs/default/edges/Alice",
            "recollect://graphs/%FF",
            "recollect://graphs/default/nodes/a%00b",
            f"recollect://graphs/default/nodes/{'x' * 10_000}",
            "recollect://other",
        ]:
            with subtests.test(uri[:100]):
                await refused(client, uri)

    async def test_a_malformed_cursor_is_refused(self, client: Client) -> None:
        with pytest.raises(MCPError, match="graph's name") as told:
            await client.list_resources(cursor="no graph's name")
        assert told.value.error.code == INVALID_PARAMS

    async def test_the_resource_of_a_tool_has_its_complete_schemas(
        self, client: Client, gateway: RunningGateway, key: str
    ) -> None:
        told = await read(client, "recollect://tools/search_graph")
        assert (
            told["inputSchema"]["properties"]["limit"]["maximum"]
            > told["inputSchema"]["properties"]["limit"]["default"]
        )
        assert told["outputSchema"]["properties"]
        await refused(client, "recollect://tools/nothing")
        async with gateway.client(key, "/mcp/x/agent") as agent:
            await refused(agent, "recollect://tools/search_graph")
            assert await read(agent, "recollect://tools/recall")


class TestAccess:
    async def test_a_confined_key_sees_its_graphs_only(
        self, client: Client, gateway: RunningGateway, issue: NewApiKey, caller: Caller
    ) -> None:
        for graph in ("tea", "coffee"):
            await answer(client, "create_entities", graph=graph, entities=[ALICE])
        ids = {graph["name"]: UUID(graph["id"]) for graph in (await read(client, GRAPHS))["graphs"]}
        narrow = (await issue(caller, graph_ids=(ids["tea"],))).secret
        async with gateway.client(narrow) as confined:
            names = [resource.name for resource in (await confined.list_resources()).resources]
            assert names == ["knowledge-graph", "graphs", "tea"]
            assert [graph["name"] for graph in (await read(confined, GRAPHS))["graphs"]] == ["tea"]
            assert await read(confined, node_uri("tea", "Alice"))
            for uri in (graph_uri("coffee"), node_uri("coffee", "Alice"), graph_uri("nowhere")):
                await refused(confined, uri)
            assert await completed(confined, "", argument="graph") == ["tea"]
            assert await completed(confined, "Al", graph="tea") == ["Alice"]
            assert await completed(confined, "Al", graph="coffee") == []

    async def test_a_key_without_read_access_sees_no_resources(
        self, client: Client, gateway: RunningGateway, issue: NewApiKey, caller: Caller
    ) -> None:
        await answer(client, "create_entities", entities=[ALICE])
        admin = await issue(caller, kind="admin", scopes=frozenset({Scope.TENANT_ADMIN}))
        jobs = await issue(caller, toolsets=("admin",))
        for key in (admin, jobs):
            async with gateway.client(key.secret, "/mcp/x/all") as other:
                assert (await other.list_resources()).resources == []
                templates = (await other.list_resource_templates()).resource_templates
                assert [each.uri_template for each in templates] == [TOOL_TEMPLATE]
                assert await completed(other, "") == []
                for uri in ("memory://knowledge-graph", GRAPHS, graph_uri("default"), node_uri("default", "Alice")):
                    await refused(other, uri)

    async def test_a_read_only_key_reads_resources(
        self, client: Client, gateway: RunningGateway, issue: NewApiKey, caller: Caller
    ) -> None:
        await answer(client, "create_entities", entities=[ALICE])
        reader = await issue(caller, scopes=frozenset({Scope.MEMORY_READ}))
        async with gateway.client(reader.secret) as other:
            assert await read(other, node_uri("default", "Alice"))


class TestCompletion:
    @pytest.mark.proves("rules: completion")
    async def test_names_of_nodes_are_completed_in_any_case_and_without_accents(self, client: Client) -> None:
        names = ("Alice", "albert", "Al", "Bob", "a%b", "ÅLand", "Ålesund")
        entities = [{"name": name, "entityType": "t", "observations": []} for name in names]
        await answer(client, "create_entities", entities=entities)
        await answer(client, "create_entities", graph="other", entities=[ALICE])
        assert sorted(await completed(client, "aL")) == ["Al", "Alice", "albert", "ÅLand", "Ålesund"]
        assert await completed(client, "a%") == ["a%b"]
        assert sorted(await completed(client, "ål")) == ["Al", "Alice", "albert", "ÅLand", "Ålesund"]
        assert sorted(await completed(client, "")) == sorted(names)
        assert await completed(client, "al", graph="other") == ["Alice"]
        assert await completed(client, "al", graph="nowhere") == []

    async def test_deleted_nodes_and_placeholders_are_left_out(self, client: Client) -> None:
        await answer(client, "create_entities", entities=[ALICE, {**ALICE, "name": "Alien"}])
        await answer(client, "delete_entities", entityNames=["Alien"])
        await answer(client, "relate", triples=[{"subject": "Alice", "predicate": "knows", "object": "Alma"}])
        assert await completed(client, "al") == ["Alice"]

    async def test_the_first_hundred_completions_are_returned(self, client: Client) -> None:
        entities = [{"name": f"E{number:03}", "entityType": "t", "observations": []} for number in range(101)]
        await answer(client, "create_entities", entities=entities)
        found = await client.complete(
            ResourceTemplateReference(uri=NODE_TEMPLATE), {"name": "name_or_id", "value": "e"}
        )
        assert found.completion.values == [f"E{number:03}" for number in range(100)]
        assert found.completion.has_more is True

    @pytest.mark.proves("rules: completion")
    async def test_names_of_graphs_are_completed_for_templates_and_prompts(self, client: Client) -> None:
        for graph in ("Tea", "tee", "coffee"):
            await answer(client, "create_entities", graph=graph, entities=[ALICE])
        assert await completed(client, "te", argument="graph") == ["Tea", "tee"]
        found = await client.complete(PromptReference(name="end_of_session"), {"name": "graph", "value": "TE"})
        assert found.completion.values == ["Tea", "tee"]

    async def test_names_of_offered_tools_are_completed(self, gateway: RunningGateway, key: str) -> None:
        async with gateway.client(key, "/mcp") as client:
            found = await client.complete(ResourceTemplateReference(uri=TOOL_TEMPLATE), {"name": "tool", "value": "RE"})
        assert sorted(found.completion.values) == ["recall", "relate", "remember", "revise"]
        assert (found.completion.total, found.completion.has_more) == (4, False)

    @pytest.mark.parametrize(
        ("ref", "argument", "value"),
        [
            (ResourceTemplateReference(uri="recollect://other/{x}"), "x", ""),
            (ResourceTemplateReference(uri=GRAPH_TEMPLATE), "name_or_id", ""),
            (PromptReference(name="nothing"), "graph", ""),
            (PromptReference(name="end_of_session"), "question", ""),
            (ResourceTemplateReference(uri=NODE_TEMPLATE), "name_or_id", "x" * 513),
            (ResourceTemplateReference(uri=NODE_TEMPLATE), "name_or_id", "a\x00"),
        ],
    )
    async def test_an_unknown_reference_or_argument_is_refused(
        self, client: Client, ref: Any, argument: str, value: str
    ) -> None:
        with pytest.raises(MCPError) as told:
            await client.complete(ref, {"name": argument, "value": value})
        assert told.value.error.code == INVALID_PARAMS
