"""The tools of every toolset can be passed on to the API of any model, as they are listed."""

import pytest

from recollect_gateway.mcp_endpoint.schema import listed_schema
from recollect_gateway.mcp_endpoint.tools import TOOLSETS
from recollect_gateway.mcp_endpoint.tools.agent.recall import Recall
from recollect_gateway.mcp_endpoint.tools.organize.set_entity_parent import SetEntityParent
from tests.support.gateway import RunningGateway, rpc_headers
from tests.support.model_apis import faults_of_tool


async def test_the_listed_schemas_are_in_the_subset_of_every_model_api(
    gateway: RunningGateway, key: str, subtests: pytest.Subtests
) -> None:
    async with gateway.http(key, **rpc_headers()) as http:
        for toolset in sorted({*TOOLSETS, "all"}):
            with subtests.test(toolset):
                answer = await gateway.post(http, "tools/list", {}, path=f"/mcp/x/{toolset}")
                tools = answer["result"]["tools"]
                found = [f"{tool['name']} {fault}" for tool in tools for fault in faults_of_tool(tool)]
                assert tools
                assert found == []


def test_a_union_is_listed_as_its_text() -> None:
    """A revision may be sent as a number or as text, and a parent as null or as an empty text."""
    assert listed_schema(Recall)["properties"]["as_of"] == {"type": "string"}
    parent = listed_schema(SetEntityParent)["properties"]["parentName"]
    assert parent == {"type": "string", "description": "The new parent; null or empty: makes it a root"}
