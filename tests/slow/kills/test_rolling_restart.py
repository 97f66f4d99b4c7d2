"""Gateways are replaced one by one while agents are at work: no call fails, and nothing is lost."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest

from recollect.settings import Settings
from tests.support.balancer import Balancer
from tests.support.fleet import Fleet, Member, fleet
from tests.support.gateway import RunningGateway
from tests.support.load import Load, agents_of, stored_once
from tests.support.streams import listening

AGENTS = 4


@pytest.fixture
def processes(settings: Settings, tmp_path: Path) -> Iterator[Fleet]:
    with fleet(settings.model_copy(update={"drain_seconds": 2}), tmp_path) as processes:
        yield processes


@pytest.fixture
async def balancer() -> AsyncIterator[Balancer]:
    async with Balancer().balancing() as balancer:
        yield balancer


async def test_no_call_fails_while_gateways_are_replaced(balancer: Balancer, processes: Fleet, key: str) -> None:
    old = [processes.gateway() for _ in range(2)]
    await balancer.bring_in(old)
    async with agents_of(balancer, key) as http:
        load = Load(http)
        async with load.at_work(AGENTS):
            await load.wait_for(20)
            await balancer.bring_in([processes.gateway() for _ in old])
            for gateway in old:
                await drained(balancer, gateway, key)
            await load.wait_for(20)
        assert not load.failures, load.failures[:3]
        await stored_once(load)
    assert min(balancer.served[member.url] for member in processes.members) > 0
    assert [fault for member in processes.members for fault in member.faults()] == []


async def drained(balancer: Balancer, gateway: Member, key: str) -> None:
    """Stop a gateway: from then on it is not ready, serves the requests that arrive, and ends its streams last."""
    async with listening(RunningGateway(gateway.url), key, "load-0") as events, httpx2.AsyncClient() as http:
        stopping = asyncio.create_task(gateway.stop())
        await balancer.wait_until(gateway.url, ready=False)
        late = await http.get(f"{gateway.url}/health/ready")
        assert (late.status_code, late.json()["code"]) == (503, "draining")
        assert late.headers["connection"] == "close"
        while (event := await events.next()) is not None and event.name != "end":
            assert event.name in ("", "change")
        assert event is not None
        assert event.data == {"reason": "draining"}
        await stopping
