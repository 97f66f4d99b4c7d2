"""Two gateways with a replica, over HTTP: reads include what the other gateway acknowledged, and never fail."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest
from mcp_types import ResourceTemplateReference

from recollect.caller import Caller
from recollect.postgres import replicas
from recollect.transfer.exports import PAGE_ITEMS
from recollect_gateway.mcp_endpoint.prompts_and_resources.resource_uris import NODE_TEMPLATE
from recollect_workers.main import run
from tests.support.gateway import RunningGateway, answer, eventually, issue_key, serving
from tests.support.measured import Measured
from tests.support.replicas import NewTenantOfPair, Pair, outcomes

ROUNDS = 24
"""Random rounds; tests/integration/graph/test_replicas.py has more, without a transport."""


@pytest.fixture(scope="module")
def gateways(pair: Pair) -> Iterator[list[RunningGateway]]:
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(replicas, "PAUSE_SECONDS", 0.1)  # The replica is used again within a test.
        yield [stack.enter_context(serving(pair.settings)) for _ in range(2)]


@pytest.fixture
async def key(pair: Pair, new_tenant_of_pair: NewTenantOfPair) -> str:
    """The key of an administrator of a tenant that the test has to itself."""
    caller: Caller = await new_tenant_of_pair()
    async with pair.opened() as reader:
        return (await issue_key(reader.db, pair.settings, caller, kind="admin")).secret


@pytest.fixture
async def clients(gateways: list[RunningGateway], key: str, pair: Pair) -> AsyncIterator[list[httpx2.AsyncClient]]:
    """A client of each gateway. The replica replays again after the test."""
    async with gateways[0].http(key) as one, gateways[1].http(key) as other:
        yield [one, other]
    await pair.resume()


async def remember(http: httpx2.AsyncClient, text: str) -> str:
    """Store a fact; return its id."""
    kept = await http.post("/v1/graphs/default/memories", json={"items": [{"text": text}]})
    assert kept.status_code == 200, kept.text
    return str(kept.json()["memories"][0]["node"])


async def recall(http: httpx2.AsyncClient, query: str) -> list[str]:
    found = await http.post("/v1/graphs/default/recall", json={"query": query})
    assert found.status_code == 200, found.text
    return [hit["text"] for hit in found.json()["memories"]]


async def test_a_write_acknowledged_by_one_gateway_is_read_by_the_other_at_any_replica_lag(
    pair: Pair, clients: list[httpx2.AsyncClient], measured: Measured
) -> None:
    choice = random.Random(15)
    for turn in range(ROUNDS):
        await pair.disturb(choice)
        writer, reader = choice.sample(clients, 2)
        kept = await remember(writer, f"The word of turn {turn} is w{choice.randrange(10**9)}.")
        if choice.random() < 0.5:
            assert (await reader.get(f"/v1/graphs/default/nodes/{kept}")).status_code == 200
        else:
            listed = await reader.get("/v1/graphs/default/nodes", params={"limit": 200})
            assert kept in [node["id"] for node in listed.json()["items"]]
    told = outcomes(measured)
    assert told["behind"] >= 1
    assert sum(told.values()) == ROUNDS


async def test_all_kinds_of_heavy_reads_use_the_replica(
    pair: Pair, gateways: list[RunningGateway], clients: list[httpx2.AsyncClient], key: str, measured: Measured
) -> None:
    kept = await remember(clients[0], "Ada closes the depot at four.")
    await pair.catch_up()

    async def by_replica(asked: Any) -> int:
        before = outcomes(measured).get("replica", 0)
        await asked
        return outcomes(measured).get("replica", 0) - before

    http = clients[1]
    graph = "/v1/graphs/default"
    await recall(http, "depot")  # A gateway that has not read yet sends the replica additional queries.
    assert await by_replica(recall(http, "depot")) == 1
    paths = ("/nodes", f"/nodes/{kept}", f"/nodes/{kept}/history", f"/nodes/{kept}/relations", "/search?q=depot")
    for path in paths:
        assert await by_replica(http.get(graph + path)) == 1, path
    async with gateways[1].client(key, "/mcp/x/all") as client:
        assert await by_replica(answer(client, "recall", query="depot")) == 1
        assert await by_replica(answer(client, "explore", start=kept)) == 1
        assert await by_replica(answer(client, "export_graph", format="json")) == 1
        assert await by_replica(client.read_resource("recollect://graphs/default")) == 1
        assert await by_replica(answer(client, "remember", items=[{"text": "Grace opens it at nine."}])) == 0
        assert await by_replica(answer(client, "list_graphs")) == 0
    assert await by_replica(http.get("/v1/keys")) == 0


async def test_files_and_completions_are_read_from_the_replica(
    pair: Pair, gateways: list[RunningGateway], clients: list[httpx2.AsyncClient], key: str, measured: Measured
) -> None:
    numbers = range(PAGE_ITEMS + 1)
    entities = [{"name": f"Depot {number}", "entityType": "depot", "observations": []} for number in numbers]
    async with gateways[1].client(key, "/mcp/x/memory") as client:
        await answer(client, "create_entities", entities=entities)
        await pair.catch_up()
        await recall(clients[1], "depot")  # A gateway that has not read yet sends the replica additional queries.
        before = outcomes(measured)["replica"]
        node = ResourceTemplateReference(uri=NODE_TEMPLATE)
        named = await client.complete(node, {"name": "name_or_id", "value": "Depot 17"})
        assert named.completion.values[0] == "Depot 17"
        assert outcomes(measured)["replica"] == before + 1
    exported = await clients[1].get("/v1/graphs/default/export")
    assert len(exported.text.splitlines()) == len(entities)
    assert outcomes(measured)["replica"] >= before + 5, "two pages of entities, the facts, the relations"


async def test_export_jobs_read_from_the_replica(
    pair: Pair, clients: list[httpx2.AsyncClient], measured: Measured
) -> None:
    await remember(clients[0], "Ada closes the depot at four.")
    await pair.catch_up()
    job = (await clients[0].post("/v1/graphs/default/exports", json={})).json()["id"]
    before = outcomes(measured).get("replica", 0)
    stopping = asyncio.Event()
    working = asyncio.create_task(run(pair.settings.model_copy(update={"sweep_seconds": 0.1}), stopping))

    async def has_ended() -> bool:
        return str((await clients[0].get(f"/v1/jobs/{job}")).json()["status"]) == "succeeded"

    try:
        await eventually(has_ended)
    finally:
        stopping.set()
        await working
    assert "Ada closes the depot" in (await clients[0].get(f"/v1/jobs/{job}/output")).text
    assert outcomes(measured)["replica"] > before


async def test_no_call_fails_if_the_replica_is_killed_under_load(
    pair: Pair, clients: list[httpx2.AsyncClient], measured: Measured
) -> None:
    await remember(clients[0], "Ada closes the depot at four.")
    await pair.catch_up()
    done, is_over = 0, False

    async def ask(http: httpx2.AsyncClient) -> None:
        nonlocal done
        while not is_over:
            assert await recall(http, "depot")
            done += 1

    async def many() -> bool:
        return done >= more

    asking = [asyncio.create_task(ask(http)) for http in clients * 3]
    more = 20
    await eventually(many)
    pair.standby.kill()
    try:
        more = done + 40
        await eventually(many)
        for http in clients:
            assert (await http.get("/health/ready")).status_code == 200
    finally:
        pair.standby.start()
    before = outcomes(measured)["replica"]

    async def is_back() -> bool:
        return outcomes(measured)["replica"] > before

    await eventually(is_back)
    is_over = True
    await asyncio.gather(*asking)
    told = outcomes(measured)
    assert told["away"] >= 1
