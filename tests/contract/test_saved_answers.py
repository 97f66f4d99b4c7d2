"""A saved answer of `read_graph` is a file that can be imported, in each dialect that has the tool."""

import json
from typing import Any

import pytest

from recollect.caller import Caller
from tests.support.gateway import NewApiKey, RunningGateway, answer, in_one_task, texts_of

NEW: list[dict[str, Any]] = [
    {"name": "Ada", "entityType": "person", "observations": ["writes notes"], "tags": ["vip"], "importance": 7},
    {"name": "Quincy", "entityType": "person", "observations": ["likes tea"]},
    {"name": "Bare", "entityType": "thing", "observations": []},
]
RELATION = {"from": "Ada", "to": "Quincy", "relationType": "knows"}


@pytest.mark.parametrize("toolset", ["memory,admin,agent", "organize"])
async def test_a_saved_graph_is_imported_as_it_was(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, toolset: str, subtests: pytest.Subtests
) -> None:
    key = (await issue(caller, kind="admin")).secret
    async with (
        in_one_task(gateway.client(key, f"/mcp/x/{toolset}")) as client,
        in_one_task(gateway.client(key, "/mcp/x/organize")) as importing,
    ):
        entities = NEW if toolset == "organize" else [{k: v for k, v in e.items() if k != "importance"} for e in NEW]
        await answer(client, "create_entities", entities=entities)
        await answer(client, "create_relations", relations=[RELATION])
        if toolset != "organize":
            await answer(client, "forget", names=["Quincy"])
        saved = await client.call_tool("read_graph", {})
        for number, text in enumerate((json.dumps(saved.structured_content), texts_of(saved)[0])):
            for format_ in ("json", "jsonl"):
                graph = f"saved-{number}-{format_}"
                with subtests.test(graph):
                    await answer(importing, "import_graph", graph=graph, format=format_, data=text)
                    again = await client.call_tool("read_graph", {"graph": graph})
                    assert without_times(again.structured_content) == without_times(saved.structured_content)


def without_times(value: Any) -> Any:
    """An answer without the times of writing."""
    if isinstance(value, dict):
        return {k: without_times(part) for k, part in value.items() if k not in ("createdAt", "lastModified")}
    return [*map(without_times, value)] if isinstance(value, list) else value
