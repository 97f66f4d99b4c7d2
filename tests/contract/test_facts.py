"""Toolset `facts` follows the graph-memory contract in shapes, error codes and limits, and is isolated by tenant."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

import asyncpg
import httpx2
import pytest
from mcp_types import CallToolResult

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.errors import Conflict, ErrorCode, Forbidden, InvalidInput, NotFound, TooLarge, Unavailable
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from recollect_gateway.mcp_endpoint.tools.facts.errors import render_error
from tests.conftest import NewTenant
from tests.contract.examples import EXAMPLES
from tests.support.gateway import NewApiKey, RunningGateway, revision_of, rpc_headers, serving
from tests.support.memories import Agent

PATH = "/mcp/x/facts"
DAY = 86_400_000

CONTRACT = {
    "create_node": "text node_type owner_id source metadata status ttl_days expires_at auto_link semantic_threshold "
    "links",
    "get_node": "node_id owner_id",
    "update_node": "node_id owner_id text source metadata status ttl_days expires_at entity_type versioning",
    "delete_node": "node_id owner_id",
    "get_node_change_history": "node_id owner_id",
    "search": "query owner_id limit node_types status similarity_threshold include_outdated",
    "find_similar": "fact_id owner_id threshold limit include_relations",
    "mark_outdated": "fact_id owner_id reason",
    "create_triplet": "subject predicate object_value owner_id metadata fact_id",
    "search_triplets": "subject predicate object_value owner_id limit",
    "create_relation": "from_id to_id relation_type owner_id properties",
    "delete_relation": "from_id to_id owner_id relation_type",
    "get_context": "node_id owner_id depth max_nodes",
    "get_trace": "from_id to_id owner_id max_paths",
    "create_summary_fact": "fact_ids summary_text owner_id",
    "test_connection": "",
    "get_stats": "owner_id",
    "health_check": "",
}
"""Every tool of the contract with its arguments."""

ATTRIBUTES = {"id", "node_type", "owner_id", "text", "metadata", "created_at", "source", "status"}
"""The attributes of every node."""


class FactsClient:
    """Calls tools, and returns the envelope, which the text repeats."""

    def __init__(self, gateway: RunningGateway, http: httpx2.AsyncClient) -> None:
        self.gateway, self.http = gateway, http

    async def envelope(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.gateway.call(self.http, tool, arguments, path=PATH)
        envelope: dict[str, Any] = result["structuredContent"]
        assert json.loads(result["content"][0]["text"]) == envelope
        assert envelope["success"] is not result["isError"]
        return envelope

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        envelope = await self.envelope(tool, **arguments)
        assert envelope["success"], envelope
        return envelope

    async def refusal(self, tool: str, **arguments: Any) -> tuple[str, str]:
        """The code and the message of the error."""
        envelope = await self.envelope(tool, **arguments)
        assert envelope.keys() == {"success", "error", "error_code", "code"}
        assert envelope["error_code"] == envelope["code"]
        return envelope["code"], envelope["error"]

    async def fact(self, text: str, **fields: Any) -> str:
        node: str = (await self.call("create_node", text=text, **fields))["node"]["id"]
        return node


@pytest.fixture
async def client(gateway: RunningGateway, key: str) -> AsyncIterator[FactsClient]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield FactsClient(gateway, http)


@pytest.fixture
async def stranger(gateway: RunningGateway, issue: NewApiKey, new_tenant: NewTenant) -> AsyncIterator[FactsClient]:
    """A client of another tenant."""
    issued = await issue(operator_caller(await new_tenant()))
    async with gateway.http(issued.secret, **rpc_headers()) as http:
        yield FactsClient(gateway, http)


@pytest.mark.proves("graph-contract: arguments")
def test_every_tool_of_the_contract_accepts_its_arguments() -> None:
    facts = [tool for tool in CATALOGUE if "facts" in tool.toolsets]
    assert [tool.name for tool in facts] == list(CONTRACT)
    for tool in facts:
        taken = set(tool.arguments.__struct_encode_fields__)
        assert taken >= set(CONTRACT[tool.name].split()), tool.name


class TestNodes:
    @pytest.mark.proves(
        "facts: create_node",
        "facts: get_node",
        "graph-contract: envelope",
        "graph-contract: milliseconds",
        "graph-contract: common-attributes",
        "graph-contract: owner-id",
        "graph-contract: memory-not-found",
    )
    async def test_a_fact_is_created_and_read(self, client: FactsClient) -> None:
        made = await client.call(
            "create_node", text="Bees make honey", metadata={"page": 1}, ttl_days=2, source="book", owner_id="bees"
        )
        node = made["node"]
        assert made.keys() == {"success", "node"}
        assert node.keys() == ATTRIBUTES | {"ttl_days", "expires_at"}
        assert node | {"id": "", "created_at": 0, "expires_at": 0} == {
            "id": "",
            "node_type": "Fact",
            "owner_id": "bees",
            "text": "Bees make honey",
            "metadata": {"page": 1},
            "created_at": 0,
            "source": "book",
            "status": "active",
            "ttl_days": 2.0,
            "expires_at": 0,
        }
        assert type(node["created_at"]) is int
        assert abs(node["expires_at"] - node["created_at"] - 2 * DAY) <= 1
        assert (await client.call("get_node", node_id=node["id"], owner_id="bees"))["node"] == node
        assert await client.refusal("get_node", node_id=node["id"]) == (
            "memory_not_found",
            f"There is no node {node['id']}.",
        )

    @pytest.mark.proves("graph-contract: create-known-node")
    async def test_new_attributes_of_a_known_fact_make_a_new_version(self, client: FactsClient) -> None:
        first = await client.call("create_node", text="Bees dance", metadata={"page": 1}, source="book")
        again = await client.call("create_node", text="Bees dance")
        assert again == first
        said = {"metadata": {"page": 2}, "source": "film", "ttl_days": 2, "at": 1_000}
        told = await client.call("create_node", text="Bees dance", **said)
        node = told["node"]
        assert (told["updated"], node["id"], node["created_at"]) == (
            True,
            first["node"]["id"],
            first["node"]["created_at"],
        )
        assert (node["metadata"], node["source"], node["ttl_days"], node["at"]) == ({"page": 2}, "film", 2.0, 1_000)
        assert node["expires_at"] > node["created_at"]
        versions = (await client.call("get_node_change_history", node_id=node["id"]))["versions"]
        assert [version["source"] for version in versions] == ["film", "book"]
        assert await client.call("create_node", text="Bees dance", metadata={"page": 2}) == {
            "success": True,
            "node": node,
        }
        emptied = await client.call("create_node", text="Bees dance", metadata={})
        assert (emptied["updated"], emptied["node"]["metadata"], emptied["node"]["source"]) == (True, {}, "film")

    @pytest.mark.proves("graph-contract: create-known-node")
    async def test_new_attributes_of_a_known_entity_make_a_new_version(self, client: FactsClient) -> None:
        entity = {"text": "Alice", "node_type": "Entity"}
        first = await client.call("create_node", **entity)
        assert await client.call("create_node", **entity) == first
        said = {"metadata": {"page": 2}, "source": "film", "status": "outdated", "thread": "monday"}
        told = await client.call("create_node", **entity, entity_type="PERSON", expires_at=4_000_000_000_123, **said)
        node = told["node"]
        assert (told["updated"], node["id"], node["type"]) == (True, first["node"]["id"], "PERSON")
        assert {name: node[name] for name in said} | {"expires_at": node["expires_at"]} == said | {
            "expires_at": 4_000_000_000_123
        }

    async def test_the_whitelist_applies_to_a_known_entity(self, client: FactsClient, gateway: RunningGateway) -> None:
        graph = {"name": "people", "kind_whitelist": ["PERSON"]}
        await gateway.call(client.http, "create_graph", graph, path="/mcp/x/lineage")
        entity = {"text": "Alice", "node_type": "Entity", "owner_id": "people"}
        await client.call("create_node", **entity, entity_type="PERSON")
        told = await client.call("create_node", **entity, entity_type="PERSON", metadata={"a": 1})
        assert told["updated"]
        code, said = await client.refusal("create_node", **entity, entity_type="CAT")
        assert (code, said.partition(":")[0]) == ("memory_validation_error", "entity_type")

    @pytest.mark.proves("graph-contract: milliseconds", "graph-contract: expires-at")
    async def test_expires_at_wins_over_ttl_days(self, client: FactsClient) -> None:
        made = await client.call("create_node", text="x", ttl_days=1, expires_at=4_000_000_000_123)
        assert (made["node"]["ttl_days"], made["node"]["expires_at"]) == (1.0, 4_000_000_000_123)

    @pytest.mark.proves("facts: create_node")
    async def test_the_text_of_an_entity_is_its_name_and_entity_type_its_kind(
        self, client: FactsClient, gateway: RunningGateway
    ) -> None:
        made = (await client.call("create_node", text="Alice", node_type="Entity"))["node"]
        assert made.keys() == ATTRIBUTES
        changed = (await client.call("update_node", node_id=made["id"], entity_type="PERSON"))["node"]
        assert (changed["text"], changed["type"]) == ("Alice", "PERSON")
        opened = await gateway.call(client.http, "open_nodes", {"names": ["Alice"]})
        assert opened["structuredContent"]["entities"][0]["entityType"] == "PERSON"

    async def test_an_entity_of_another_toolset_is_a_node_too(
        self, client: FactsClient, gateway: RunningGateway
    ) -> None:
        entity = {"name": "Alice", "entityType": "person", "observations": ["likes tea"]}
        await gateway.call(client.http, "create_entities", {"entities": [entity]})
        [found] = (await client.call("search", query="Who likes tea?"))["entities"]
        assert (found["text"], found["type"], found["matches"]) == ("Alice", "person", ["likes tea"])
        assert (await client.call("get_node", node_id=found["id"]))["node"]["source"] == "mcp"

    @pytest.mark.proves(
        "facts: update_node",
        "facts: delete_node",
        "facts: get_node_change_history",
        "graph-contract: update-node",
        "graph-contract: history",
    )
    async def test_history_is_always_kept_and_versioning_returns_the_version(self, client: FactsClient) -> None:
        node_id = await client.fact("one")
        assert "version" not in (await client.call("update_node", node_id=node_id, text="two"))["node"]
        told = (await client.call("update_node", node_id=node_id, text="three", versioning=True))["node"]
        assert told["version"] == 3
        await client.call("delete_node", node_id=node_id)
        versions = (await client.call("get_node_change_history", node_id=node_id))["versions"]
        assert [(v["version"], v["text"], v.get("deleted", False), v["is_current"]) for v in versions] == [
            (4, "three", True, False),
            (3, "three", False, False),
            (2, "two", False, False),
            (1, "one", False, False),
        ]
        page = await client.call("get_node_change_history", node_id=node_id, offset=1, limit=2)
        assert ([v["version"] for v in page["versions"]], page["next_offset"]) == ([3, 2], 3)
        assert (await client.refusal("delete_node", node_id=node_id))[0] == "memory_not_found"

    @pytest.mark.proves("facts: mark_outdated", "graph-contract: search", "graph-contract: mark-outdated")
    async def test_mark_outdated_hides_a_fact_unless_it_is_requested(self, client: FactsClient) -> None:
        node_id = await client.fact("Bees make honey")
        node = (await client.call("mark_outdated", fact_id=node_id, reason="bees left"))["node"]
        assert (node["status"], node["metadata"], node["reason"]) == ("outdated", {}, "bees left")
        assert (await client.call("search", query="honey"))["results"] == []
        for given in ({"include_outdated": True}, {"status": "outdated"}):
            assert [one["id"] for one in (await client.call("search", query="honey", **given))["facts"]] == [node_id]

    async def test_a_reason_does_not_change_metadata_and_stays_in_history(self, client: FactsClient) -> None:
        node_id = await client.fact("Bees make honey", metadata={"reason": "mine"})
        await client.call("mark_outdated", fact_id=node_id, reason="bees left")
        node = (await client.call("update_node", node_id=node_id, status="active"))["node"]
        assert (node["metadata"], "reason" in node) == ({"reason": "mine"}, False)
        versions = (await client.call("get_node_change_history", node_id=node_id))["versions"]
        assert [version.get("reason") for version in versions] == [None, "bees left", None]

    @pytest.mark.proves("agent-toolset: expiry-can-be-removed")
    async def test_expires_at_of_zero_removes_the_expiry(self, client: FactsClient) -> None:
        node_id = await client.fact("Bees make honey", ttl_days=1)
        node = (await client.call("update_node", node_id=node_id, source="book", ttl_days=None))["node"]
        assert (node["ttl_days"], node["source"]) == (1, "book")
        node = (await client.call("update_node", node_id=node_id, source=""))["node"]
        assert node["source"] == "mcp"  # As of one that tells none.
        node = (await client.call("update_node", node_id=node_id, expires_at=0))["node"]
        assert ("ttl_days" in node, "expires_at" in node) == (False, False)
        assert (await client.refusal("update_node", node_id=node_id, ttl_days=0))[0] == "memory_validation_error"
        made = (await client.call("create_node", text="Bees make wax", ttl_days=1, expires_at=0))["node"]
        assert ("ttl_days" in made, "expires_at" in made) == (False, False)

    async def test_the_past_is_read_as_it_was(self, client: FactsClient) -> None:
        node_id = await client.fact("one")
        await client.call("update_node", node_id=node_id, text="two")
        assert (await client.call("get_node", node_id=node_id, as_of="1"))["node"]["text"] == "one"
        assert [one["text"] for one in (await client.call("search", query="one", as_of="1"))["facts"]] == ["one"]
        assert (await client.call("search", query="one"))["facts"] == []
        assert (await client.call("search", query="one", as_of="0"))["facts"] == []


class TestSearch:
    @pytest.mark.proves("facts: search", "graph-contract: search")
    async def test_results_are_split_by_type(self, client: FactsClient) -> None:
        await client.call("create_node", text="Honey", node_type="Entity")
        await client.fact("Bees make honey")
        found = await client.call("search", query="honey")
        assert found.keys() == {"success", "results", "facts", "entities"}
        assert [one["text"] for one in found["results"]] == ["Honey", "Bees make honey"]
        assert [one["text"] for one in found["facts"]] == ["Bees make honey"]
        assert [one["text"] for one in found["entities"]] == ["Honey"]
        for types, texts in ((["Fact"], ["Bees make honey"]), (["Entity"], ["Honey"])):
            found = await client.call("search", query="honey", node_types=types)
            assert [one["text"] for one in found["results"]] == texts
        assert len((await client.call("search", query="honey", limit=1))["results"]) == 1
        assert [
            one["text"] for one in (await client.call("search", query="honey", similarity_threshold=1))["results"]
        ] == ["Honey"]
        assert (await client.call("search", query="honey", owner_id="nobody"))["results"] == []

    @pytest.mark.proves("facts: find_similar")
    async def test_find_similar_compares_only_embedded_nodes(self, client: FactsClient) -> None:
        node_id = await client.fact("Bees make honey")
        assert (await client.call("find_similar", fact_id=node_id))["results"] == []
        assert (await client.call("find_similar", fact_id=node_id, as_of="1"))["results"] == []
        assert (await client.refusal("find_similar", fact_id=node_id, as_of="0"))[0] == "memory_not_found"


class TestRelations:
    @pytest.mark.proves(
        "facts: create_triplet",
        "facts: search_triplets",
        "graph-contract: triplets-make-entities",
        "graph-contract: search-triplets",
        "graph-contract: triplets-of-facts",
    )
    async def test_triplets_are_created_and_searched(self, client: FactsClient) -> None:
        fact_id = await client.fact("it is said")
        made = (
            await client.call(
                "create_triplet",
                subject="Alice",
                predicate="works at",
                object_value="Acme",
                metadata={"since": 2020},
                fact_id=fact_id,
            )
        )["triplet"]
        assert (made["subject"], made["predicate"], made["object"], made["fact_id"]) == (
            "Alice",
            "works at",
            "Acme",
            fact_id,
        )
        assert (await client.call("get_node", node_id=made["subject_id"]))["node"]["node_type"] == "Entity"
        await client.call("create_triplet", subject="Bob", predicate="works at", object_value="Acme")
        first, second = (await client.call("search_triplets", object_value="Acme"))["triplets"]
        assert first == made
        assert second["subject"] == "Bob"
        page = await client.call("search_triplets", limit=1)
        assert (page["triplets"], page["next_offset"]) == ([first], 1)
        assert (await client.call("search_triplets", subject="Carol"))["triplets"] == []
        assert first["metadata"] == {"since": 2020}
        await client.call("delete_node", node_id=fact_id)
        [unsaid, _] = (await client.call("search_triplets", object_value="Acme"))["triplets"]
        assert "fact_id" not in unsaid
        assert (await client.call("search_triplets", object_value="Acme", as_of="2"))["triplets"] == [made]

    @pytest.mark.proves("graph-contract: triplets-of-facts")
    async def test_metadata_named_fact_id_is_not_a_fact(self, client: FactsClient) -> None:
        entity = (await client.call("create_node", text="Carol", node_type="Entity"))["node"]["id"]
        for claimed in (entity, "hearsay", str(uuid4()), 7):
            named = {"subject": "Bob", "predicate": f"says {claimed}", "object_value": "Acme"}
            made = (await client.call("create_triplet", **named, metadata={"fact_id": claimed}))["triplet"]
            (found,) = (await client.call("search_triplets", **named))["triplets"]
            assert found == made
            assert (made["metadata"], "fact_id" in made) == ({"fact_id": claimed}, False)

    @pytest.mark.proves(
        "facts: create_relation",
        "facts: delete_relation",
        "facts: get_context",
        "facts: get_trace",
        "graph-contract: delete-relation",
        "graph-contract: get-context",
        "graph-contract: get-trace",
    )
    async def test_relations_are_read_by_context_and_trace(self, client: FactsClient) -> None:
        ids = [await client.fact(text) for text in ("one", "two", "three")]
        for source, target in ((0, 1), (1, 2)):
            made = await client.call(
                "create_relation",
                from_id=ids[source],
                to_id=ids[target],
                relation_type="FOLLOWS_FROM",
                properties={"sure": True},
            )
            assert made.keys() == {"success", "relation_type", "id", "created_at"}
            assert made["relation_type"] == "FOLLOWS_FROM"
        context = await client.call("get_context", node_id=ids[0])
        assert [node["id"] for node in context["nodes"]] == ids[:2]
        [edge] = context["edges"]
        assert (edge["from_id"], edge["to_id"], edge["relation_type"], edge["metadata"]) == (
            *(ids[0], ids[1], "FOLLOWS_FROM", {"sure": True}),
        )
        assert type(edge["created_at"]) is int
        cut = await client.call("get_context", node_id=ids[0], depth=2, max_nodes=2)
        assert (len(cut["nodes"]), cut["cut"]) == (2, "nodes")
        [path] = (await client.call("get_trace", from_id=ids[2], to_id=ids[0]))["paths"]
        assert ([node["id"] for node in path["nodes"]], path["length"], len(path["edges"])) == (ids[::-1], 2, 2)
        await client.call("delete_relation", from_id=ids[0], to_id=ids[1], relation_type="RELATED_TO")
        assert len((await client.call("get_trace", from_id=ids[2], to_id=ids[0]))["paths"]) == 1
        await client.call("delete_relation", from_id=ids[0], to_id=ids[1])
        assert (await client.call("get_trace", from_id=ids[2], to_id=ids[0]))["paths"] == []
        assert await client.call("get_context") == {"success": True, "nodes": [], "edges": []}

    @pytest.mark.proves("graph-contract: create-known-relation")
    async def test_an_existing_relation_is_updated(self, client: FactsClient, db: Database, caller: Caller) -> None:
        ids = [await client.fact(text) for text in ("one", "two")]
        wanted = {"from_id": ids[0], "to_id": ids[1], "relation_type": "FOLLOWS_FROM"}
        made = await client.call("create_relation", **wanted, properties={"sure": True})
        before = str(await revision_of(db, caller))
        assert await client.call("create_relation", **wanted) == made
        told = await client.call("create_relation", **wanted, properties={"sure": False})
        assert told == made | {"updated": True}
        [edge] = (await client.call("get_context", node_id=ids[0]))["edges"]
        assert (edge["id"], edge["created_at"], edge["metadata"]) == (made["id"], made["created_at"], {"sure": False})
        [then] = (await client.call("get_context", node_id=ids[0], as_of=before))["edges"]
        assert then == edge | {"metadata": {"sure": True}}

    @pytest.mark.proves("graph-contract: create-known-relation")
    async def test_an_existing_triplet_is_updated(self, client: FactsClient, db: Database, caller: Caller) -> None:
        wanted = {"subject": "Alice", "predicate": "works at", "object_value": "Acme"}
        made = await client.call("create_triplet", **wanted, metadata={"since": 2020})
        before = str(await revision_of(db, caller))
        assert await client.call("create_triplet", **wanted) == made
        told = await client.call("create_triplet", **wanted, metadata={"since": 2021})
        assert told == {"success": True, "updated": True, "triplet": made["triplet"] | {"metadata": {"since": 2021}}}
        for as_of, triplet in ((None, told["triplet"]), (before, made["triplet"])):
            assert (await client.call("search_triplets", as_of=as_of))["triplets"] == [triplet]

    @pytest.mark.proves("facts: create_summary_fact", "graph-contract: create-summary-fact")
    async def test_a_summary_is_related_to_its_facts(self, client: FactsClient) -> None:
        ids = [await client.fact(text) for text in ("one", "two")]
        summary = (await client.call("create_summary_fact", fact_ids=ids, summary_text="both"))["node"]
        context = await client.call("get_context", node_id=summary["id"])
        assert {(edge["relation_type"], edge["to_id"]) for edge in context["edges"]} == {
            ("SUMMARIZES", node_id) for node_id in ids
        }
        entity = (await client.call("create_node", text="Alice", node_type="Entity"))["node"]["id"]
        refused = await client.refusal("create_summary_fact", fact_ids=[ids[0], entity], summary_text="all")
        assert refused[0] == "memory_not_found"

    @pytest.mark.proves("facts: get_stats", "graph-contract: create-node-links", "graph-contract: get-stats")
    async def test_auto_link_and_links_create_relations(self, client: FactsClient) -> None:
        alice = (await client.call("create_node", text="Alice", node_type="Entity"))["node"]["id"]
        other = await client.fact("unrelated")
        links = [{"node_id": other, "node_type": "Fact", "relation_type": "RELATED_TO"}]
        linked = await client.fact("alice likes tea", links=links)
        context = await client.call("get_context", node_id=linked)
        assert {(edge["relation_type"], edge["to_id"]) for edge in context["edges"]} == {
            ("MENTIONS_ENTITY", alice),
            ("RELATED_TO", other),
        }
        silent = await client.fact("Alice likes coffee", auto_link=False)
        assert (await client.call("get_context", node_id=silent))["edges"] == []
        stats = (await client.call("get_stats"))["stats"]
        assert (stats["facts"], stats["entities"], stats["relations"], stats["owner_id"]) == (3, 1, 2, "default")
        assert stats["relation_types"] == {"MENTIONS_ENTITY": 1, "RELATED_TO": 1}


class TestHealth:
    @pytest.mark.proves("facts: test_connection", "facts: health_check", "graph-contract: health-check")
    async def test_health_check_reports_every_part(self, client: FactsClient) -> None:
        assert (await client.call("test_connection")).keys() == {"success", "message"}
        health = await client.call("health_check")
        assert (health["falkordb"], health["embeddings"], health["vector_index"]) == (True, True, True)
        assert health["cache"]["search"].keys() == {"enabled", "size", "maxsize", "ttl", "hit_rate"}
        assert health["cache"]["embeddings"].keys() == {"enabled", "size", "maxsize", "hit_rate"}


class TestLimits:
    @pytest.mark.proves("graph-contract: envelope", "graph-contract: argument-limits")
    @pytest.mark.parametrize(
        ("tool", "arguments", "said"),
        [
            ("create_node", {"text": None}, "text: Text cannot be empty"),
            ("create_node", {"text": " \n"}, "text: Text cannot be empty"),
            ("create_node", {"text": "x" * 10_001}, "text: Text too long (max 10000 chars)"),
            (
                "create_node",
                {"text": "x" * 513, "node_type": "Entity"},
                "text: An entity's name is too long (max 512 chars)",
            ),
            ("create_node", {"text": "x", "entity_type": "PERSON"}, "entity_type: A fact has no entity type"),
            (
                "create_node",
                {"text": "x", "metadata": {"big": "x" * 100_000}},
                "metadata: Metadata too large (max 100000 bytes)",
            ),
            ("create_node", {"text": "x", "ttl_days": 0}, "ttl_days: Must be more than 0 and at most 3650"),
            ("create_node", {"text": "x", "ttl_days": 3650.1}, "ttl_days: Must be more than 0 and at most 3650"),
            (
                "create_node",
                {"text": "x" * 200_000, "ttl_days": 0, "metadata": {"big": "x" * 100_000}},
                "text: Text too long (max 10000 chars)\nmetadata: Metadata too large (max 100000 bytes)\n"
                "ttl_days: Must be more than 0 and at most 3650",
            ),
            (
                "update_node",
                {"node_id": "x", "text": " ", "ttl_days": -1},
                "text: Text cannot be empty\nttl_days: Must be more than 0 and at most 3650",
            ),
            (
                "create_node",
                {"text": 1, "node_type": "Thing", "links": [{"node_id": "x"}]},
                "text: Expected `str | null`, got `int`\n"
                "node_type: Invalid enum value 'Thing'; the values are: Entity, Fact\n"
                "links.0.node_type: Required\nlinks.0.relation_type: Required",
            ),
            ("create_node", {"text": "x", "expires_at": 1}, "expires_at: Must not be in the past"),
            (
                "create_node",
                {"text": "x", "owner_id": "a", "graph": "b"},
                "owner_id: owner_id and graph name two different graphs: give one of them",
            ),
            (
                "create_node",
                {"text": "x", "owner_id": "a\n"},
                "owner_id: Expected `str` matching regex '^[A-Za-z0-9_@-]{1,128}$'",
            ),
            (
                "create_relation",
                {"from_id": "a", "to_id": "b", "relation_type": "works at"},
                "relation_type: Expected `str` matching regex '^[A-Za-z0-9_]+$'",
            ),
            (
                "create_summary_fact",
                {"fact_ids": [], "summary_text": "x"},
                "fact_ids: Array must contain at least 1 element",
            ),
        ],
        ids=lambda value: str(value)[:40],
    )
    async def test_values_beyond_the_limits_are_refused(
        self, client: FactsClient, tool: str, arguments: Any, said: str
    ) -> None:
        assert await client.refusal(tool, **arguments) == ("memory_validation_error", said)

    @pytest.mark.proves("graph-contract: argument-limits")
    async def test_values_at_the_limits_are_accepted(self, client: FactsClient) -> None:
        await client.call("create_node", text="x" * 10_000, ttl_days=3650)
        await client.call("create_node", text="y" * 512, node_type="Entity")

    async def test_a_name_that_is_taken_is_refused(self, client: FactsClient) -> None:
        await client.call("create_node", text="Alice", node_type="Entity")
        bob = (await client.call("create_node", text="Bob", node_type="Entity"))["node"]["id"]
        refused = await client.refusal("update_node", node_id=bob, text="Alice")
        assert refused[0] == "memory_validation_error"

    @pytest.mark.proves("graph-contract: limits-are-settings")
    async def test_the_limits_are_settings(self, settings: Settings, key: str) -> None:
        limits = {"max_text_length": 5, "min_ttl_days": 1.0, "max_ttl_days": 2.0, "max_metadata_size": 11}
        for gateway in served(settings.model_copy(update=limits)):
            async with gateway.http(key, **rpc_headers()) as http:
                strict = FactsClient(gateway, http)
                await strict.call("create_node", text="short", ttl_days=2, metadata={"a": "bcd"})
                for given in ({"text": "longer"}, {"ttl_days": 1}, {"ttl_days": 2.5}, {"metadata": {"a": "bcdef"}}):
                    refused = await strict.refusal("create_node", **({"text": "short"} | given))
                    assert refused[0] == "memory_validation_error"


@pytest.mark.proves("graph-contract: defaults-are-settings")
async def test_defaults_are_settings_and_are_shown_in_the_schemas(settings: Settings, key: str) -> None:
    chosen = {"search_default_limit": 2, "similarity_threshold": 0.01, "subgraph_default_max_nodes": 3}
    for gateway in served(settings.model_copy(update=chosen)):
        async with gateway.http(key, **rpc_headers()) as http:
            client = FactsClient(gateway, http)
            for tool, argument, default in (
                ("search", "limit", 2),
                ("find_similar", "threshold", 0.01),
                ("get_context", "max_nodes", 3),
            ):
                uri = {"uri": f"recollect://tools/{tool}"}
                told = (await gateway.post(http, "resources/read", uri, path="/mcp/x/facts"))["result"]["contents"]
                properties = json.loads(told[0]["text"])["inputSchema"]["properties"]
                assert properties[argument]["default"] == default
            hub = (await client.call("create_node", text="Tea hub", node_type="Entity"))["node"]["id"]
            for number in range(4):
                links = [{"node_id": hub, "node_type": "Entity", "relation_type": "DESCRIBES"}]
                await client.call("create_node", text=f"Tea number {number}", links=links)
            assert len((await client.call("search", query="tea", node_types=["Fact"]))["results"]) == 2
            assert len((await client.call("search", query="tea", node_types=["Fact"], limit=3))["results"]) == 3
            assert len((await client.call("get_context", node_id=hub))["nodes"]) == 3
            assert len((await client.call("get_context", node_id=hub, max_nodes=4))["nodes"]) == 4


@pytest.mark.proves("graph-contract: defaults-are-settings")
async def test_the_default_threshold_of_find_similar_is_a_setting(
    db: Database, caller: Caller, settings: Settings, key: str
) -> None:
    for threshold, found in ((0.0, 1), (1.0, 0)):
        for gateway in served(settings.model_copy(update={"similarity_threshold": threshold})):
            async with gateway.http(key, **rpc_headers()) as http:
                client = FactsClient(gateway, http)
                first = (await client.call("create_node", text="Alice likes green tea"))["node"]["id"]
                await client.call("create_node", text="Alice is fond of green tea, they say")
                await Agent(db, caller, "default").embed()
                assert len((await client.call("find_similar", fact_id=first))["results"]) == found
                assert len((await client.call("find_similar", fact_id=first, threshold=0.0))["results"]) == 1


def served(settings: Settings) -> Iterator[RunningGateway]:
    with serving(settings) as gateway:
        yield gateway


@pytest.mark.proves("graph-contract: envelope", "graph-contract: memory-not-found", "graph-contract: database-errors")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("x"), "memory_validation_error"),
        (Conflict("x"), "memory_validation_error"),
        (NotFound("x"), "memory_not_found"),
        (NotFound("x", code=ErrorCode.GRAPH_NOT_FOUND), "memory_not_found"),
        (Forbidden("x"), "memory_service_error"),
        (TooLarge("x"), "memory_service_error"),
        (Unavailable("x"), "connection_error"),
        (Unavailable("x", code=ErrorCode.BUSY), "falkordb_error"),
        (Unavailable("x", code=ErrorCode.EMBEDDER_UNAVAILABLE), "memory_service_error"),
        (asyncpg.UniqueViolationError("secret detail"), "falkordb_error"),
        (KeyError("secret detail"), "memory_service_error"),
    ],
    ids=repr,
)
def test_each_error_has_a_code_of_the_contract(error: Exception, code: str) -> None:
    result: CallToolResult = render_error(error)
    envelope = result.structured_content
    assert envelope is not None
    assert result.is_error
    assert (envelope["success"], envelope["error_code"], envelope["code"]) == (False, code, code)
    assert "secret" not in envelope["error"]
    assert ERROR_META in (result.meta or {})


class TestStrangers:
    """Nodes of another tenant look like nonexistent ones: the answer is the same except for the requested id."""

    BY_ID = {tool: arguments for tool, arguments in EXAMPLES.items() if tool in CONTRACT} | {
        "get_trace": {**EXAMPLES["get_trace"], "as_of": None},
        "get_node": {**EXAMPLES["get_node"], "as_of": None},
        "get_context": {**EXAMPLES["get_context"], "as_of": None},
        "create_node": {
            "text": "Alice repairs the clock",
            "links": [{"node_id": "", "node_type": "Fact", "relation_type": "RELATED_TO"}],
        },
        "create_summary_fact": {"fact_ids": [""], "summary_text": "all of it"},
    }
    ID_ARGUMENTS = ("node_id", "fact_id", "from_id", "to_id", "fact_ids", "links")

    def asking(self, tool: str, node_id: str) -> list[dict[str, Any]]:
        """The example of the tool with this id in the place of each of its ids."""
        arguments = self.BY_ID[tool]
        places = [name for name in self.ID_ARGUMENTS if name in arguments]
        return [arguments | {name: self.filled(arguments[name], node_id) for name in places}]

    def filled(self, value: Any, node_id: str) -> Any:
        if isinstance(value, list):
            return [link | {"node_id": node_id} if isinstance(link, dict) else node_id for link in value]
        return node_id

    @pytest.mark.proves("rules: no-foreign-ids")
    @pytest.mark.parametrize("tool", CONTRACT)
    async def test_ids_and_names_of_another_tenant_look_like_unknown_ones(
        self, client: FactsClient, stranger: FactsClient, tool: str
    ) -> None:
        foreign = await stranger.fact("Alice repairs the lighthouse clock")
        triplet = (
            await stranger.call("create_triplet", subject="Alice", predicate="repairs", object_value="Lighthouse clock")
        )["triplet"]
        before = await stranger.call("get_stats")
        answers = []
        for node_id in (str(uuid4()), foreign, triplet["subject_id"], "no id at all"):
            for arguments in self.asking(tool, node_id):
                envelope = await client.envelope(tool, **arguments)
                answers.append(json.dumps(envelope).replace(node_id, "ID"))
        assert len(set(answers)) == 1, answers
        assert not any(known in answers[0] for known in (foreign, triplet["subject_id"], triplet["object_id"]))
        assert (await client.call("get_stats"))["stats"]["total_nodes"] == 0
        assert await stranger.call("get_stats") == before

    @pytest.mark.proves("graph-contract: owner-id")
    @pytest.mark.parametrize("tool", ["get_node", "get_context", "find_similar", "get_node_change_history"])
    async def test_ids_of_another_graph_look_like_unknown_ones(self, client: FactsClient, tool: str) -> None:
        node_id = await client.fact("Bees make honey", owner_id="bees")
        name = "fact_id" if tool == "find_similar" else "node_id"
        assert (await client.refusal(tool, **{name: node_id}))[0] == "memory_not_found"
        assert (await client.refusal(tool, **{name: node_id, "owner_id": "nowhere"}))[0] == "memory_not_found"
        assert (await client.envelope(tool, **{name: node_id, "owner_id": "bees"}))["success"]

    @pytest.mark.proves("graph-contract: owner-id")
    async def test_links_and_relations_do_not_leave_the_graph(self, client: FactsClient, caller: Caller) -> None:
        there, here = await client.fact("there", owner_id="bees"), await client.fact("here")
        for ends in ({"from_id": here, "to_id": there}, {"from_id": there, "to_id": here}):
            refused = await client.refusal("create_relation", relation_type="RELATED_TO", **ends)
            assert refused[0] == "memory_not_found"
