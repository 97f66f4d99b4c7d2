"""The whitelist of kinds of a graph applies to new kinds in every vocabulary; a refusal names the caller's argument."""

from typing import Any

import pytest
from mcp import Client

from tests.contract.conftest import ConnectedClient
from tests.support.gateway import LEGACY, answer, error_of

ALICE = {"name": "Alice", "entityType": "person", "observations": ["likes tea"]}


@pytest.fixture
async def client(connected: ConnectedClient, key: str) -> Client:
    """A client of a graph that allows persons and notes, with entities that are older than the whitelist."""
    client = await connected(key, "/mcp/x/all", LEGACY)
    await answer(client, "create_entities", entities=[ALICE, {**ALICE, "name": "Rex", "entityType": "dog"}])
    await answer(client, "create_node", text="Kept without a kind")
    await answer(client, "update_graph_config", graph="default", kind_whitelist=["person", "note"])
    return client


@pytest.mark.proves("memgraph: kind-whitelist")
@pytest.mark.parametrize(
    ("tool", "arguments", "path"),
    [
        (
            "create_entities",
            {"entities": [ALICE, {"name": "B", "entityType": "cat", "observations": []}]},
            "entities.1.entityType",
        ),
        (
            "upsert_entities",
            {"entities": [{"name": "Alice", "entityType": "dog"}, {"name": "B", "entityType": "cat"}]},
            "entities.1.entityType",
        ),
        ("remember", {"items": [{"text": "x", "kind": "note"}, {"text": "y", "kind": "plan"}]}, "items.1.kind"),
        ("remember", {"items": [{"text": "x", "kind": "note"}, {"text": "y"}]}, "items.1.kind"),
        (
            "remember",
            {"items": [{"text": "x", "about": ["Alice"]}, {"text": "y", "about": ["Alice", "Tom"], "kind": "cat"}]},
            "items.1.kind",
        ),
        ("remember", {"items": [{"text": "Rex barks", "about": ["Rex"], "kind": "cat"}]}, "items.0.kind"),
        ("put_node", {"kind": "cat", "content": "x"}, "kind"),
        ("create_node", {"text": "x"}, "kind"),
        ("create_node", {"text": "x", "kind": "plan"}, "kind"),
        ("create_node", {"text": "Tom", "node_type": "Entity", "entity_type": "cat"}, "entity_type"),
        ("create_node", {"text": "Tom", "node_type": "Entity"}, "entity_type"),
        ("create_triplet", {"subject": "Alice", "predicate": "HAS", "object_value": "Tom"}, "object_type"),
        (
            "create_triplet",
            {"subject": "Tom", "predicate": "IS", "object_value": "Alice", "subject_type": "cat"},
            "subject_type",
        ),
    ],
)
async def test_a_new_node_of_another_kind_is_refused_with_the_caller_s_argument(
    client: Client, tool: str, arguments: dict[str, Any], path: str
) -> None:
    before = await answer(client, "graph_stats")
    assert error_of(await client.call_tool(tool, arguments)) == {"code": "kind_not_allowed", "path": path}
    assert await answer(client, "graph_stats") == before


@pytest.mark.proves("memgraph: kind-whitelist")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("create_entities", {"entities": [{**ALICE, "name": "Rex", "entityType": "dog"}]}),
        ("upsert_entities", {"entities": [{"name": "Rex", "entityType": "dog", "observations": ["barks"]}]}),
        ("upsert_entities", {"entities": [{"name": "Rex", "entityType": "cat", "observations": ["barks"]}]}),
        ("remember", {"items": [{"text": "Rex barks", "about": ["Rex"]}]}),
        ("remember", {"items": [{"text": "Kept without a kind"}]}),
        ("create_node", {"text": "Kept without a kind"}),
        ("create_node", {"text": "Rex", "node_type": "Entity"}),
        ("create_triplet", {"subject": "Alice", "predicate": "HAS", "object_value": "Rex"}),
    ],
)
async def test_an_existing_node_keeps_its_kind(client: Client, tool: str, arguments: dict[str, Any]) -> None:
    assert not (await client.call_tool(tool, arguments)).is_error


@pytest.mark.proves("memgraph: kind-whitelist")
async def test_the_kind_of_a_fact_can_be_given(client: Client) -> None:
    made = (await answer(client, "create_node", text="A note", kind="note"))["node"]
    assert made["type"] == "note"
    refused = await client.call_tool("update_node", {"node_id": made["id"], "kind": "plan"})
    assert error_of(refused) == {"code": "kind_not_allowed", "path": "kind"}
    for tool, arguments in (
        ("update_node", {"node_id": made["id"], "kind": "person"}),
        ("create_summary_fact", {"fact_ids": [made["id"]], "summary_text": "One note", "kind": "note"}),
        (
            "create_triplet",
            {"subject": "Bob", "predicate": "KNOWS", "object_value": "Alice", "subject_type": "person"},
        ),
    ):
        assert not (await client.call_tool(tool, arguments)).is_error, tool
    assert (await answer(client, "get_node", node_id=made["id"]))["node"]["type"] == "person"
    bob = await client.call_tool("create_node", {"text": "Bob", "node_type": "Entity", "kind": "note"})
    assert error_of(bob) == {"code": "invalid_input", "path": "kind"}
