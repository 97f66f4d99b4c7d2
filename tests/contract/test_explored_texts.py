"""`explore` tells of each node the newest that is known, however much that is."""

import pytest
from mcp import Client

from tests.contract.conftest import ConnectedClient
from tests.support.gateway import LEGACY, answer


@pytest.fixture
async def client(connected: ConnectedClient, key: str) -> Client:
    return await connected(key, "/mcp/x/all", LEGACY)


async def told(client: Client) -> str:
    [node] = (await answer(client, "explore", start="Hub"))["nodes"]
    return str(node["text"])


async def test_the_newest_of_many_observations_comes_first(client: Client) -> None:
    notes = [f"note {number} of the hub" for number in range(300)]
    await answer(client, "create_entities", entities=[{"name": "Hub", "entityType": "t", "observations": notes}])
    assert (await told(client)).startswith("note 299 of the hub; note 298 of the hub; ")
    await answer(client, "remember", items=[{"text": "the newest note", "about": ["Hub"]}])
    text = await told(client)
    assert text.startswith("the newest note; note 299 of the hub; ")
    assert (len(text), text[-1]) == (300, "…")


async def test_a_long_text_of_its_own_leaves_room_for_the_newest_observation(client: Client) -> None:
    entity = {"name": "Hub", "entityType": "t", "observations": [], "content": "long " * 1_000}
    await answer(client, "create_entities", entities=[entity])
    assert len(await told(client)) == 300
    await answer(client, "remember", items=[{"text": "the newest note", "about": ["Hub"]}])
    text = await told(client)
    assert text.startswith("long long ")
    assert text.endswith("…; the newest note")
