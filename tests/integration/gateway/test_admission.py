"""Rate limits and concurrent calls of a tenant, a key and an address, over both transports, and their headers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack

import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from redis.asyncio import Redis

from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller
from recollect.settings import Settings
from recollect_gateway.callers import admission
from tests.support.gateway import NewApiKey, RunningGateway, eventually, rpc_headers, serving
from tests.support.rates import (
    LIST_TOOLS,
    Limit,
    NewLimited,
    ReportedLimit,
    flood,
    list_graphs,
    list_tools,
    reported_limits,
    under_way,
    unsent,
)
from tests.support.timeouts import MAX_WAIT_SECONDS

Ask = Callable[[httpx2.AsyncClient], Awaitable[httpx2.Response]]
BY_BOTH = pytest.mark.parametrize("ask", [list_graphs, list_tools], ids=["route", "MCP"])


async def test_calls_over_both_transports_are_reported_to_workers(
    patient: RunningGateway, issue: NewApiKey, settings: Settings, new_limited: NewLimited
) -> None:
    async with Redis.from_url(settings.redis_url) as redis:
        for ask in (list_graphs, list_tools):
            caller = await new_limited()
            async with patient.http((await issue(caller)).secret) as client:

                async def is_told(ask: Ask = ask, client: httpx2.AsyncClient = client, caller: Caller = caller) -> bool:
                    assert (await ask(client)).status_code == 200
                    return await redis.zscore("recollect:present", caller.tenant_id.bytes) is not None

                await eventually(is_told)


@pytest.fixture(scope="module")
def patient(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway that waits long enough for Redis."""
    with serving(settings.model_copy(update={"rate_limit_wait_seconds": MAX_WAIT_SECONDS})) as gateway:
        yield gateway


class TestRates:
    @BY_BOTH
    async def test_a_request_beyond_a_rate_limit_is_refused(
        self, patient: RunningGateway, issue: NewApiKey, new_limited: NewLimited, ask: Ask
    ) -> None:
        key = await issue(await new_limited(requests_per_minute=5, key_requests_per_minute=3))
        async with patient.http(key.secret) as client:
            answers = [await ask(client) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200] * 3 + [429] * 2
        assert [reported_limits(answer)["key"].remaining for answer in answers] == [2, 1, 0, 0, 0]
        assert [reported_limits(answer)["tenant"].remaining for answer in answers[:4]] == [4, 3, 2, 2]
        assert {(each.quota, each.window) for each in reported_limits(answers[0]).values()} == {(3, 60), (5, 60)}
        refused = answers[3]
        assert refused.headers["Content-Type"] == "application/problem+json"
        problem = refused.json()
        assert (problem["status"], problem["code"]) == (429, "rate_limited")
        seconds = reported_limits(refused)["key"].reset
        assert int(refused.headers["Retry-After"]) == seconds
        assert 1 <= seconds <= 61
        said = f"All 3 requests that this key may send in 60 seconds are used. Try again in {seconds} second"
        assert problem["detail"].startswith(said)

    async def test_rate_limits_are_shared_by_both_transports_and_all_keys_of_a_tenant(
        self, patient: RunningGateway, issue: NewApiKey, new_limited: NewLimited
    ) -> None:
        caller = await new_limited(requests_per_minute=8)
        async with AsyncExitStack() as stack:
            keys = [await issue(caller) for _ in range(2)]
            clients = [await stack.enter_async_context(patient.http(key.secret)) for key in keys]
            assert await flood(clients, 24) == {200: 8, 429: 16}

    async def test_every_answer_tells_what_is_left_of_the_limits(
        self, patient: RunningGateway, issue: NewApiKey, new_limited: NewLimited
    ) -> None:
        key = await issue(await new_limited(requests_per_minute=100))
        async with patient.http(key.secret) as client:
            answers = [
                await client.get("/v1/graphs/nowhere"),
                await client.get("/v1/graphs", params={"limt": 1}),
                await client.post("/v1/graphs/default/memories", content="{"),
                await client.options("/v1/graphs"),
                await client.get("/v1/keys"),
                await client.post("/mcp", content="{", headers=rpc_headers()),
                await client.post("/mcp/x/nothing", json=LIST_TOOLS, headers=rpc_headers()),
                await client.get("/v1/graphs/default/export"),
            ]
        assert [answer.status_code for answer in answers] == [404, 400, 400, 204, 403, 400, 400, 200]
        assert [reported_limits(answer) for answer in answers] == [
            {"tenant": ReportedLimit(100, 60, 99 - number, reported_limits(answer)["tenant"].reset)}
            for number, answer in enumerate(answers)
        ]

    async def test_without_limits_nothing_is_counted_or_reported(
        self, patient: RunningGateway, settings: Settings, key: str, tenant: Tenant
    ) -> None:
        async with patient.http(key) as client, Redis.from_url(settings.redis_url) as redis:
            assert await flood([client], 40) == {200: 40}
            for answer in (await list_graphs(client), await list_tools(client)):
                assert reported_limits(answer) == {}
            assert [found async for found in redis.scan_iter(f"*rate*{tenant.id}*")] == []

    @pytest.mark.parametrize("path", ["/mcp", "/v1/graphs/default/memories"])
    async def test_the_body_of_a_refused_request_is_not_read(
        self, patient: RunningGateway, issue: NewApiKey, new_limited: NewLimited, path: str
    ) -> None:
        key = (await issue(await new_limited(requests_per_minute=1))).secret
        async with patient.http(key) as client:
            assert (await list_graphs(client)).status_code == 200
        assert patient.write(unsent(key, path)).startswith(b"HTTP/1.1 429")

    async def test_a_changed_plan_applies_at_once(
        self, patient: RunningGateway, issue: NewApiKey, caller: Caller, tenant: Tenant, limit: Limit
    ) -> None:
        key = await issue(caller)
        async with patient.http(key.secret) as client:
            assert reported_limits(await list_graphs(client)) == {}
            await limit(tenant, requests_per_minute=2)
            assert await flood([client], 4) == {200: 2, 429: 2}
            await limit(tenant, requests_per_minute=3)
            # A client that was just refused is looked up again within a second.
            await eventually(lambda: serves(client))
            assert await flood([client], 4) == {429: 4}

    async def test_the_official_client_is_refused_and_does_not_hang(
        self, patient: RunningGateway, issue: NewApiKey, new_limited: NewLimited
    ) -> None:
        key = await issue(await new_limited(requests_per_minute=4))
        async with patient.client(key.secret) as client:
            with pytest.raises(MCPError):
                await list_often(client)


async def list_often(client: Client) -> None:
    for _ in range(5):
        await client.list_tools()


MOST = 3


@pytest.fixture(scope="module")
def few(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway that serves three calls of a tenant at once."""
    with serving(settings.model_copy(update={"concurrent_calls_per_tenant": MOST})) as gateway:
        yield gateway


class TestConcurrentCalls:
    @pytest.fixture
    async def at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """No call waits for another."""
        monkeypatch.setattr(admission, "CALL_WAIT_SECONDS", 0.001)

    @pytest.mark.usefixtures("at_once")
    @pytest.mark.parametrize("most", [None, 2], ids=["by the setting", "by the plan"])
    @BY_BOTH
    async def test_a_call_beyond_the_limit_of_concurrent_calls_is_refused(
        self, few: RunningGateway, issue: NewApiKey, new_limited: NewLimited, key: str, most: int | None, ask: Ask
    ) -> None:
        limits = {} if most is None else {"concurrent_calls": most}
        holding = (await issue(await new_limited(**limits))).secret
        async with few.http(holding) as client, few.http(key) as neighbour:
            with ExitStack() as stack:
                calls = [stack.enter_context(under_way(few, holding)) for _ in range(most or MOST)]
                refused = await ask(client)
                assert (refused.status_code, refused.json()["code"]) == (429, "too_many_concurrent_calls")
                assert f"{len(calls)} calls" in refused.json()["detail"]
                assert int(refused.headers["Retry-After"]) >= 1
                assert (await ask(neighbour)).status_code == 200
                calls[0].sendall(b"{}")
                assert calls[0].recv(65536).startswith(b"HTTP/1.1 400")
                await eventually(lambda: serves(client, ask))
            await eventually(lambda: serves_at_once(client, most or MOST))

    async def test_a_call_waits_a_while_for_a_place(
        self, few: RunningGateway, issue: NewApiKey, caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(admission, "CALL_WAIT_SECONDS", MAX_WAIT_SECONDS)
        key = (await issue(caller)).secret
        async with few.http(key) as client, AsyncExitStack() as stack:
            holding = [stack.enter_context(under_way(few, key)) for _ in range(MOST)]
            waiting = [asyncio.create_task(list_graphs(client)) for _ in range(MOST + 1)]
            done, _ = await asyncio.wait(waiting, timeout=MAX_WAIT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            assert [task.result().status_code for task in done] == [429], "as many wait as are served, and no more"
            holding[0].sendall(b"{}")
            answers = await asyncio.gather(*waiting)
            assert sorted(answer.status_code for answer in answers) == [200] * MOST + [429]

    @pytest.mark.usefixtures("at_once")
    async def test_a_streamed_answer_keeps_its_place_until_its_end(
        self, few: RunningGateway, issue: NewApiKey, new_limited: NewLimited
    ) -> None:
        key = (await issue(await new_limited(concurrent_calls=1))).secret
        async with few.http(key) as client:
            for part in range(4):
                assert (await import_lines(client, part)).status_code == 200
            async with client.stream("GET", "/v1/graphs/default/export") as export:
                assert export.status_code == 200
                parts = export.aiter_raw(1024)
                await anext(parts)
                async with few.http(key) as other:
                    assert (await list_graphs(other)).status_code == 429
                    async for _ in parts:
                        pass
                    await eventually(lambda: serves(other))


async def import_lines(client: httpx2.AsyncClient, part: int) -> httpx2.Response:
    """Import 3.6 MB; several times that is more than the buffers between a gateway and its client."""
    text = "x" * 9_000
    observations = f'["{text}a", "{text}b", "{text}c", "{text}d"]'
    lines = "\n".join(
        f'{{"type": "entity", "name": "{part}-{number}", "entityType": "t", "observations": {observations}}}'
        for number in range(100)
    )
    kind = {"Content-Type": "application/x-ndjson"}
    return await client.post("/v1/graphs/default/import", content=lines, headers=kind)


async def serves(client: httpx2.AsyncClient, ask: Ask = list_graphs) -> bool:
    return (await ask(client)).status_code == 200


async def serves_at_once(client: httpx2.AsyncClient, count: int) -> bool:
    """Whether no place is taken."""
    return await flood([client], count) == {200: count}


class TestAddresses:
    @pytest.fixture
    async def proxied(self, settings: Settings) -> AsyncIterator[RunningGateway]:
        """A gateway behind a trusted proxy, which reports the client addresses that a test chooses."""
        few = {
            "public_requests_per_minute": 3,
            "trusted_proxies": ["127.0.0.1/32"],
            "rate_limit_wait_seconds": MAX_WAIT_SECONDS,
        }
        with serving(settings.model_copy(update=few)) as gateway:
            yield gateway

    @pytest.mark.parametrize("path", ["/health/ready", "/v1/openapi.json"])
    async def test_requests_without_a_key_are_limited_by_address(self, proxied: RunningGateway, path: str) -> None:
        async with proxied.http() as client:

            async def ask(address: str) -> httpx2.Response:
                return await client.get(path, headers={"X-Forwarded-For": address})

            sites = ("2001:db8:0:1::1", "2001:db8:0:1::2", "192.0.2.1")
            answers = {site: [await ask(site) for _ in range(2)] for site in sites}
            statuses = [[answer.status_code for answer in answers[site]] for site in sites]
            assert statuses == [[200, 200], [200, 429], [200, 200]], "an IPv6 network is one client"
            assert [reported_limits(each)["address"].remaining for each in answers["192.0.2.1"]] == [2, 1]
            refused = answers["2001:db8:0:1::2"][1]
            assert refused.json()["code"] == "rate_limited"
            assert "this address" in refused.json()["detail"]
            assert {(await client.get("/health/live")).status_code for _ in range(10)} == {200}

    async def test_no_address_is_stored_in_redis(self, proxied: RunningGateway, settings: Settings) -> None:
        async with proxied.http() as client, Redis.from_url(settings.redis_url) as redis:
            await client.get("/health/ready", headers={"X-Forwarded-For": "198.51.100.77"})
            keys = [key async for key in redis.scan_iter("recollect:rate:*ready*")]
            assert keys
            assert not any(b"198.51" in key for key in keys)
