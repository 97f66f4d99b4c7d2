"""A call that writes nothing, such as a deletion of an unknown entity, creates no graph."""

from typing import Any
from uuid import uuid4

import pytest
from mcp import Client

from tests.contract.conftest import ConnectedClient
from tests.support.gateway import LEGACY

NOBODY = str(uuid4())

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("delete_entities", {"entityNames": ["Nobody"]}),
    ("delete_observations", {"deletions": [{"entityName": "Nobody", "observations": ["x"]}]}),
    ("delete_relations", {"relations": [{"from": "A", "to": "B", "relationType": "knows"}]}),
    ("create_entities", {"entities": []}),
    ("create_relations", {"relations": []}),
    ("add_observations", {"observations": []}),
    ("add_observations", {"observations": [{"entityName": "Nobody", "contents": ["x"]}]}),
    ("upsert_entities", {"entities": []}),
    ("merge_entities", {"source": "A", "target": "B"}),
    ("compact", {}),
    ("remove_tags", {"entityName": "Nobody", "tags": ["x"]}),
    ("set_entity_parent", {"entityName": "Nobody", "parentName": None}),
    ("compress_graph", {}),
    ("archive_entities", {"importanceBelow": 3}),
    ("import_graph", {"format": "json", "data": '{"entities": [], "relations": []}', "mergeStrategy": "skip"}),
    ("update_node", {"node_id": NOBODY, "text": "x"}),
    ("delete_node", {"node_id": NOBODY}),
    ("mark_outdated", {"fact_id": NOBODY}),
    ("delete_relation", {"from_id": NOBODY, "to_id": NOBODY}),
    ("create_relation", {"from_id": NOBODY, "to_id": NOBODY, "relation_type": "KNOWS"}),
    ("create_summary_fact", {"fact_ids": [NOBODY], "summary_text": "x"}),
    ("delete_edge", {"id": NOBODY}),
    ("put_subgraph", {"nodes": [{"ref": "a", "lineage_id": NOBODY, "kind": "x", "content": "x"}], "edges": []}),
    ("update_graph_config", {"conflict_policy": "lww"}),
    ("delete_graph", {}),
    ("remember", {"items": []}),
    ("revise", {"name": "Nobody", "text": "x"}),
    ("forget", {"names": ["Nobody"]}),
    ("forget", {"ids": [NOBODY], "mode": "delete"}),
    ("undo_changes", {"since_revision": 0}),
]


@pytest.fixture
async def client(connected: ConnectedClient, key: str) -> Client:
    return await connected(key, "/mcp/x/all", LEGACY)


@pytest.mark.proves("rules: no-write-no-graph")
async def test_a_call_that_writes_nothing_creates_no_graph(client: Client) -> None:
    for place, (tool, arguments) in enumerate(CALLS):
        graph = f"typo-{place}"
        await client.call_tool(tool, {"graph": graph, **arguments})
        listed = await client.call_tool("list_graphs", {})
        names = [one["name"] for one in (listed.structured_content or {})["graphs"]]
        assert graph not in names, tool


async def test_a_call_that_writes_something_creates_the_graph(client: Client) -> None:
    """Also after a call that wrote nothing, and the write is the first revision."""
    await client.call_tool("delete_entities", {"graph": "new", "entityNames": ["A"]})
    made = {"entities": [{"name": "A", "entityType": "t", "observations": []}]}
    assert not (await client.call_tool("create_entities", {"graph": "new", **made})).is_error
    got = (await client.call_tool("get_graph", {"graph": "new"})).structured_content or {}
    assert got["graph"]["name"] == "new"
