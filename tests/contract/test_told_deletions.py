"""A deletion says what it deleted and what was not there, in the words of the official server (servers#4740)."""

from typing import Any

import pytest
from mcp import Client

from tests.contract.conftest import ConnectedClient
from tests.support.gateway import LEGACY, RunningGateway, answer, text_of

ALICE = {"name": "Alice", "entityType": "person", "observations": ["likes tea", "lives in Oslo"]}
KNOWS = {"from": "Alice", "to": "Bob", "relationType": "knows"}


@pytest.fixture(params=["memory", "organize"])
async def client(request: pytest.FixtureRequest, connected: ConnectedClient, key: str) -> Client:
    client = await connected(key, f"/mcp/x/{request.param}", LEGACY)
    await answer(client, "create_entities", entities=[ALICE])
    await answer(client, "create_relations", relations=[KNOWS])
    return client


async def told(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.structured_content == {"success": True, "message": text_of(result)}
    return text_of(result)


async def test_entities(client: Client) -> None:
    message = await told(client, "delete_entities", entityNames=["Alice", "Alise"])
    assert message == "Deleted 1 of 2 entities. Not found: Alise"
    assert await told(client, "delete_entities", entityNames=["Alice"]) == "Deleted 0 of 1 entities. Not found: Alice"


async def test_observations(client: Client) -> None:
    """Unknown entities are named as the official server does; what a known entity does not say is named, too."""
    deletions = [
        {"entityName": "Alice", "observations": ["likes tea", "never\nsaid"]},
        {"entityName": "Nobody", "observations": ["x"]},
    ]
    assert await told(client, "delete_observations", deletions=deletions) == (
        "Deleted 1 of 3 observations. Entities not found: Nobody. Observations not found: Alice: never said"
    )
    rest = [{"entityName": "Alice", "observations": ["lives in Oslo"]}]
    assert await told(client, "delete_observations", deletions=rest) == "Observations deleted successfully"


async def test_relations(client: Client) -> None:
    gone = [KNOWS, KNOWS | {"relationType": "unheard_of"}, KNOWS | {"from": "Nobody"}]
    assert await told(client, "delete_relations", relations=gone) == (
        "Deleted 1 of 3 relations. The rest matched nothing: Alice unheard_of Bob, Nobody knows Bob"
    )
    assert await told(client, "delete_relations", relations=[]) == "Relations deleted successfully"


async def test_the_list_of_what_was_not_found_is_bounded(client: Client) -> None:
    message = await told(client, "delete_entities", entityNames=[f"{n:03d}{'x' * 500}" for n in range(300)])
    assert message.startswith("Deleted 0 of 300 entities. Not found: 000")
    assert message.endswith(" and 280 more")
    assert len(message) < 3_000


async def test_forget_names_what_it_does_not_know(gateway: RunningGateway, key: str) -> None:
    async with gateway.client(key, "/mcp/x/agent") as client:
        [memory] = (await answer(client, "remember", items=[{"text": "Tea is at five"}]))["memories"]
        unknown = "01234567-89ab-7def-8123-456789abcdef"
        result = await client.call_tool("forget", {"ids": [memory["id"], unknown], "names": ["Alise"]})
        assert result.structured_content == {"forgotten": [memory["id"]], "not_found": [unknown, "Alise"]}
        assert text_of(result) == f"forgotten: 1 of 3; not found: {unknown}, Alise"
