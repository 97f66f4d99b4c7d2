"""A text or a name without a visible character is refused by its path, in every tool and route and in imports."""

import json
from typing import Any

import pytest

from recollect.text.visible import NO_VISIBLE_CHARACTER, is_visible
from recollect_gateway.mcp_endpoint.tools import TOOLS
from tests.contract.examples import EXAMPLES, Played
from tests.support.gateway import RunningGateway, answer, error_of, rpc_headers, text_of

BLANKS = (" ", "\t\n", "\u00a0", "\u200b", "\ufeff", "\u202e", "\u3164", "\u2800", "\u034f\ufe0f", "\u3000")
SHOWN = ("x", " x ", "\u200bé", "数", "🧠", "_", "-", "\u0301e")

WRITTEN: dict[str, tuple[str, ...]] = {
    "remember": ("items.0.text", "items.0.about.0", "items.0.name", "items.0.tags.0"),
    "relate": ("triples.0.subject", "triples.0.predicate", "triples.0.object"),
    "revise": ("text", "name", "tags.0"),
    "create_entities": (
        *("entities.0.name", "entities.0.entityType", "entities.0.observations.0", "entities.0.content"),
        "entities.0.tags.0",
    ),
    "create_relations": ("relations.0.from", "relations.0.to", "relations.0.relationType"),
    "add_observations": ("observations.0.entityName", "observations.0.contents.0"),
    "upsert_entities": ("entities.0.name", "entities.0.observations.0"),
    "add_tags": ("tags.0",),
    "create_node": ("text",),
    "update_node": ("text",),
    "create_summary_fact": ("summary_text",),
    "create_triplet": ("subject", "object_value"),
    "put_node": ("content", "kind", "tags.0"),
}
"""The arguments of writing tools that are stored as a text or a name."""

STORE_NO_TEXTS = {
    *("forget", "delete_entities", "delete_observations", "delete_relations", "remove_tags", "set_importance"),
    "set_entity_parent",
    *("merge_entities", "archive_entities", "compress_graph", "propose_duplicates", "start_export", "mark_outdated"),
    *("create_relation", "delete_relation", "delete_node", "put_edge", "delete_edge", "create_graph", "delete_graph"),
    *("update_graph_config", "compact", "reindex", "reembed", "cancel_job", "undo_changes"),
    *("import_graph", "put_subgraph"),
}
"""Writes without such an argument, and two that have tests of their own: they refuse items, not the call."""


def test_each_writing_tool_is_in_one_table() -> None:
    writing = {name for name, tool in TOOLS.items() if not tool.read_only}
    assert sorted([*WRITTEN, *STORE_NO_TEXTS]) == sorted(writing)


def test_what_shows_nothing_is_known() -> None:
    assert [text for text in BLANKS if is_visible(text)] == []
    assert [text for text in SHOWN if not is_visible(text)] == []


async def test_each_tool_refuses_blank_texts_by_path(
    gateway: RunningGateway, admin_key: str, subtests: pytest.Subtests
) -> None:
    async with gateway.client(admin_key, "/mcp/x/all") as client:
        for tool, paths in WRITTEN.items():
            for number, path in enumerate(paths):
                blank = BLANKS[number % len(BLANKS)]
                with subtests.test(tool=tool, path=path):
                    arguments = replaced(Played().fill(EXAMPLES[tool]), path.split("."), blank)
                    result = await client.call_tool(tool, arguments)
                    assert error_of(result).get("path") == path, result
        assert (await answer(client, "read_graph")) == {"entities": [], "relations": []}


async def test_every_blank_character_is_refused(gateway: RunningGateway, key: str) -> None:
    async with gateway.client(key, "/mcp/x/agent") as client:
        result = await client.call_tool("remember", {"items": [{"text": blank} for blank in BLANKS]})
        for place in range(len(BLANKS)):
            assert f"items.{place}.text: {NO_VISIBLE_CHARACTER}" in text_of(result)


async def test_an_item_of_a_subgraph_is_refused_by_itself(gateway: RunningGateway, key: str) -> None:
    async with gateway.client(key, "/mcp/x/lineage") as client:
        nodes = [{"kind": "note", "content": text} for text in ("sound", "\u200b")]
        sound, blank = (await answer(client, "put_subgraph", nodes=nodes))["nodes"]
        assert "lineage_id" in sound
        assert "content" in json.dumps(blank)


async def test_a_route_refuses_them(gateway: RunningGateway, key: str) -> None:
    async with gateway.http(key, **rpc_headers()) as http:
        body = {"items": [{"text": "\u200b", "about": [" "]}]}
        response = await http.post("/v1/graphs/default/memories", json=body)
        assert response.status_code == 400
        assert "items.0.text" in response.text
        assert "items.0.about.0" in response.text


async def test_an_import_refuses_blank_names(gateway: RunningGateway, key: str) -> None:
    """The official server stores blank observations, and its file comes back byte for byte."""
    items: list[dict[str, Any]] = [
        {"type": "entity", "name": "Ada", "entityType": "t", "observations": ["likes tea", "\u200b"]},
        {"type": "entity", "name": " ", "entityType": "t", "observations": []},
        {"type": "relation", "from": "Ada", "to": "\ufeff", "relationType": "knows"},
    ]
    entities = [{key: value for key, value in item.items() if key != "type"} for item in items[:2]]
    lines = [json.dumps(item, ensure_ascii=False, separators=(",", ":")) for item in items]
    files = {"jsonl": "\n".join(lines), "json": json.dumps({"entities": entities})}
    async with gateway.client(key, "/mcp/x/all") as client:
        for format_, data in files.items():
            result = await client.call_tool("import_graph", {"graph": format_, "format": format_, "data": data})
            assert text_of(result).count(NO_VISIBLE_CHARACTER) == (2 if format_ == "jsonl" else 1)
        sound = files["jsonl"].split("\n")[0]
        await answer(client, "import_graph", format="jsonl", data=sound)
        assert (await answer(client, "export_graph", format="jsonl"))["data"] == sound


async def test_what_was_stored_before_can_still_be_deleted(gateway: RunningGateway, key: str) -> None:
    async with gateway.client(key, "/mcp/x/memory") as client:
        await answer(client, "delete_entities", entityNames=[" "])
        await answer(client, "delete_observations", deletions=[{"entityName": " ", "observations": ["\u200b"]}])


def replaced(value: Any, path: list[str], text: str) -> Any:
    """The value with a text at a path; a list there may be empty."""
    key, *rest = path
    if isinstance(value, list):
        items = value or [None]
        return [replaced(items[0], rest, text) if rest else text, *items[1:]]
    part = value.get(key)
    return {**value, key: replaced(part, rest, text) if rest else text}
