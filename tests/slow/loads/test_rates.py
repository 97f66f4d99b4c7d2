"""Rate limits apply to all gateways together while Redis is flushed, killed and back, and do not delay others."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import pytest
from redis.asyncio import Redis

from recollect.accounts.identity import store
from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.postgres.transactions import Session, Transaction
from recollect.settings import Settings
from recollect_local.valkey import LocalValkey
from tests.support.gateway import NewApiKey, RunningGateway, eventually, serving
from tests.support.rates import NewLimited, flood, list_graphs, list_tools, reported_limits
from tests.support.timeouts import MAX_WAIT_SECONDS

QUOTA = 40
SHARE = 0.25


@pytest.fixture
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalValkey]:
    server = LocalValkey(tmp_path_factory.mktemp("valkey"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def gateways(settings: Settings, valkey: LocalValkey) -> Iterator[list[RunningGateway]]:
    """Two gateways that wait for Redis as long as a busy machine may need; a killed Redis fails at once."""
    patient = {"rate_limit_wait_seconds": MAX_WAIT_SECONDS, "redis_timeout_seconds": MAX_WAIT_SECONDS}
    own = settings.model_copy(update={"redis_url": valkey.url, "rate_limit_local_share": SHARE, **patient})
    with serving(own) as one, serving(own) as two:
        yield [one, two]


@asynccontextmanager
async def clients_of(gateways: list[RunningGateway], secret: str) -> AsyncIterator[list[httpx2.AsyncClient]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(gateway.http(secret)) for gateway in gateways]


@pytest.fixture
async def limited(new_limited: NewLimited) -> Caller:
    """A tenant that may send QUOTA requests in a minute."""
    return await new_limited(requests_per_minute=QUOTA)


@pytest.fixture
async def clients(
    gateways: list[RunningGateway], issue: NewApiKey, limited: Caller
) -> AsyncIterator[list[httpx2.AsyncClient]]:
    """The clients of the limited tenant at both gateways."""
    async with clients_of(gateways, (await issue(limited)).secret) as clients:
        yield clients


@pytest.fixture
async def neighbour(gateways: list[RunningGateway], key: str) -> AsyncIterator[list[httpx2.AsyncClient]]:
    """The clients of another tenant, which has no limit."""
    async with clients_of(gateways, key) as clients:
        yield clients


@pytest.mark.proves("security: rate-limits")
async def test_two_gateways_together_admit_exactly_the_quota(
    clients: list[httpx2.AsyncClient], neighbour: list[httpx2.AsyncClient]
) -> None:
    assert await flood(clients, QUOTA - 3) == {200: QUOTA - 3}
    assert await flood(clients, 2 * QUOTA) == {200: 3, 429: 2 * QUOTA - 3}
    assert await flood(neighbour, QUOTA) == {200: QUOTA}


async def test_a_flush_of_redis_begins_one_new_minute(clients: list[httpx2.AsyncClient], valkey: LocalValkey) -> None:
    assert (await flood(clients, 2 * QUOTA))[200] == QUOTA
    async with Redis.from_url(valkey.url) as redis:
        await redis.flushall()
        await redis.script_flush()
    passed: Counter[int] = Counter()

    async def all_passed() -> bool:
        passed.update(await flood(clients, 8))
        return passed[200] >= QUOTA and passed[429] > QUOTA

    await eventually(all_passed)
    assert passed.keys() == {200, 429}
    assert passed[200] == QUOTA


async def test_flushes_at_any_moment_cause_no_errors(clients: list[httpx2.AsyncClient], valkey: LocalValkey) -> None:
    async with Redis.from_url(valkey.url) as redis:
        flooding = [asyncio.create_task(flood(clients, QUOTA)) for _ in range(5)]
        while not all(task.done() for task in flooding):
            await redis.flushall()
            await asyncio.sleep(0)
    assert sum((task.result() for task in flooding), Counter()).keys() <= {200, 429}


@pytest.mark.proves("security: rate-limits")
async def test_without_redis_each_gateway_grants_a_share_until_it_is_back(
    clients: list[httpx2.AsyncClient], neighbour: list[httpx2.AsyncClient], valkey: LocalValkey
) -> None:
    assert (await flood(clients, 2 * QUOTA))[200] == QUOTA
    valkey.stop()
    # No call waits or fails for that. A tenant that was just refused may be refused for another second.
    for client in clients:
        granted: Counter[int] = Counter()

        async def exhausted(client: httpx2.AsyncClient = client, granted: Counter[int] = granted) -> bool:
            granted.update(await flood([client], 4))
            return granted[200] >= QUOTA * SHARE

        await eventually(exhausted)
        assert granted.keys() <= {200, 429}
        refused = await list_tools(client)
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        assert reported_limits(refused)["tenant"].quota == QUOTA * SHARE
    assert await flood(neighbour, QUOTA) == {200: QUOTA}
    valkey.start()
    for client in clients:

        async def counted_there(client: httpx2.AsyncClient = client) -> bool:
            return reported_limits(await list_graphs(client))["tenant"].quota == QUOTA

        await eventually(counted_there)
    passed = (await flood(clients, 2 * QUOTA))[200]
    assert QUOTA - 2 <= passed <= QUOTA, "the window is a fresh one, and theirs together"


class TestRefusedRequests:
    @pytest.fixture
    def transactions(self, monkeypatch: pytest.MonkeyPatch) -> Counter[Any]:
        """The number of transactions that each tenant has begun."""
        counted: Counter[Any] = Counter()
        begin = Database.transaction

        @asynccontextmanager
        async def begin_and_count(self: Database, caller: Caller, **named: Any) -> AsyncIterator[Transaction]:
            counted[caller.tenant_id] += 1
            async with begin(self, caller, **named) as tx:
                yield tx

        monkeypatch.setattr(Database, "transaction", begin_and_count)
        return counted

    @pytest.fixture
    def lookups(self, monkeypatch: pytest.MonkeyPatch) -> Counter[bytes]:
        """How often each key was looked up in the database."""
        counted: Counter[bytes] = Counter()
        find_key = store.find_key

        async def find_and_count(session: Session, key_hash: bytes) -> store.KeyRecord | None:
            counted[key_hash] += 1
            return await find_key(session, key_hash)

        monkeypatch.setattr(store, "find_key", find_and_count)
        return counted

    async def test_refused_requests_reach_no_table_and_delay_no_one(
        self,
        clients: list[httpx2.AsyncClient],
        neighbour: list[httpx2.AsyncClient],
        limited: Caller,
        transactions: Counter[Any],
        lookups: Counter[bytes],
    ) -> None:
        remember = {"items": [{"text": "x" * 100_000}]}
        async with asyncio.TaskGroup() as group:
            floods = [group.create_task(flood(clients, 2 * QUOTA)) for _ in range(2)]
            beside = group.create_task(flood(neighbour, QUOTA))
        assert beside.result() == {200: QUOTA}
        assert sum((task.result() for task in floods), Counter()) == {200: QUOTA, 429: 3 * QUOTA}
        asked = lookups.total()
        for client in clients:
            assert await flood([client], QUOTA) == {429: QUOTA}
        assert lookups.total() - asked < QUOTA, "no key is looked up for each of them"
        # The usage of a tenant is written down by a transaction of its own, in a while.
        before = transactions[limited.tenant_id]
        answers = await asyncio.gather(
            *(client.post("/v1/graphs/default/memories", json=remember) for client in clients for _ in range(20))
        )
        assert {answer.status_code for answer in answers} == {429}
        assert transactions[limited.tenant_id] <= before + len(clients)
