"""What `forget` or `archive_entities` hid: reads mark it or leave it out, and a write of its name brings it back.

docs/curation.md states the rule. Every tool of the catalogue is tried, and a new one must be put into a table here.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from mcp import Client

from recollect_gateway.mcp_endpoint.tools import TOOLS
from tests.contract.conftest import ConnectedClient
from tests.support.gateway import LEGACY, RunningGateway, answer

SECRET = "collects blue cheese"
OWN_TEXT = "writes a blue diary"
TOLD = (SECRET, OWN_TEXT)
HIDDEN = "Quincy"
NEW = "paints red barns"
MARKS = {"outdated", "archived"}

READS: dict[str, dict[str, Any]] = {
    "recall": {"query": "Quincy collects blue cheese and writes a diary", "include_outdated": True},
    "explore": {"start": "Paul", "depth": 2},
    "read_graph": {},
    "search_nodes": {"query": "blue"},
    "open_nodes": {"names": [HIDDEN, "Paul"]},
    "get_entity": {"name": HIDDEN},
    "batch_get_entities": {"names": [HIDDEN]},
    "search_relations": {"from": HIDDEN},
    "find_path": {"from": "Paul", "to": HIDDEN},
    "find_all_paths": {"from": "Paul", "to": HIDDEN},
    "extract_subgraph": {"names": ["Paul"], "depth": 2},
    "get_neighbors": {"name": "Paul"},
    "describe_entity": {"name": HIDDEN},
    "search_nodes_ranked": {"query": "blue cheese diary"},
    "boolean_search": {"query": "blue"},
    "fuzzy_search": {"query": HIDDEN},
    "search_by_date_range": {},
    "get_parent": {"entityName": "Paul"},
    "get_children": {"entityName": "Root"},
    "get_ancestors": {"entityName": "Paul"},
    "get_descendants": {"entityName": "Root"},
    "get_root_entities": {},
    "get_subtree": {"entityName": "Root"},
    "find_duplicates": {},
    "validate_graph": {},
    "get_node": {"node_id": HIDDEN},
    "get_node_change_history": {"node_id": HIDDEN},
    "search": {"query": "Quincy collects blue cheese", "include_outdated": True},
    "find_similar": {"fact_id": HIDDEN, "threshold": 0.1},
    "search_triplets": {"subject": "Paul"},
    "get_context": {"node_id": "Paul", "depth": 2},
    "get_trace": {"from_id": "Paul", "to_id": HIDDEN},
    "get_node_by_lineage": {"lineage_id": HIDDEN},
    "history": {"lineage_id": HIDDEN, "limit": 1},
    "list_nodes": {},
    "outgoing": {"lineage_id": "Paul"},
    "incoming": {"lineage_id": HIDDEN},
    "traverse": {"lineage_id": "Paul", "max_depth": 2},
    "search_graph": {"text": "Quincy collects blue cheese"},
    "batch_search": {"queries": [{"text": "Quincy collects blue cheese"}]},
    "describe_schema": {},
    "list_tags": {},
}
"""Reads that may tell of entities. A value that is a name stands for that node's id where a tool takes ids."""

TELL_NO_TEXT = {
    *("graph_stats", "list_entity_types", "list_relation_types", "test_connection", "get_stats", "health_check"),
    *("list_graphs", "get_graph", "symlink_manifest", "list_jobs", "get_job", "recent_changes", "usage"),
}
"""Reads that answer counts, ids, or nothing of entities."""

SHOW_STATES_OF_THE_PAST = {"get_node_by_id"}
"""A version's own id was asked for: it says in `is_current` and `superseded_by` that it is not the newest."""

EXPORTED = {"json", "csv", "graphml", "jsonl", "gexf", "markdown", "dot", "mermaid"}
MARKING = {"json", "csv", "graphml"}

_ENTITY = {"name": HIDDEN, "entityType": "painter", "observations": [NEW]}
_RELATION = {"from": HIDDEN, "to": "Barns", "relationType": "paints"}
_FILE = json.dumps({"type": "entity", **_ENTITY})

BRING_BACK: dict[str, dict[str, Any]] = {
    "remember": {"items": [{"text": NEW, "about": [HIDDEN]}]},
    "create_entities": {"entities": [_ENTITY]},
    "upsert_entities": {"entities": [_ENTITY]},
    "add_observations": {"observations": [{"entityName": HIDDEN, "contents": [NEW]}]},
    "import_graph": {"format": "jsonl", "data": _FILE, "mergeStrategy": "merge"},
    "revise": {"name": HIDDEN, "text": NEW},
    "create_node": {"text": HIDDEN, "node_type": "Entity", "entity_type": "painter"},
    "put_node": {"lineage_id": HIDDEN, "kind": "painter", "content": NEW},
    "put_subgraph": {"nodes": [{"lineage_id": HIDDEN, "kind": "painter", "content": NEW}]},
    "relate": {"triples": [{"subject": HIDDEN, "predicate": "paints", "object": "Barns"}]},
    "create_relations": {"relations": [_RELATION]},
    "create_triplet": {"subject": HIDDEN, "predicate": "paints", "object_value": "Barns"},
}
"""Writes that say something of the hidden entity."""

LEAVE_HIDDEN: dict[str, dict[str, Any]] = {
    "add_tags": {"entityName": HIDDEN, "tags": ["filed"]},
    "remove_tags": {"entityName": HIDDEN, "tags": ["filed"]},
    "set_importance": {"entityName": HIDDEN, "importance": 2},
    "set_entity_parent": {"entityName": HIDDEN, "parentName": "Root"},
    "forget": {"names": [HIDDEN]},
    "archive_entities": {"olderThan": "2099-01-01T00:00:00Z"},
    "compress_graph": {},
    "delete_observations": {"deletions": [{"entityName": HIDDEN, "observations": ["unknown"]}]},
    "delete_relations": {"relations": [_RELATION]},
    "create_relation": {"from_id": "Paul", "to_id": HIDDEN, "relation_type": "FOLLOWS"},
    "delete_relation": {"from_id": "Paul", "to_id": HIDDEN, "relation_type": "UNKNOWN"},
    "put_edge": {"from_lineage": HIDDEN, "to_lineage": "Paul", "kind": "knows"},
    "mark_outdated": {"fact_id": HIDDEN},
    "update_node": {"node_id": HIDDEN, "metadata": {"filed": True}},
}
"""Writes that file or hide it, or that name another as their subject."""

OTHERS = {
    *("delete_entities", "delete_node", "delete_edge", "delete_graph", "create_graph", "update_graph_config"),
    *("merge_entities", "create_summary_fact", "undo_changes", "compact", "reindex", "reembed", "cancel_job"),
    *("propose_duplicates", "start_export"),
}
"""Writes of something else, or whose purpose is to change what there is (docs/curation.md says how)."""

BY_ID = {"node_id", "fact_id", "from_id", "to_id", "lineage_id", "from_lineage", "to_lineage"}


@pytest.fixture
async def client(connected: ConnectedClient, key: str) -> Client:
    return await connected(key, "/mcp/x/all", LEGACY)


@pytest.fixture(params=["outdated", "archived"])
def status(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_each_tool_is_in_one_table() -> None:
    tables = [
        {*READS, "export_graph", "fetch"},
        TELL_NO_TEXT,
        SHOW_STATES_OF_THE_PAST,
        set(BRING_BACK),
        set(LEAVE_HIDDEN),
        OTHERS,
    ]
    assert sorted(name for table in tables for name in table) == sorted(TOOLS)


async def test_every_read_marks_what_is_hidden_or_leaves_it_out(
    client: Client, status: str, subtests: pytest.Subtests
) -> None:
    ids = await hide(client, "read", status)
    for tool, arguments in READS.items():
        with subtests.test(tool=tool):
            told = await answer(client, tool, graph="read", **with_ids(arguments, ids))
            unmarked = [text for text in unmarked_texts(told) if any(secret in text for secret in TOLD)]
            assert not unmarked, told


async def test_a_fetched_memory_is_marked(client: Client, status: str) -> None:
    ids = await hide(client, "default", status)
    for memory in (HIDDEN, SECRET):
        fetched = await answer(client, "fetch", id=ids[memory])
        assert any(told in fetched["text"] for told in TOLD)
        assert fetched["metadata"]["status"] == status


async def test_the_text_of_explore_marks_it_too(client: Client, status: str) -> None:
    await hide(client, "explored", status)
    result = await client.call_tool("explore", {"graph": "explored", "start": "Paul"})
    [line] = [line for line in str(result.content[0]).split("\\n") if SECRET in line]
    assert f"{HIDDEN} (person, {status}): " in line


async def test_exports_mark_it_or_leave_it_out(client: Client, status: str, subtests: pytest.Subtests) -> None:
    await hide(client, "exported", status)
    for format_ in sorted(EXPORTED):
        with subtests.test(format=format_):
            exported = json.dumps(await answer(client, "export_graph", graph="exported", format=format_))
            if format_ in MARKING:
                assert SECRET in exported
                assert status in exported
            else:
                assert HIDDEN not in exported
                assert "Paul" in exported


async def test_every_write_of_its_name_brings_it_back(client: Client, status: str, subtests: pytest.Subtests) -> None:
    for tool, arguments in BRING_BACK.items():
        with subtests.test(tool=tool):
            ids = await hide(client, tool, status)
            await answer(client, tool, graph=tool, **with_ids(arguments, ids))
            await assert_brought_back(client, tool, says_new=NEW in json.dumps(arguments))


async def test_the_other_dialect_brings_it_back_too(
    client: Client, gateway: RunningGateway, key: str, subtests: pytest.Subtests
) -> None:
    async with gateway.client(key, "/mcp/x/organize") as organizer:
        for tool in ("create_entities", "create_relations", "add_observations"):
            with subtests.test(tool=tool):
                await hide(client, tool, "outdated")
                await answer(organizer, tool, graph=tool, **BRING_BACK[tool])
                await assert_brought_back(client, tool, says_new=NEW in json.dumps(BRING_BACK[tool]))


async def test_each_strategy_but_fail_brings_back_what_a_file_tells(
    client: Client, status: str, subtests: pytest.Subtests
) -> None:
    for strategy in ("skip", "merge", "replace"):
        with subtests.test(strategy=strategy):
            await hide(client, strategy, status)
            arguments = BRING_BACK["import_graph"] | {"mergeStrategy": strategy}
            await answer(client, "import_graph", graph=strategy, **arguments)
            await assert_brought_back(client, strategy, says_new=True)


async def test_a_file_that_tells_the_status_leaves_it_hidden(client: Client, status: str) -> None:
    """So the export of a graph is imported into it again without any change of what it tells."""
    await hide(client, "whole", status)
    exported = await answer(client, "export_graph", graph="whole", format="json")
    for strategy in ("skip", "merge", "replace"):
        await answer(
            client, "import_graph", graph="whole", format="json", data=exported["data"], mergeStrategy=strategy
        )
        again = await answer(client, "export_graph", graph="whole", format="json")
        assert without_times(again["data"]) == without_times(exported["data"])


async def test_a_created_entity_that_was_hidden_is_answered_as_new(client: Client, status: str) -> None:
    await hide(client, "default", status)
    assert await answer(client, "create_entities", entities=[_ENTITY]) == {"entities": [_ENTITY]}
    found = await answer(client, "open_nodes", names=[HIDDEN])
    assert found["entities"] == [_ENTITY]
    assert await answer(client, "create_entities", entities=[_ENTITY]) == {"entities": []}


async def test_other_writes_leave_it_hidden(client: Client, status: str, subtests: pytest.Subtests) -> None:
    for tool, arguments in LEAVE_HIDDEN.items():
        with subtests.test(tool=tool):
            ids = await hide(client, tool, status)
            await answer(client, tool, graph=tool, **with_ids(arguments, ids))
            found = await answer(client, "get_entity", graph=tool, name=HIDDEN)
            assert found["status"] in MARKS
            assert SECRET not in json.dumps(await answer(client, "recall", graph=tool, query=SECRET))


async def test_a_new_text_of_an_outdated_memory_holds(client: Client) -> None:
    remembered = await answer(
        client, "remember", items=[{"text": "Tea is at five"}, {"text": SECRET, "about": [HIDDEN]}]
    )
    ids = [memory["id"] for memory in remembered["memories"]]
    await answer(client, "forget", ids=ids)
    await answer(client, "revise", id=ids[0], text="Tea is at six")
    await answer(client, "revise", id=ids[1], text=NEW)
    told = await answer(client, "recall", queries=["When is tea?", "Quincy paints red barns"])
    assert {"Tea is at six", NEW} <= {memory["text"] for memory in told["memories"]}


async def test_a_new_text_of_a_statement_brings_back_its_entity_alone(client: Client, status: str) -> None:
    ids = await hide(client, "default", status)
    await answer(client, "revise", id=ids[SECRET], text=NEW)
    await assert_brought_back(client, "default", says_new=True)


async def hide(client: Client, graph: str, status: str) -> dict[str, str]:
    """A graph where Paul knows Quincy, of whom something is told, and who is hidden; the ids of its nodes by name."""
    entity = {"name": HIDDEN, "entityType": "person", "observations": [], "content": OWN_TEXT, "tags": ["hide"]}
    others: list[dict[str, Any]] = [
        {"name": name, "entityType": "person", "observations": []} for name in ("Root", "Paul")
    ]
    await answer(client, "create_entities", graph=graph, entities=[entity, *others])
    remembered = await answer(client, "remember", graph=graph, items=[{"text": SECRET, "about": [HIDDEN]}])
    await answer(client, "relate", graph=graph, triples=[{"subject": "Paul", "predicate": "knows", "object": HIDDEN}])
    await answer(client, "set_entity_parent", graph=graph, entityName=HIDDEN, parentName="Root")
    if status == "outdated":
        await answer(client, "forget", graph=graph, names=[HIDDEN], reason="a mistake")
    else:
        await answer(client, "archive_entities", graph=graph, tags=["hide"])
    listed = await answer(client, "list_nodes", graph=graph)
    ids = {node["name"]: node["lineage_id"] for node in listed["nodes"]}
    return ids | {SECRET: remembered["memories"][0]["id"]}


def without_times(data: str) -> Any:
    """An export without the times of writing."""
    return re.sub(r'"lastModified":"[^"]+"', "", data)


def with_ids(arguments: Mapping[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    """The arguments with ids in place of names, where a tool takes ids."""
    filled = {key: ids.get(value, value) if key in BY_ID else value for key, value in arguments.items()}
    if "nodes" in filled:
        filled["nodes"] = [with_ids(node, ids) for node in filled["nodes"]]
    return filled


def unmarked_texts(told: Any) -> Iterator[str]:
    """The texts of an answer, without those inside an object that is marked as outdated or archived.

    A search marks the entity, and tells beside it what of it was found.
    """
    if isinstance(told, str):
        yield told
    elif isinstance(told, list):
        for item in told:
            yield from unmarked_texts(item)
    elif isinstance(told, dict) and not is_marked(told) and not is_marked(told.get("entity")):
        for item in told.values():
            yield from unmarked_texts(item)


def is_marked(told: Any) -> bool:
    return isinstance(told, dict) and (told.get("status") in MARKS or told.get("outdated") is True)


async def assert_brought_back(client: Client, graph: str, *, says_new: bool) -> None:
    """Quincy is active, with what is new and nothing of before."""
    found = await answer(client, "get_entity", graph=graph, name=HIDDEN)
    assert "status" not in found
    assert not any(secret in json.dumps(found) for secret in TOLD)
    recalled = json.dumps(await answer(client, "recall", graph=graph, query=f"Quincy {NEW} {SECRET}"))
    assert not any(secret in recalled for secret in TOLD)
    assert (NEW in recalled) is says_new
