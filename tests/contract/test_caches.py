"""The caches as clients see them, on two gateways, through every tool that searches by meaning."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway, eventually, rpc_headers, serving

ALDER = "the heron nests in the alder"
SEARCHES = (
    ("recall", {"query": "heron alder"}),
    ("recall", {"queries": ["heron alder", "who nests?"], "explain": True}),
    ("search", {"query": "heron alder"}),
    ("search_graph", {"text": "heron alder"}),
)


@dataclass(frozen=True)
class CachesClient:
    """One key at one gateway."""

    gateway: RunningGateway
    http: httpx2.AsyncClient

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.gateway.call(self.http, tool, arguments, path="/mcp/x/all")
        assert not result["isError"], result
        structured: dict[str, Any] = result["structuredContent"]
        return structured

    async def texts(self, query: str = "heron alder") -> list[str]:
        return [memory["text"] for memory in (await self("recall", query=query))["memories"]]

    async def hit_rates(self) -> tuple[float, float]:
        """The hit rates of embeddings and of searches."""
        cache = (await self("health_check"))["cache"]
        return cache["embeddings"]["hit_rate"], cache["search"]["hit_rate"]


@pytest.fixture(scope="module")
def patient(settings: Settings) -> Settings:
    """Settings of gateways that wait longer for Redis than by default, for slow machines."""
    return settings.model_copy(update={"cache_search_wait_seconds": 1.0, "cache_search_maxsize": 5})


@pytest.fixture(scope="module")
def gateways(patient: Settings) -> Iterator[list[RunningGateway]]:
    with ExitStack() as both:
        yield [both.enter_context(serving(patient)) for _ in range(2)]


@pytest.fixture
async def clients(gateways: list[RunningGateway], key: str) -> AsyncIterator[list[CachesClient]]:
    async with gateways[0].http(key, **rpc_headers()) as one, gateways[1].http(key, **rpc_headers()) as two:
        yield [CachesClient(gateways[0], one), CachesClient(gateways[1], two)]


async def settled() -> None:
    """Results are cached in the background, mostly within this time; no test here relies on it."""
    await asyncio.sleep(0.1)


async def test_a_cached_answer_equals_that_of_the_search(clients: list[CachesClient]) -> None:
    first, second = clients
    await first("remember", items=[{"text": ALDER, "about": ["Heron"]}, {"text": "an alder by the river"}])
    for tool, arguments in SEARCHES:
        answers = []
        for client in (first, second, first, second):
            answers.append(await client(tool, **arguments))
            await settled()
        assert answers == [answers[0]] * 4
        assert answers[0].get("memories") or answers[0].get("results") or answers[0].get("hits")
    for client in clients:
        embeddings, searches = await client.hit_rates()
        assert embeddings > 0.5
        assert searches > 0


@pytest.mark.proves("graph-contract: cached-searches-are-fresh")
async def test_every_change_is_visible_at_once_through_another_gateway(clients: list[CachesClient]) -> None:
    one, two = clients
    remembered = await one("remember", items=[{"text": ALDER}])
    fact = remembered["memories"][0]["id"]

    async def cached_by_both(expected: list[str]) -> None:
        for client in (one, two, one, two):
            assert sorted(await client.texts("alder")) == sorted(expected)
            await settled()

    await cached_by_both([ALDER])
    await two("create_node", text="a second alder")
    await cached_by_both([ALDER, "a second alder"])
    await one("update_node", node_id=fact, text="the heron left the alder")
    await cached_by_both(["the heron left the alder", "a second alder"])
    await two("mark_outdated", fact_id=fact)
    await cached_by_both(["a second alder"])
    await one("create_entities", entities=[{"name": "Owl", "entityType": "bird", "observations": ["likes the alder"]}])
    await cached_by_both(["a second alder", "likes the alder"])
    await two("create_triplet", subject="Owl", predicate="KNOWS", object_value="Rain")
    await two("delete_entities", entityNames=["Owl"])
    await cached_by_both(["a second alder"])
    await one("delete_node", node_id=fact)
    assert (await one.hit_rates())[1] > 0, "the cache did answer"


async def test_tenants_with_the_same_question_and_graph_share_no_answers(
    clients: list[CachesClient], gateways: list[RunningGateway], issue: NewApiKey, new_tenant: NewTenant
) -> None:
    issued = await issue(operator_caller(await new_tenant()))
    async with gateways[0].http(issued.secret, **rpc_headers()) as http:
        stranger = CachesClient(gateways[0], http)
        await clients[0]("remember", items=[{"text": ALDER}])
        await stranger("remember", items=[{"text": "the stranger's alder"}])
        for _ in range(3):
            assert await clients[0].texts() == [ALDER]
            assert await stranger.texts() == ["the stranger's alder"]
            for tool, arguments in SEARCHES:
                assert ALDER not in str(await stranger(tool, **arguments))
            await settled()
        assert (await stranger("health_check"))["cache"]["search"]["size"] <= 5


@pytest.mark.proves("graph-contract: caches")
async def test_health_check_reports_sizes_bounds_and_hit_rates(clients: list[CachesClient]) -> None:
    client = clients[0]
    await client("remember", items=[{"text": ALDER}])
    for _ in range(4):
        await client("recall", query="heron alder")
    cache = (await client("health_check"))["cache"]
    assert cache["embeddings"] == {"enabled": True, "size": 1, "maxsize": 1000, "hit_rate": 0.75}
    assert cache["search"] | {"size": 1, "hit_rate": 0} == {
        "enabled": True,
        "size": 1,
        "maxsize": 5,
        "ttl": 60,
        "hit_rate": 0,
    }

    async def answered() -> bool:
        await client("recall", query="heron alder")
        return 0 < (await client.hit_rates())[1] < 1

    async def full() -> bool:
        cache = (await client("health_check"))["cache"]
        return (cache["embeddings"]["size"], cache["search"]["size"]) == (9, 5)

    await eventually(answered)
    for number in range(8):
        await client("recall", query=f"heron {number}")
    await eventually(full)


@pytest.mark.proves("graph-contract: caches-can-be-off")
async def test_searches_work_with_caches_switched_off(settings: Settings, key: str) -> None:
    off = settings.model_copy(update={"cache_embeddings_enabled": False, "cache_search_enabled": False})
    with serving(off) as gateway:
        async with gateway.http(key, **rpc_headers()) as http:
            client = CachesClient(gateway, http)
            await client("remember", items=[{"text": ALDER}])
            for _ in range(2):
                assert await client.texts() == [ALDER]
            assert (await client("health_check"))["cache"] == {
                "embeddings": {"enabled": False, "size": 0, "maxsize": 0, "hit_rate": 0.0},
                "search": {"enabled": False, "size": 0, "maxsize": 0, "ttl": 0, "hit_rate": 0.0},
            }
