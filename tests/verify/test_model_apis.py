"""What the SDKs of Gemini, OpenAI and Anthropic make of the tools is in the subset that those APIs take."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from recollect_gateway.mcp_endpoint.tools import TOOLSETS
from tests.support.gateway import RunningGateway, rpc_headers
from tests.support.model_apis import faults
from tests.support.timeouts import MAX_WAIT_SECONDS

FOLDER = Path(__file__).parent / "model_apis"
PYTHON = FOLDER / ".venv" / "bin" / "python"

CONVERTERS = 5

STRICT = frozenset({"additionalProperties"})
"""The keyword that the strict modes of OpenAI and Anthropic add."""


async def test_published_converters_take_the_tools_of_each_toolset(
    gateway: RunningGateway, admin_key: str, subtests: pytest.Subtests
) -> None:
    if not PYTHON.exists():
        pytest.fail("The SDKs of model APIs are missing. Run `make verify`, which installs them.")
    tools = await listed(gateway, admin_key)
    results = convert(tools)
    for converter in sorted({result["converter"] for result in results}):
        with subtests.test(converter):
            found = [result for result in results if result["converter"] == converter]
            assert len(found) == len(tools)
            assert {result["tool"]: faults_of(result) for result in found if faults_of(result)} == {}


async def listed(gateway: RunningGateway, key: str) -> list[dict[str, Any]]:
    """The tools of each toolset, without repetitions; a tool may be listed in several dialects."""
    found: dict[str, dict[str, Any]] = {}
    async with gateway.http(key, **rpc_headers()) as http:
        for toolset in sorted({*TOOLSETS, "all"}):
            answer = await gateway.post(http, "tools/list", {}, path=f"/mcp/x/{toolset}")
            found |= {json.dumps(tool): tool for tool in answer["result"]["tools"]}
    return list(found.values())


def convert(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each converter makes of each tool."""
    command = [PYTHON, FOLDER / "convert.py"]
    ran = subprocess.run(
        command, input=json.dumps(tools), capture_output=True, text=True, timeout=MAX_WAIT_SECONDS, check=True
    )
    results: list[dict[str, Any]] = json.loads(ran.stdout)
    assert len({result["converter"] for result in results}) == CONVERTERS
    return results


def faults_of(result: dict[str, Any]) -> list[str]:
    """What the API would not take, or why the converter failed."""
    if "error" in result:
        return [result["error"]]
    return [*faults(plain(result["schema"]), result["tool"], more=STRICT)]


def plain(schema: Any) -> Any:
    """A schema in the spelling of JSON Schema: Gemini writes types in capitals, Anthropic none beside an `enum`."""
    if isinstance(schema, list):
        return [plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    typed = {"type": "string"} | schema if isinstance(schema.get("enum"), list) else schema
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else plain(value) for key, value in typed.items()
    }
