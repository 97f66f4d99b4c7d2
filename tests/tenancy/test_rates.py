"""Rates are counted per tenant and per key, with Redis and without it, and in the keys in Redis."""

from collections.abc import Iterator

import pytest
from redis.asyncio import Redis

from recollect.accounts.identity.model import hash_secret
from recollect.settings import Settings
from recollect_local.valkey import LocalValkey
from tests.support.gateway import NewApiKey, RunningGateway, serving
from tests.support.rates import NewLimited, flood, list_graphs, reported_limits, under_way
from tests.support.timeouts import MAX_WAIT_SECONDS

QUOTA = 6


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalValkey]:
    server = LocalValkey(tmp_path_factory.mktemp("valkey"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=[True, False], ids=["with Redis", "without"])
def gateway(request: pytest.FixtureRequest, settings: Settings, valkey: LocalValkey) -> Iterator[RunningGateway]:
    """A gateway that counts in Redis, and one whose Redis is away, which grants by itself."""
    url = valkey.url if request.param else f"{valkey.url}.none"
    own = {"redis_url": url, "rate_limit_wait_seconds": MAX_WAIT_SECONDS, "rate_limit_local_share": 1.0}
    with serving(settings.model_copy(update=own)) as gateway:
        yield gateway


@pytest.mark.proves("security: rate-limits")
async def test_requests_of_one_tenant_do_not_count_for_another(
    gateway: RunningGateway, issue: NewApiKey, new_limited: NewLimited
) -> None:
    """Also if both have the same plan, and keys of the same name."""
    one, two = [(await issue(await new_limited(requests_per_minute=QUOTA))).secret for _ in range(2)]
    async with gateway.http(one) as flooding, gateway.http(two) as other:
        assert await flood([flooding], 3 * QUOTA) == {200: QUOTA, 429: 2 * QUOTA}
        assert reported_limits(await list_graphs(other))["tenant"].remaining == QUOTA - 1
        assert await flood([other], QUOTA) == {200: QUOTA - 1, 429: 1}


async def test_requests_of_one_key_do_not_count_for_another(
    gateway: RunningGateway, issue: NewApiKey, new_limited: NewLimited
) -> None:
    """Its refused requests do not count for the tenant, either."""
    caller = await new_limited(requests_per_minute=2 * QUOTA, key_requests_per_minute=QUOTA)
    one, two = [(await issue(caller)).secret for _ in range(2)]
    async with gateway.http(one) as flooding, gateway.http(two) as other:
        assert await flood([flooding], 3 * QUOTA) == {200: QUOTA, 429: 2 * QUOTA}
        left = reported_limits(await list_graphs(other))
        assert (left["key"].remaining, left["tenant"].remaining) == (QUOTA - 1, QUOTA - 1)
        assert await flood([other], QUOTA) == {200: QUOTA - 1, 429: 1}


async def test_concurrent_calls_are_counted_per_tenant(
    settings: Settings, issue: NewApiKey, new_limited: NewLimited
) -> None:
    """Also for two tenants with equal limits."""
    one, two = [(await issue(await new_limited(concurrent_calls=1))).secret for _ in range(2)]
    with serving(settings) as gateway, under_way(gateway, one):
        async with gateway.http(one) as flooding, gateway.http(two) as other:
            assert (await list_graphs(flooding)).json()["code"] == "too_many_concurrent_calls"
            assert await flood([other], 1) == {200: 1}


async def test_keys_in_redis_name_the_tenant_and_contain_no_secret(
    settings: Settings, valkey: LocalValkey, issue: NewApiKey, new_limited: NewLimited
) -> None:
    caller = await new_limited(requests_per_minute=QUOTA, key_requests_per_minute=QUOTA)
    issued = await issue(caller)
    own = {"redis_url": valkey.url, "rate_limit_wait_seconds": MAX_WAIT_SECONDS}
    with serving(settings.model_copy(update=own)) as gateway:
        async with gateway.http(issued.secret) as client, Redis.from_url(valkey.url) as redis:
            await redis.flushall()
            assert (await list_graphs(client)).status_code == 200
            keys = {key.decode() async for key in redis.scan_iter("recollect:rate:*") if b"failed_keys" not in key}
            values = [await redis.get(key) for key in keys]
    own_keys = f"recollect:rate:{{{caller.tenant_id}}}"
    assert keys == {own_keys, f"{own_keys}:key:{issued.key.id}"}
    assert values == [b"1", b"1"]
    pepper = settings.key_secret.get_secret_value().encode()
    for secret in (issued.secret, issued.secret.split("_")[2][:8], hash_secret(issued.secret, pepper).hex()):
        assert not any(secret in key for key in keys)
