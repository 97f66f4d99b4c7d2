"""Invented keys cause a bounded number of look-ups, and do not lock out valid keys."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest
from redis.asyncio import Redis

from recollect.accounts.identity import store
from recollect.accounts.identity.model import generate_secret
from recollect.accounts.identity.store import KeyRecord
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller
from recollect.errors import ErrorCode, TooManyRequests
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.transactions import Session
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.rate_limits.limiter import RateLimiter
from recollect.valkey.rate_limits.model import RateLimit
from recollect.valkey.rate_limits.process_counters import REMEMBERED
from recollect_http.failed_keys import KNOWN_INVALID_SECONDS, REMEMBERED_KEYS, FailedKeys
from recollect_local.valkey import LocalValkey
from tests.support.gateway import NewApiKey, RunningGateway, eventually, rpc_headers, serving
from tests.support.timeouts import MAX_WAIT_SECONDS

ALLOWED = 6
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalValkey]:
    """A Valkey for this file: all tests of a run have one address, from which many keys are refused."""
    server = LocalValkey(tmp_path_factory.mktemp("valkey"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def own(settings: Settings, valkey: LocalValkey) -> Settings:
    """Settings that allow few failures, of which none has happened yet."""
    await forget(valkey)
    few = {"failed_keys_per_minute": ALLOWED, "redis_url": valkey.url, "rate_limit_wait_seconds": MAX_WAIT_SECONDS}
    return settings.model_copy(update=few)


async def forget(valkey: LocalValkey) -> None:
    """Forget all failures, as a minute would do."""
    async with Redis.from_url(valkey.url) as redis:
        await redis.flushall()


@pytest.fixture
def strict(own: Settings) -> Iterator[RunningGateway]:
    """A gateway that allows few failures."""
    with serving(own) as gateway:
        yield gateway


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> Counter[bytes]:
    """How often each key was looked up in the database."""
    counted: Counter[bytes] = Counter()
    find_key = store.find_key

    async def find_and_count(session: Session, key_hash: bytes) -> KeyRecord | None:
        counted[key_hash] += 1
        return await find_key(session, key_hash)

    monkeypatch.setattr(store, "find_key", find_and_count)
    return counted


async def ask(gateway: RunningGateway, secret: str, **headers: str) -> httpx2.Response:
    async with gateway.http(secret, **headers) as http:
        return await http.get("/v1/graphs")


@pytest.mark.proves("security: guessed-keys")
async def test_invented_keys_beyond_a_bound_are_refused_without_a_look_up(
    strict: RunningGateway, valkey: LocalValkey, lookups: Counter[bytes], key: str, issue: NewApiKey, caller: Caller
) -> None:
    assert (await ask(strict, key)).status_code == 200
    answers = [await ask(strict, generate_secret("agent")) for _ in range(40)]
    assert [answer.status_code for answer in answers] == [401] * ALLOWED + [429] * (len(answers) - ALLOWED)
    assert lookups.total() == 1 + ALLOWED
    refused = answers[ALLOWED:]
    assert {answer.json()["code"] for answer in refused} == {"too_many_failures"}
    assert all(1 <= int(answer.headers["Retry-After"]) <= 61 for answer in refused)
    async with strict.http(generate_secret("agent"), **rpc_headers()) as http:
        assert (await http.post("/mcp", json=LIST_TOOLS)).status_code == 429
    # A key that was valid lately is looked up anyway, as many share an address; a new one when the minute is over.
    assert (await ask(strict, key)).status_code == 200
    new = await issue(caller)
    assert (await ask(strict, new.secret)).status_code == 429
    await forget(valkey)

    async def accepted() -> bool:
        return (await ask(strict, new.secret)).status_code == 200

    await eventually(accepted)
    assert (await ask(strict, new.secret)).status_code == 200


async def test_a_key_that_was_just_refused_is_not_looked_up_again(
    strict: RunningGateway, lookups: Counter[bytes]
) -> None:
    secret = generate_secret("agent")
    assert {(await ask(strict, secret)).status_code for _ in range(ALLOWED)} == {401}
    assert lookups.total() < ALLOWED

    async def asked_again() -> bool:
        before = lookups.total()
        await ask(strict, secret)
        return lookups.total() > before

    await eventually(asked_again)


async def test_a_malformed_key_does_not_count_as_a_failure(
    strict: RunningGateway, lookups: Counter[bytes], key: str
) -> None:
    assert {(await ask(strict, "rcl_agent_x")).status_code for _ in range(3 * ALLOWED)} == {401}
    assert (await ask(strict, key)).status_code == 200
    assert lookups.total() == 1


@pytest.mark.proves("security: guessed-keys")
async def test_a_revoked_key_is_refused_at_once(
    strict: RunningGateway, issue: NewApiKey, caller: Caller, admin_key: str
) -> None:
    issued = await issue(caller)
    assert (await ask(strict, issued.secret)).status_code == 200
    async with strict.http(admin_key) as http:
        assert (await http.delete(f"/v1/keys/{issued.key.id}")).status_code == 200
    assert (await ask(strict, issued.secret)).status_code == 401


async def test_a_resumed_tenant_is_served_at_once(
    strict: RunningGateway, operator: Operator, tenant: Tenant, key: str
) -> None:
    for _ in range(2):
        assert (await ask(strict, key)).status_code == 200
        await tenants.suspend_tenant(operator, tenant.slug)
        assert (await ask(strict, key)).status_code == 401
        await tenants.resume_tenant(operator, tenant.slug)


async def test_failures_are_counted_at_all_gateways_together(own: Settings, lookups: Counter[bytes]) -> None:
    with serving(own) as one, serving(own) as two:
        told = [(await ask(gateway, generate_secret("agent"))).status_code for gateway in (one, two) * ALLOWED]
    assert told == [401] * ALLOWED + [429] * ALLOWED
    assert lookups.total() == ALLOWED


@pytest.mark.proves("security: trusted-proxies")
async def test_only_a_trusted_proxy_can_name_another_address(own: Settings, valkey: LocalValkey, key: str) -> None:
    few = own.model_copy(update={"failed_keys_per_minute": 1})
    forwarded = [{"X-Forwarded-For": f"192.0.2.{number}"} for number in range(10)]
    with serving(few) as gateway:
        told = [(await ask(gateway, generate_secret("agent"), **each)).status_code for each in forwarded]
        assert told.count(401) == 1
    await forget(valkey)
    with serving(few.model_copy(update={"trusted_proxies": ["127.0.0.1/32"]})) as gateway:
        told = [(await ask(gateway, generate_secret("agent"), **each)).status_code for each in forwarded]
        assert told == [401] * 10
        assert (await ask(gateway, generate_secret("agent"), **forwarded[0])).status_code == 429
        assert (await ask(gateway, key, **{"X-Forwarded-For": "192.0.2.99, 192.0.2.200"})).status_code == 200


class TestMemory:
    """What a gateway remembers of refused keys."""

    @pytest.fixture
    async def forgetful(self, settings: Settings, tmp_path: Path) -> AsyncIterator[RateLimiter]:
        """A limiter whose Redis is away for ever, so that its state is in memory."""
        redis = connect_redis(settings.model_copy(update={"redis_url": f"unix://{tmp_path}/none.sock"}))
        limiter = RateLimiter(redis, wait_seconds=MAX_WAIT_SECONDS, local_share=1.0)
        yield limiter
        await limiter.aclose()
        await redis.aclose()

    async def test_the_memory_of_refused_keys_is_bounded(self, forgetful: RateLimiter) -> None:
        failed = FailedKeys(forgetful, lambda site: RateLimit("address", site, quota=1), clock=lambda: 0.0)
        for number in range(3 * max(REMEMBERED_KEYS, REMEMBERED)):
            await failed.note_failed(number.to_bytes(32), str(number), void=True)
            failed.note_valid(number.to_bytes(32, "little"))
        sizes = [len(failed._valid), len(failed._void), len(forgetful._local)]
        assert sizes == [REMEMBERED_KEYS, REMEMBERED_KEYS, REMEMBERED]

    async def test_the_memory_of_a_refused_key_fades(self, forgetful: RateLimiter) -> None:
        now = 0.0
        failed = FailedKeys(forgetful, lambda site: RateLimit("address", site, quota=5), clock=lambda: now)
        for _ in range(5):
            await failed.note_failed(b"key", "site", void=True)
        with pytest.raises(TooManyRequests) as refused:
            await failed.require_within_rate(b"another", "site")
        assert refused.value.code is ErrorCode.TOO_MANY_FAILURES
        await failed.require_within_rate(b"another", "elsewhere")
        assert failed.is_known_invalid(b"key")
        now = KNOWN_INVALID_SECONDS + 0.1
        assert not failed.is_known_invalid(b"key")

    async def test_a_key_that_becomes_invalid_is_no_longer_remembered_as_valid(self, forgetful: RateLimiter) -> None:
        failed = FailedKeys(forgetful, lambda site: RateLimit("address", site, quota=1))
        failed.note_valid(b"key")
        await failed.note_failed(b"key", "site", void=False)
        with pytest.raises(TooManyRequests):
            await failed.require_within_rate(b"key", "site")
