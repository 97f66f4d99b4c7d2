"""Quotas as clients see them, at two gateways, by tools, routes and jobs."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from tests.support.gateway import NewApiKey, RunningGateway, rpc_headers, serving
from tests.support.jobs import employed, look, started
from tests.support.quotas import limit

WRITERS = 30


@pytest.fixture(scope="module")
def gateways(settings: Settings) -> Iterator[tuple[RunningGateway, RunningGateway]]:
    """Two gateways, each with its own connections."""
    with serving(settings) as one, serving(settings) as other:
        yield one, other


@pytest.fixture
async def https(
    gateways: tuple[RunningGateway, RunningGateway], key: str
) -> AsyncIterator[tuple[httpx2.AsyncClient, httpx2.AsyncClient]]:
    """A client of each gateway."""
    one, other = gateways
    async with one.http(key, **rpc_headers()) as first, other.http(key, **rpc_headers()) as second:
        yield first, second


@pytest.fixture
async def http(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield http


@pytest.fixture
async def context(settings: Settings, db: Database) -> AsyncIterator[WorkerContext]:
    async with employed(settings, db) as context:
        yield context


async def use(http: httpx2.AsyncClient) -> dict[str, tuple[int | None, int | None]]:
    """The limit and the use of each quota, from /v1/plan."""
    told = await http.get("/v1/plan")
    assert told.status_code == 200, told.text
    return {one["quota"]: (one["limit"], one["used"]) for one in told.json()["quotas"]}


@pytest.mark.proves("enhanced-server: max-entities", "security: quotas")
@pytest.mark.parametrize("quota", ["observations", "nodes_per_graph", "graphs"])
async def test_writers_at_two_gateways_together_reach_exactly_the_limit(
    https: tuple[httpx2.AsyncClient, httpx2.AsyncClient], operator: Operator, tenant: Tenant, quota: str
) -> None:
    """Writers of one graph and of many: some succeed, and all others get the quota error."""
    room = 9
    await limit(operator, tenant.slug, **{quota: room})

    async def write(number: int) -> httpx2.Response:
        graph = "default" if quota == "nodes_per_graph" else f"graph-{number % 15}"
        entity = {"name": f"entity {number}", "entityType": "thing", "observations": ["says so"]}
        return await https[number % 2].post(f"/v1/graphs/{graph}/import", json={"entities": [entity]})

    answers = await asyncio.gather(*(write(number) for number in range(WRITERS)))
    refused = [answer for answer in answers if answer.status_code != 200]
    assert {(answer.status_code, answer.json()["code"]) for answer in refused} == {(403, "quota_exceeded")}
    assert (await use(https[0]))[quota] == (room, room)
    if quota != "graphs":
        assert WRITERS - len(refused) == room


async def test_a_tool_returns_the_quota_error_too(
    gateway: RunningGateway, http: httpx2.AsyncClient, operator: Operator, tenant: Tenant
) -> None:
    plan = await limit(operator, tenant.slug, nodes_per_graph=1)
    for number, tool, arguments in (
        (0, "remember", {"items": [{"text": "tea is hot"}]}),
        (1, "remember", {"items": [{"text": "tea is cold"}]}),
        (1, "create_entities", {"entities": [{"name": "Ada", "entityType": "person", "observations": []}]}),
    ):
        result = await gateway.call(http, tool, arguments, path="/mcp/x/all")
        assert result["isError"] is bool(number), result
        if number:
            assert result["_meta"][ERROR_META]["code"] == "quota_exceeded"
            told = result["content"][0]["text"]
            assert f"The plan '{plan}' allows 1 entities, facts and placeholders in a graph." in told
            assert "There are 1, and this would add 1." in told
            assert "ask for a larger plan" in told


async def test_a_larger_plan_takes_effect_with_the_next_call(
    http: httpx2.AsyncClient, operator: Operator, tenant: Tenant
) -> None:
    body = {"items": [{"text": "tea is hot"}, {"text": "tea is cold"}]}
    await limit(operator, tenant.slug, nodes_per_graph=1)
    refused = await http.post("/v1/graphs/default/memories", json=body)
    assert (refused.status_code, refused.json()["code"]) == (403, "quota_exceeded")
    await limit(operator, tenant.slug, nodes_per_graph=2)
    assert (await http.post("/v1/graphs/default/memories", json=body)).status_code == 200


async def test_an_import_over_quota_fails_keeps_its_batches_and_can_be_repeated(
    http: httpx2.AsyncClient,
    context: WorkerContext,
    operator: Operator,
    tenant: Tenant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("recollect.transfer.batches.BATCH_ITEMS", 4)
    names = [{"name": f"e{n}", "entityType": "thing", "observations": []} for n in range(10)]
    content = json.dumps({"entities": names}).encode()
    await limit(operator, tenant.slug, nodes_per_graph=9)
    for room, status, entities in ((9, "failed", 8), (10, "succeeded", 10)):
        await limit(operator, tenant.slug, nodes_per_graph=room)
        job = await started(
            await http.post("/v1/graphs/default/imports", content=content, headers={"Content-Type": "application/json"})
        )
        await job_loop.sweep(context)
        job = await look(http, job)
        assert (job["status"], (await use(http))["nodes_per_graph"]) == (status, (room, entities)), job
        if status == "failed":
            assert job["error"]["code"] == "quota_exceeded"
            assert "allows 9 entities, facts and placeholders in a graph" in job["error"]["message"]


async def test_every_key_can_read_the_plan(
    gateway: RunningGateway, http: httpx2.AsyncClient, operator: Operator, tenant: Tenant, issue: NewApiKey
) -> None:
    caller = operator_caller(tenant)
    unlimited = (await http.get("/v1/plan")).json()
    assert unlimited["plan"] == "unlimited"
    assert {one["limit"] for one in unlimited["quotas"]} == {None}
    assert set(unlimited["rates"].values()) == {None}
    await tenants.set_plan(operator, tenant.slug, "free")
    await http.post("/v1/graphs/default/memories", json={"items": [{"text": "tea is hot"}]})
    told = await use(http)
    assert told["nodes_per_graph"] == (10_000, 1)
    assert told["graphs"] == (10, 1)
    assert told["stored_bytes"][1]
    assert told["embeddings_per_day"] == (50_000, 0)
    assert (await http.get("/v1/plan")).json()["rates"] == {
        "requests_per_minute": 600,
        "key_requests_per_minute": 300,
        "concurrent_calls": 10,
    }
    async with gateway.http((await issue(caller, scopes=frozenset(), toolsets=("agent",))).secret) as bare:
        assert await use(bare) == told
    async with gateway.http() as nobody:
        assert (await nobody.get("/v1/plan")).status_code == 401
