"""An agent that mistypes a word is told what was searched for instead, and gets the answer to that."""

import httpx2
from mcp import Client

from tests.contract.conftest import ConnectedClient
from tests.support.gateway import LEGACY, RunningGateway, answer, texts_of

RIGHT, MISTYPED = "Which instrument does Mira play?", "Which instruemnt does Mira play?"


async def test_recall_says_what_it_searched_for(connected: ConnectedClient, key: str) -> None:
    client: Client = await connected(key, "/mcp", LEGACY)
    await answer(client, "remember", items=[{"text": "Mira plays an old instrument, the viola."}])
    expected = await answer(client, "recall", query=RIGHT)
    assert "searched_for" not in expected
    result = await client.call_tool("recall", {"query": MISTYPED})
    assert result.structured_content == {**expected, "searched_for": [RIGHT]}
    assert texts_of(result)[0].startswith(f"Searched for: {RIGHT}\n- Mira plays")


async def test_the_route_says_so_too(gateway: RunningGateway, key: str) -> None:
    async with httpx2.AsyncClient(base_url=gateway.url, headers={"Authorization": f"Bearer {key}"}) as client:
        told = await client.post("/v1/graphs/default/recall", json={"query": MISTYPED})
    assert told.json()["searched_for"] == [RIGHT]
