"""Snapshots freeze what clients and databases rely on, in `__snapshots__`.

A change is deliberate or a mistake: `make test ARGS=--snapshot-update` records a deliberate one. A released migration
never changes.
"""

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from recollect.accounts.audit.model import Action
from recollect.errors import ErrorCode
from recollect.postgres.migrate import migrations
from recollect_gateway.mcp_endpoint.prompts_and_resources import resources
from recollect_gateway.mcp_endpoint.prompts_and_resources.prompts import PROMPTS
from recollect_gateway.mcp_endpoint.schema import json_schema
from recollect_gateway.mcp_endpoint.server import definition
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from tests.support.gateway import RunningGateway


@pytest.fixture
def frozen(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Snapshots as JSON, one file each."""
    return snapshot.use_extension(JSONSnapshotExtension)


def _whole(tool: ToolSpec) -> dict[str, Any]:
    """The parts of a tool that its listing leaves out."""
    arguments, result = json_schema(tool.arguments), json_schema(tool.result)
    return {"toolsets": sorted(tool.toolsets), "scope": tool.scope, "arguments": arguments, "result": result}


@pytest.mark.proves("rules: frozen-schemas")
@pytest.mark.parametrize("tool", CATALOGUE, ids=lambda tool: tool.name)
def test_tool(frozen: SnapshotAssertion, tool: ToolSpec) -> None:
    listed = definition(tool).model_dump(mode="json", by_alias=True, exclude_none=True)
    assert listed | _whole(tool) == frozen


DIALECTS = [dialect for tool in CATALOGUE for dialect in tool.dialects]


@pytest.mark.parametrize("tool", DIALECTS, ids=lambda tool: f"{min(tool.toolsets)}-{tool.name}")
def test_dialect(frozen: SnapshotAssertion, tool: ToolSpec) -> None:
    listed = definition(tool).model_dump(mode="json", by_alias=True, exclude_none=True)
    assert listed | _whole(tool) == frozen


def test_resources(frozen: SnapshotAssertion) -> None:
    told = [*resources.TEMPLATES, resources.TOOL, resources.OFFICIAL, resources.ALL_GRAPHS]
    assert [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in told] == frozen


def test_prompts(frozen: SnapshotAssertion) -> None:
    filled = {"question": "{question}", "topic": "{topic}", "graph": "{graph}"}
    listed = {
        prompt.name: [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in prompt.arguments]
        for prompt in PROMPTS.values()
    }
    assert [listed, {prompt.name: prompt.text(filled) for prompt in PROMPTS.values()}] == frozen


def test_error_codes(frozen: SnapshotAssertion) -> None:
    assert sorted(ErrorCode) == frozen


def test_audited_actions(frozen: SnapshotAssertion) -> None:
    assert sorted(Action) == frozen


def test_migrations(frozen: SnapshotAssertion) -> None:
    assert {migration.name: migration.checksum for migration in migrations()} == frozen


async def test_openapi(frozen: SnapshotAssertion, gateway: RunningGateway) -> None:
    async with gateway.http() as http:
        response = await http.get("/v1/openapi.json")
    document: dict[str, Any] = response.json()
    assert document["info"].pop("version")
    assert document == frozen
