"""Presence: workers know which tenants' calls gateways serve, so that bulk work rests only beside other tenants'
calls.
"""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest
from redis.asyncio import Redis

from recollect.fairness import presence
from recollect.fairness.presence import Presence, PresenceReporter
from recollect.settings import Settings
from recollect.settings.cells import HOME
from recollect.valkey.client import connect_redis

AWAY = "redis://127.0.0.1:1/0"


@pytest.fixture
async def redis(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Redis]:
    """A Redis key for the test alone, since gateways of other tests report presence, too. Redis may be as slow as
    the machine.
    """
    monkeypatch.setattr(presence, "_KEY", f"test:{uuid4()}")
    monkeypatch.setattr(presence, "PRESENT_SECONDS", 1000)
    monkeypatch.setattr(presence, "READ_SECONDS", settings.redis_timeout_seconds)
    monkeypatch.setattr(presence, "REPORT_SECONDS", settings.redis_timeout_seconds)
    async with connect_redis(settings) as client:
        yield client


async def report_calls(redis: Redis, *tenants: UUID) -> None:
    for tenant in tenants:  # Each is another gateway, since one reports only now and then.
        teller = PresenceReporter(redis)
        teller.note(tenant)
        await teller.aclose()


async def test_a_tenant_sees_calls_of_others_and_not_its_own(redis: Redis) -> None:
    one, other, third = (uuid4() for _ in range(3))
    assert not await Presence(redis).is_other_tenant_calling(one)
    await report_calls(redis, one)
    assert [await Presence(redis).is_other_tenant_calling(tenant) for tenant in (one, other)] == [False, True]
    await report_calls(redis, other, third)
    assert [await Presence(redis).is_other_tenant_calling(tenant) for tenant in (one, other, third)] == [True] * 3


async def test_a_worker_rests_for_calls_of_its_own_cell_only(redis: Redis) -> None:
    here, there, unknown = (uuid4() for _ in range(3))
    cells = {here: HOME, there: "b"}
    now = 0.0
    teller = PresenceReporter(redis, cells.get, clock=lambda: now)
    teller.note(there)
    await teller.aclose()
    assert [await Presence(redis, cell).is_other_tenant_calling(uuid4()) for cell in (HOME, "b", "c")] == [
        False,
        True,
        False,
    ]
    for tenant in (there, here, unknown):  # What tenants of both cells call meanwhile is reported together.
        teller.note(tenant)
    now = presence.REPORT_SECONDS
    teller.note(here)
    await teller.aclose()
    assert [await Presence(redis, HOME).is_other_tenant_calling(tenant) for tenant in (here, there)] == [False, True]
    assert [await Presence(redis, "b").is_other_tenant_calling(tenant) for tenant in (here, there)] == [True, False]


async def test_an_old_call_no_longer_counts(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "PRESENT_SECONDS", 0)
    await report_calls(redis, uuid4())
    assert not await Presence(redis).is_other_tenant_calling(uuid4())


async def test_a_gateway_reports_two_tenants_at_most_and_only_now_and_then(redis: Redis) -> None:
    now = 0.0
    teller = PresenceReporter(redis, clock=lambda: now)
    tenants = [uuid4() for _ in range(5)]
    for tenant in tenants:
        teller.note(tenant)
    await teller.aclose()
    assert await redis.zrange(presence._KEY, 0, -1) == [tenants[0].bytes]
    now = presence.REPORT_SECONDS
    teller.note(tenants[4])
    await teller.aclose()
    assert set(await redis.zrange(presence._KEY, 0, -1)) == {tenant.bytes for tenant in tenants[:3]}


async def test_an_answer_of_redis_is_reused_for_a_while(redis: Redis) -> None:
    now = 0.0
    looking, tenant = Presence(redis, clock=lambda: now), uuid4()
    assert not await looking.is_other_tenant_calling(tenant)
    await report_calls(redis, uuid4())
    assert not await looking.is_other_tenant_calling(tenant)
    now = presence.READ_SECONDS
    assert await looking.is_other_tenant_calling(tenant)


async def test_without_redis_nobody_seems_to_call_and_nothing_fails(settings: Settings) -> None:
    async with connect_redis(settings.model_copy(update={"redis_url": AWAY})) as redis:
        await report_calls(redis, uuid4())
        async with asyncio.timeout(None):
            assert not await Presence(redis).is_other_tenant_calling(uuid4())
