"""A gateway whose embedder answers vectors of another length than configured says so, and serves all the same."""

from collections.abc import Iterator

import httpx2
import pytest

from recollect.settings import Settings
from tests.support.embedding_server import DIMENSIONS, EmbeddingServer, embeddings, serving_embeddings
from tests.support.gateway import RunningGateway, answer, eventually, serving


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with serving_embeddings() as server:
        yield server


def remote(settings: Settings, server: EmbeddingServer, dimensions: int) -> Settings:
    changed = {"embedder": "openai", "embedding_url": server.url, "embedding_dimensions": dimensions}
    return settings.model_copy(update=changed)


async def ready(http: httpx2.AsyncClient) -> dict[str, str]:
    """What `/health/ready` says, which must be that the gateway is ready."""
    answer = await http.get("/health/ready")
    assert answer.status_code == 200, "its calls work, by words alone"
    said: dict[str, str] = answer.json()
    return said


async def test_a_wrong_length_is_told_from_the_start(settings: Settings, server: EmbeddingServer, key: str) -> None:
    with serving(remote(settings, server, DIMENSIONS + 1)) as gateway:
        async with gateway.http() as http:

            async def degraded() -> bool:
                return (await ready(http))["status"] == "degraded"

            await eventually(degraded)
            detail = (await ready(http))["detail"]
            assert f"length {DIMENSIONS} where RECOLLECT_EMBEDDING_DIMENSIONS is {DIMENSIONS + 1}" in detail
        await remember_and_find(gateway, key)


async def test_a_right_length_is_fine_and_a_change_of_it_is_told(
    settings: Settings, server: EmbeddingServer, key: str
) -> None:
    with serving(remote(settings, server, DIMENSIONS)) as gateway:
        async with gateway.http() as http, gateway.client(key, "/mcp") as client:
            await remember_and_find(gateway, key)
            assert await ready(http) == {"status": "ok"}
            server.mischief = lambda: embeddings((0, [1.0] * (DIMENSIONS - 1)))
            await answer(client, "recall", query="another question")
            assert (await ready(http))["status"] == "degraded"
            server.mischief = lambda: None
            await answer(client, "recall", query="a third question")
            assert await ready(http) == {"status": "ok"}


async def test_an_embedder_that_is_away_is_no_wrong_configuration(
    settings: Settings, server: EmbeddingServer, key: str
) -> None:
    changed = {"embedder": "openai", "embedding_url": "http://127.0.0.1:9/v1", "embedding_dimensions": DIMENSIONS}
    with serving(settings.model_copy(update=changed)) as gateway:
        await remember_and_find(gateway, key)
        async with gateway.http() as http:
            assert await ready(http) == {"status": "ok"}


async def remember_and_find(gateway: RunningGateway, key: str) -> None:
    async with gateway.client(key, "/mcp") as client:
        await answer(client, "remember", items=[{"text": "Ada drinks tea"}])
        assert (await answer(client, "recall", query="tea"))["memories"]
