"""Large answers: no white space, and the tools that answer whole say so to Claude Code, which cuts others short."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from recollect_gateway.mcp_endpoint.server import MAX_RESULT_CHARACTERS, RESULT_SIZE, definition
from recollect_gateway.mcp_endpoint.tools import CATALOGUE, TOOLS
from tests.contract.examples import EXAMPLES
from tests.support.gateway import RunningGateway, rpc_headers

ALL = "/mcp/x/all"
CLAUDE_CODE_TOKENS = 25_000
"""What Claude Code passes on of an answer, by default."""

ENTITIES = [
    {"name": f"entity {number}", "entityType": "note", "observations": [f"tea {number} " + "x" * 500], "tags": ["vip"]}
    for number in range(400)
]
"""Ten times what Claude Code passes on."""


@pytest.fixture
async def http(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield http


async def test_only_tools_that_answer_whole_fill_more_than_claude_code_takes(
    gateway: RunningGateway, http: httpx2.AsyncClient
) -> None:
    """By the rule of four characters a token. Every tool that reads, without a limit."""
    kept = await gateway.call(http, "create_entities", {"entities": ENTITIES}, path=ALL)
    assert not kept["isError"]
    names = [entity["name"] for entity in ENTITIES]
    asked: dict[str, dict[str, Any]] = {
        "open_nodes": {"names": names[:300]},
        "batch_get_entities": {"names": names[:100]},
    }
    asked |= {"search_nodes": {"query": "tea"}, "recall": {"query": "tea"}, "search": {"query": "tea"}}
    asked |= {
        "search_graph": {"text": "tea"},
        "search_nodes_ranked": {"query": "tea"},
        "fuzzy_search": {"query": "tea"},
    }
    asked |= {"boolean_search": {"query": "tea"}, "export_graph": {"format": "json"}}
    long = set()
    for tool in [tool for tool in CATALOGUE if tool.read_only and tool.name in asked | dict.fromkeys(UNASKED)]:
        result = await gateway.call(http, tool.name, asked.get(tool.name, {}), path=ALL)
        assert not result["isError"], (tool.name, result)
        if sum(len(content["text"]) for content in result["content"]) > 4 * CLAUDE_CODE_TOKENS:
            long.add(tool.name)
    assert long == {"read_graph", "open_nodes", "export_graph"}
    assert all(TOOLS[name].large for name in long)


UNASKED = [name for name, tool in TOOLS.items() if not definition(tool).input_schema.get("required")]
"""Tools that may be called without arguments."""


async def test_large_tools_are_listed_with_the_size_that_is_taken_whole(
    gateway: RunningGateway, http: httpx2.AsyncClient
) -> None:
    tools = (await gateway.post(http, "tools/list", {}, path=ALL))["result"]["tools"]
    sizes = {tool["name"]: tool["_meta"][RESULT_SIZE] for tool in tools if RESULT_SIZE in tool.get("_meta", {})}
    assert sizes == dict.fromkeys([tool.name for tool in CATALOGUE if tool.large], MAX_RESULT_CHARACTERS)
    assert all(TOOLS[name].read_only for name in sizes)


def test_a_dialect_is_as_large_as_its_tool() -> None:
    for tool in CATALOGUE:
        assert {dialect.large for dialect in tool.dialects} <= {tool.large}, tool.name


async def test_texts_of_json_have_no_white_space_between_values(
    gateway: RunningGateway, http: httpx2.AsyncClient
) -> None:
    for toolset in ("memory", "organize", "facts"):
        path = f"/mcp/x/{toolset}"
        for name in ("create_entities", "read_graph", "create_node", "delete_node"):
            if toolset in TOOLS[name].toolsets:
                arguments = {"entities": ENTITIES[:2]} if name == "create_entities" else EXAMPLES[name]
                result = await gateway.call(http, name, arguments, path=path)
                text = result["content"][0]["text"]
                assert text[0] in "[{", (name, toolset, text)
                assert text == json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")), name
