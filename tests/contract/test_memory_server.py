"""Toolset `memory` answers as the official memory server does.

Source of truth: https://github.com/modelcontextprotocol/servers, src/memory/index.ts. Every test speaks both wire
revisions through the official client, which also holds `structuredContent` against `outputSchema`.
"""

import json
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, TextResourceContents

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.tools.memory import read_graph
from tests.contract.conftest import ConnectedClient
from tests.support.gateway import (
    LEGACY,
    MODES,
    RunningGateway,
    answer,
    error_of,
    revision_of,
    rpc_answer,
    rpc_headers,
    serving,
    text_of,
)

ALICE = {"name": "Alice", "entityType": "person", "observations": ["likes tea", "lives in Oslo"]}
ACME = {"name": "Acme", "entityType": "company", "observations": []}
WORKS_AT = {"from": "Alice", "to": "Acme", "relationType": "works_at"}
EMPTY: dict[str, Any] = {"entities": [], "relations": []}


@pytest.fixture(params=MODES)
async def client(request: pytest.FixtureRequest, connected: ConnectedClient, key: str) -> Client:
    client = await connected(key, "/mcp/x/memory", request.param)
    assert client.protocol_version == request.param
    return client


async def remember_alice(client: Client) -> None:
    await answer(client, "create_entities", entities=[ALICE, ACME])
    await answer(client, "create_relations", relations=[WORKS_AT])


class TestCreateEntities:
    @pytest.mark.proves("memory: create_entities", "memory-server: arrays-in-the-text")
    async def test_new_entities_are_returned_as_an_array_in_the_text(self, client: Client) -> None:
        result = await client.call_tool("create_entities", {"entities": [ALICE, ACME]})
        assert not result.is_error
        assert result.structured_content == {"entities": [ALICE, ACME]}
        assert text_of(result) == json.dumps([ALICE, ACME], separators=(",", ":"))

    @pytest.mark.proves("memory-server: existing-entities-are-skipped")
    async def test_known_entities_are_skipped_and_unchanged(self, client: Client) -> None:
        await answer(client, "create_entities", entities=[ALICE])
        other = ALICE | {"entityType": "cat", "observations": ["purrs"]}
        assert await answer(client, "create_entities", entities=[other, ACME]) == {"entities": [ACME]}
        assert await answer(client, "read_graph") == {"entities": [ALICE, ACME], "relations": []}

    @pytest.mark.proves("memory-server: existing-entities-are-skipped")
    async def test_without_new_entities_the_text_is_an_empty_array(self, client: Client) -> None:
        await answer(client, "create_entities", entities=[ALICE])
        result = await client.call_tool("create_entities", {"entities": [ALICE]})
        assert text_of(result) == "[]"
        assert result.structured_content == {"entities": []}

    @pytest.mark.proves("enhanced-server: create-with-tags-and-importance")
    async def test_tags_and_importance_are_accepted_and_not_returned(self, client: Client) -> None:
        given = ALICE | {"tags": ["VIP"], "importance": 7.5}
        assert await answer(client, "create_entities", entities=[given]) == {"entities": [ALICE]}
        found = await answer(client, "search_nodes", query="", tags=["vip"], minImportance=7.5, maxImportance=7.5)
        assert found == {"entities": [ALICE], "relations": []}
        assert await answer(client, "search_nodes", query="Alice", minImportance=8) == EMPTY

    async def test_an_empty_type_is_refused(self, client: Client) -> None:
        plain = {"name": "Plain", "entityType": "", "observations": []}
        result = await client.call_tool("create_entities", {"entities": [plain]})
        assert result.is_error
        assert "entities.0.entityType" in text_of(result)
        assert await answer(client, "open_nodes", names=["Plain"]) == EMPTY


class TestCreateRelations:
    @pytest.mark.proves("memory: create_relations", "memory-server: arrays-in-the-text")
    async def test_new_relations_are_returned_as_an_array_in_the_text(self, client: Client) -> None:
        await answer(client, "create_entities", entities=[ALICE, ACME])
        result = await client.call_tool("create_relations", {"relations": [WORKS_AT]})
        assert result.structured_content == {"relations": [WORKS_AT]}
        assert text_of(result) == json.dumps([WORKS_AT], separators=(",", ":"))

    @pytest.mark.proves("memory-server: duplicate-relations-are-skipped")
    async def test_known_relations_are_skipped(self, client: Client) -> None:
        await remember_alice(client)
        other = WORKS_AT | {"relationType": "owns"}
        assert await answer(client, "create_relations", relations=[WORKS_AT, other]) == {"relations": [other]}

    @pytest.mark.proves("memory-server: deferred-integrity")
    async def test_entities_need_not_exist_yet(self, client: Client) -> None:
        assert await answer(client, "create_relations", relations=[WORKS_AT]) == {"relations": [WORKS_AT]}
        assert await answer(client, "read_graph") == {"entities": [], "relations": [WORKS_AT]}
        assert await answer(client, "search_nodes", query="Alice") == EMPTY
        assert await answer(client, "open_nodes", names=["Alice"]) == EMPTY
        assert await answer(client, "create_entities", entities=[ALICE]) == {"entities": [ALICE]}
        assert await answer(client, "open_nodes", names=["Alice"]) == {"entities": [ALICE], "relations": [WORKS_AT]}


class TestAddObservations:
    @pytest.mark.proves(
        "memory: add_observations", "memory-server: arrays-in-the-text", "crate: duplicate-observations-are-skipped"
    )
    async def test_new_observations_are_returned_by_entity(self, client: Client) -> None:
        await answer(client, "create_entities", entities=[ALICE, ACME])
        wanted = [
            {"entityName": "Acme", "contents": ["makes anvils"]},
            {"entityName": "Alice", "contents": ["likes tea", "plays chess"]},
        ]
        result = await client.call_tool("add_observations", {"observations": wanted})
        added = [
            {"entityName": "Acme", "addedObservations": ["makes anvils"]},
            {"entityName": "Alice", "addedObservations": ["plays chess"]},
        ]
        assert result.structured_content == {"results": added}
        assert text_of(result) == json.dumps(added, separators=(",", ":"))
        opened = await answer(client, "open_nodes", names=["Alice"])
        assert opened["entities"][0]["observations"] == ["likes tea", "lives in Oslo", "plays chess"]

    @pytest.mark.proves("memory-server: unknown-entity-is-an-error")
    async def test_an_unknown_entity_is_refused_and_nothing_is_written(
        self, client: Client, db: Database, caller: Caller
    ) -> None:
        await answer(client, "create_entities", entities=[ALICE])
        before = await revision_of(db, caller)
        wanted = [{"entityName": "Alice", "contents": ["new"]}, {"entityName": "Nobody", "contents": ["new"]}]
        result = await client.call_tool("add_observations", {"observations": wanted})
        assert text_of(result) == "Entity with name Nobody not found"
        assert error_of(result)["code"] == "entity_not_found"
        assert await revision_of(db, caller) == before
        assert (await answer(client, "open_nodes", names=["Alice"]))["entities"] == [ALICE]

    async def test_a_placeholder_counts_as_an_unknown_entity(self, client: Client) -> None:
        await answer(client, "create_relations", relations=[WORKS_AT])
        result = await client.call_tool("add_observations", {"observations": [{"entityName": "Acme", "contents": []}]})
        assert text_of(result) == "Entity with name Acme not found"


class TestDeletions:
    @pytest.mark.proves(
        "memory: delete_entities",
        "memory-server: deletion-takes-relations",
        "memory-server: deletion-of-nothing-succeeds",
    )
    async def test_entities_are_deleted_with_their_relations(self, client: Client) -> None:
        await remember_alice(client)
        result = await client.call_tool("delete_entities", {"entityNames": ["Alice"]})
        assert text_of(result) == "Entities deleted successfully"
        assert result.structured_content == {"success": True, "message": "Entities deleted successfully"}
        assert await answer(client, "read_graph") == {"entities": [ACME], "relations": []}

    @pytest.mark.proves("memory-server: deletion-of-relation-only-names")
    async def test_a_placeholder_is_deleted_with_its_relations(self, client: Client) -> None:
        await answer(client, "create_entities", entities=[ALICE])
        await answer(client, "create_relations", relations=[WORKS_AT])
        await answer(client, "delete_entities", entityNames=["Acme"])
        assert await answer(client, "read_graph") == {"entities": [ALICE], "relations": []}

    async def test_a_deleted_entity_can_be_created_again(self, client: Client) -> None:
        await remember_alice(client)
        await answer(client, "delete_entities", entityNames=["Alice"])
        bare = ALICE | {"observations": []}
        assert await answer(client, "create_entities", entities=[bare]) == {"entities": [bare]}
        assert await answer(client, "open_nodes", names=["Alice"]) == {"entities": [bare], "relations": []}

    @pytest.mark.proves("memory: delete_observations", "memory-server: deletion-of-nothing-succeeds")
    async def test_observations_are_deleted(self, client: Client) -> None:
        await answer(client, "create_entities", entities=[ALICE])
        deletions = [
            {"entityName": "Alice", "observations": ["likes tea"]},
        ]
        result = await client.call_tool("delete_observations", {"deletions": deletions})
        assert text_of(result) == "Observations deleted successfully"
        assert result.structured_content == {"success": True, "message": "Observations deleted successfully"}
        [alice] = (await answer(client, "open_nodes", names=["Alice"]))["entities"]
        assert alice["observations"] == ["lives in Oslo"]

    @pytest.mark.proves("memory: delete_relations", "memory-server: deletion-of-nothing-succeeds")
    async def test_relations_are_deleted(self, client: Client) -> None:
        await remember_alice(client)
        gone = [WORKS_AT]
        result = await client.call_tool("delete_relations", {"relations": gone})
        assert text_of(result) == "Relations deleted successfully"
        assert result.structured_content == {"success": True, "message": "Relations deleted successfully"}
        assert await answer(client, "read_graph") == {"entities": [ALICE, ACME], "relations": []}


class TestReading:
    @pytest.mark.proves("memory: read_graph")
    async def test_read_graph_returns_the_whole_graph_in_the_text(self, client: Client) -> None:
        await remember_alice(client)
        whole = {"entities": [ALICE, ACME], "relations": [WORKS_AT]}
        result = await client.call_tool("read_graph", {})
        assert result.structured_content == whole
        assert text_of(result) == json.dumps(whole, separators=(",", ":"))

    @pytest.mark.proves("memory-server: empty-graph")
    async def test_an_unknown_graph_reads_as_empty(self, client: Client) -> None:
        for tool, arguments in (("read_graph", {}), ("search_nodes", {"query": "a"}), ("open_nodes", {"names": ["a"]})):
            assert await answer(client, tool, **arguments) == EMPTY

    @pytest.mark.proves("crate: read-graph-pages")
    async def test_each_page_has_the_next_offset(self, client: Client) -> None:
        names = [f"e{number}" for number in range(5)]
        entities = [{"name": name, "entityType": "t", "observations": []} for name in names]
        await answer(client, "create_entities", entities=entities)
        read: list[str] = []
        offset: int | None = 0
        while offset is not None:
            page = await answer(client, "read_graph", offset=offset, limit=2)
            read += [entity["name"] for entity in page["entities"]]
            offset = page.get("nextOffset")
        assert read == names

    @pytest.mark.proves("crate: read-graph-of-one-type")
    async def test_a_type_filter_keeps_only_relations_with_both_ends_in_the_page(self, client: Client) -> None:
        bob = ALICE | {"name": "Bob"}
        await remember_alice(client)
        await answer(client, "create_entities", entities=[bob])
        knows = {"from": "Alice", "to": "Bob", "relationType": "knows"}
        await answer(client, "create_relations", relations=[knows])
        page = await answer(client, "read_graph", entityType="person")
        assert page == {"entities": [ALICE, bob], "relations": [knows]}

    @pytest.mark.proves(
        "memory: search_nodes", "memory-server: literal-substring-search", "memory-server: relations-of-either-end"
    )
    @pytest.mark.parametrize("query", ["alice", "PERSON", "LIVES IN os"])
    async def test_search_covers_name_type_and_observations_in_any_case(self, client: Client, query: str) -> None:
        await remember_alice(client)
        found = await answer(client, "search_nodes", query=query)
        assert found == {"entities": [ALICE], "relations": [WORKS_AT]}

    @pytest.mark.proves("crate: search-nodes-ranking")
    async def test_search_ranks_names_then_types_then_observations_and_short_names_first(self, client: Client) -> None:
        """The crate ranks by BM25 over names, then by observations."""
        wanted = ["tea", "teapot", "tea ceremony", "kettle", "Ada"]
        about = {"kettle": ("tea thing", []), "Ada": ("person", ["likes tea"])}
        for name in ("Ada", "tea ceremony", "kettle", "teapot", "tea"):
            kind, observations = about.get(name, ("thing", []))
            entity = {"name": name, "entityType": kind, "observations": observations}
            await answer(client, "create_entities", entities=[entity])
        found = await answer(client, "search_nodes", query="TEA")
        assert [entity["name"] for entity in found["entities"]] == wanted
        page = await answer(client, "search_nodes", query="tea", offset=1, limit=2)
        assert [entity["name"] for entity in page["entities"]] == wanted[1:3]

    @pytest.mark.proves("memory-server: literal-substring-search")
    @pytest.mark.parametrize("query", ["%", "_", "\\", "a%e", "A_ice", "'; --"])
    async def test_search_takes_every_character_literally(self, client: Client, query: str) -> None:
        await remember_alice(client)
        assert await answer(client, "search_nodes", query=query) == EMPTY
        odd = {"name": f"<{query}>", "entityType": "odd", "observations": []}
        await answer(client, "create_entities", entities=[odd])
        assert await answer(client, "search_nodes", query=query) == {"entities": [odd], "relations": []}

    @pytest.mark.proves("memory: open_nodes", "memory-server: relations-of-either-end", "crate: open-nodes-order")
    async def test_open_nodes_keeps_the_requested_order_and_returns_relations_of_either_end(
        self, client: Client
    ) -> None:
        await remember_alice(client)
        opened = await answer(client, "open_nodes", names=["Acme", "Nobody", "Alice", "Acme"])
        assert opened == {"entities": [ACME, ALICE], "relations": [WORKS_AT]}
        assert await answer(client, "open_nodes", names=["Acme"]) == {"entities": [ACME], "relations": [WORKS_AT]}

    async def test_texts_are_returned_as_they_were_given(self, client: Client) -> None:
        odd = {
            "name": " Ünï\tcødé 🧠 ",
            "entityType": "\u202eé\u0301",
            "observations": ["a\u2028b\x85c\r\nd", "a\\b\"c'", "é", "e\u0301"],
        }
        assert await answer(client, "create_entities", entities=[odd]) == {"entities": [odd]}
        assert await answer(client, "open_nodes", names=[odd["name"]]) == {"entities": [odd], "relations": []}

    @pytest.mark.proves("rules: no-tenant-argument")
    async def test_graphs_are_separate_memories(self, client: Client) -> None:
        await answer(client, "create_entities", entities=[ALICE])
        await answer(client, "create_entities", graph="other", entities=[ACME])
        assert await answer(client, "read_graph", graph="other") == {"entities": [ACME], "relations": []}
        assert await answer(client, "read_graph") == {"entities": [ALICE], "relations": []}


class TestResource:
    @pytest.mark.proves("memory-server: resource")
    async def test_the_resource_is_the_whole_graph(self, client: Client) -> None:
        await remember_alice(client)
        resource = (await client.list_resources()).resources[0]
        assert (resource.uri, resource.name) == ("memory://knowledge-graph", "knowledge-graph")
        assert resource.mime_type == "application/json"
        [content] = (await client.read_resource("memory://knowledge-graph")).contents
        assert isinstance(content, TextResourceContents)
        assert (content.uri, content.mime_type) == ("memory://knowledge-graph", "application/json")
        assert content.text == json.dumps({"entities": [ALICE, ACME], "relations": [WORKS_AT]}, indent=2)

    async def test_other_resources_are_unknown(self, client: Client) -> None:
        with pytest.raises(MCPError, match="Unknown resource"):
            await client.read_resource("memory://other")

    async def test_the_resource_is_bounded_like_a_reply(self, client: Client, settings: Settings, key: str) -> None:
        await remember_alice(client)
        with serving(settings.model_copy(update={"max_reply_bytes": 100})) as gateway:
            async with gateway.client(key, revision=client.protocol_version) as small:
                with pytest.raises(MCPError, match="a reply may have at most") as refused:
                    await small.read_resource("memory://knowledge-graph")
        assert refused.value.error.code == INVALID_PARAMS

    async def test_an_internal_error_does_not_reveal_its_message(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def fail(*_: Any) -> None:
            raise LookupError("relation secret does not exist")

        monkeypatch.setattr(read_graph, "read_graph", fail)
        with pytest.raises(MCPError, match="went wrong on our side") as error:
            await client.read_resource("memory://knowledge-graph")
        assert (error.value.error.code, error.value.error.data) == (INTERNAL_ERROR, None)

    @pytest.mark.parametrize("revision", MODES)
    async def test_the_resource_is_offered_only_with_the_toolset(
        self, gateway: RunningGateway, key: str, revision: str
    ) -> None:
        async with gateway.client(key, "/mcp", revision=revision) as client:
            assert "memory://knowledge-graph" not in {each.uri for each in (await client.list_resources()).resources}
            with pytest.raises(MCPError, match="Unknown resource"):
                await client.read_resource("memory://knowledge-graph")


@pytest.mark.proves("crate: http-and-revisions")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY])
async def test_clients_of_older_revisions_can_call(gateway: RunningGateway, key: str, revision: str) -> None:
    """Every revision with a handshake that the SDK serves, as plain JSON-RPC."""
    hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    async with gateway.http(key, **rpc_headers(revision)) as http:
        del http.headers["MCP-Protocol-Version"]  # not known before the handshake
        path = "/mcp/x/memory"
        greeted = await http.post(path, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        assert greeted.status_code == 200
        welcome = rpc_answer(greeted.text)["result"]
        assert welcome["protocolVersion"] == revision
        assert welcome["serverInfo"]["name"] == "recollect"
        if revision >= "2025-06-18":
            http.headers["MCP-Protocol-Version"] = revision
        done = await http.post(path, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert done.status_code == 202
        call = {"name": "create_entities", "arguments": {"entities": [ALICE]}}
        called = await http.post(path, json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
        assert called.status_code == 200
        result = rpc_answer(called.text)["result"]
        assert json.loads(result["content"][0]["text"]) == [ALICE]
