"""Slots of a gateway go round by tenant, however many calls one tenant sends at once."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.errors import ErrorCode
from recollect.fairness import slots
from recollect.postgres.database import MAX_WRITERS
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.tools.admin.get_job import MAX_WAIT_SECONDS as MAX_JOB_WAIT_SECONDS
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway, eventually, rpc_headers, serving
from tests.support.timeouts import MAX_WAIT_SECONDS

FLOOD = 16
"""Concurrent calls of one tenant."""

ASKED = 20
"""Calls of the other tenant, one after the other."""

AT_WORK = 3
"""The number of slots of a gateway, where it matters."""

PATIENT = {"lock_timeout_seconds": MAX_WAIT_SECONDS, "statement_timeout_seconds": MAX_WAIT_SECONDS}
"""Settings of a gateway whose writers wait as long as a test needs."""

LOCK = "SELECT 1 FROM graph_heads WHERE tenant_id = $1 FOR UPDATE"


@pytest.fixture
async def neighbours(new_tenant: NewTenant) -> tuple[Caller, Caller]:
    """Two tenants."""
    return operator_caller(await new_tenant()), operator_caller(await new_tenant())


@dataclass(slots=True)
class Flood:
    """Reads of one tenant. `answered`: how many were answered."""

    answered: int = 0

    async def goes_on(self) -> bool:
        return self.answered >= FLOOD


@asynccontextmanager
async def flooded(gateway: RunningGateway, key: str) -> AsyncIterator[Flood]:
    """A flood that has begun, until the block ends."""
    flood = Flood()

    async def send(http: httpx2.AsyncClient) -> None:
        while True:
            await _read(gateway, http)
            flood.answered += 1

    async with gateway.http(key) as http:
        sending = [asyncio.create_task(send(http)) for _ in range(FLOOD)]
        await eventually(flood.goes_on)
        yield flood
        for each in sending:
            each.cancel()
        await asyncio.gather(*sending, return_exceptions=True)


@pytest.mark.proves("security: fair-calls")
async def test_a_tenant_gets_its_share_beside_a_flood(
    settings: Settings, issue: NewApiKey, neighbours: tuple[Caller, Caller]
) -> None:
    flooding, other = [(await issue(caller)).secret for caller in neighbours]
    with _gateway(settings, call_wait_seconds=MAX_WAIT_SECONDS) as gateway:
        async with gateway.http(other) as http, flooded(gateway, flooding) as flood:
            flood.answered = 0
            for _ in range(ASKED):
                await _read(gateway, http)
            beside = flood.answered
            flood.answered = 0
            await eventually(flood.goes_on)
    assert beside <= 2 * ASKED, f"{beside} calls of the flood were served beside {ASKED} of the other"


@pytest.fixture
def long_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot is held until its call ends, so that nothing depends on how fast the machine is."""
    monkeypatch.setattr(slots, "SLOT_SECONDS", MAX_WAIT_SECONDS)


@pytest.mark.proves("security: fair-calls")
@pytest.mark.usefixtures("long_slots")
async def test_a_flood_pauses_while_another_tenants_call_is_at_work(
    settings: Settings,
    issue: NewApiKey,
    neighbours: tuple[Caller, Caller],
    new_tenant: NewTenant,
    owner: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slots, "MAX_PREEMPTED_SECONDS", MAX_WAIT_SECONDS)
    flooding, other, third = [
        (await issue(caller)).secret for caller in (*neighbours, operator_caller(await new_tenant()))
    ]
    with _gateway(settings, calls_at_work=AT_WORK, call_wait_seconds=MAX_WAIT_SECONDS, **PATIENT) as gateway:
        async with gateway.http(other, **rpc_headers()) as one, gateway.http(third) as two:
            await _write(gateway, one)
            async with flooded(gateway, flooding) as flood:
                async with owner.transaction():
                    await owner.execute(LOCK, neighbours[1].tenant_id)
                    held = asyncio.create_task(_write(gateway, one))
                    await eventually(lambda: _waits_for_a_lock(owner))
                    flood.answered = 0
                    for _ in range(2 * ASKED):
                        await _read(gateway, two)
                    beside = flood.answered
                await held
                await eventually(flood.goes_on)
    assert beside <= AT_WORK, f"{beside} calls of the flood were answered, of which {AT_WORK} could be past their steps"


@pytest.mark.usefixtures("long_slots")
class TestWaiting:
    async def test_a_call_that_waits_too_long_gets_a_retryable_error(
        self, settings: Settings, issue: NewApiKey, caller: Caller, owner: asyncpg.Connection
    ) -> None:
        key = (await issue(caller)).secret
        with _gateway(settings, calls_at_work=1, call_wait_seconds=0.1) as gateway:
            async with gateway.http(key, **rpc_headers()) as http:
                await _write(gateway, http)
                async with owner.transaction():
                    await owner.execute(LOCK, caller.tenant_id)
                    held = asyncio.create_task(_write(gateway, http))
                    await eventually(lambda: _waits_for_a_lock(owner))
                    route, tool = await http.get("/v1/graphs"), await http.post("/mcp", content=b"{}")
                await held
                assert (await http.get("/v1/graphs")).status_code == 200
        for refused in (route, tool):
            assert refused.status_code == 503
            assert refused.headers["Retry-After"].isdecimal()
            assert refused.json()["code"] == ErrorCode.BUSY
            assert refused.json()["detail"].startswith("This call waited 0.1 seconds for its turn.")

    async def test_a_call_that_waits_for_a_graph_lets_others_of_its_tenant_work(
        self, settings: Settings, issue: NewApiKey, caller: Caller, owner: asyncpg.Connection
    ) -> None:
        key = (await issue(caller)).secret
        places = MAX_WRITERS + 1  # Writers that have a connection keep their slots.
        with _gateway(settings, calls_at_work=places, call_wait_seconds=MAX_WAIT_SECONDS, **PATIENT) as gateway:
            async with gateway.http(key, **rpc_headers()) as http:
                await _write(gateway, http)
                async with owner.transaction():
                    await owner.execute(LOCK, caller.tenant_id)
                    writers = [asyncio.create_task(_write(gateway, http)) for _ in range(FLOOD)]
                    for _ in range(FLOOD):  # As many reads as there are writers are answered meanwhile.
                        assert (await http.get("/v1/graphs")).status_code == 200
                    assert not any(writer.done() for writer in writers)
                await asyncio.gather(*writers)

    async def test_a_call_that_waits_for_a_job_lets_others_work(
        self, settings: Settings, issue: NewApiKey, neighbours: tuple[Caller, Caller]
    ) -> None:
        waiting, other = [(await issue(caller)).secret for caller in neighbours]
        with _gateway(settings, calls_at_work=1, call_wait_seconds=MAX_WAIT_SECONDS) as gateway:
            async with gateway.http(waiting, **rpc_headers()) as one, gateway.http(other) as two:
                await _write(gateway, one)
                begun = await gateway.call(one, "reindex", {"graph": "default"}, path="/mcp/x/admin")
                asked = {"id": begun["structuredContent"]["id"], "wait_seconds": MAX_JOB_WAIT_SECONDS}
                waits = asyncio.create_task(gateway.call(one, "get_job", asked, path="/mcp/x/admin"))
                try:
                    for _ in range(ASKED):
                        assert (await one.get("/v1/graphs")).status_code == 200
                        await _read(gateway, two)
                    assert not waits.done()
                finally:
                    waits.cancel()
                    await asyncio.gather(waits, return_exceptions=True)


@contextmanager
def _gateway(settings: Settings, **changed: float) -> Iterator[RunningGateway]:
    with serving(settings.model_copy(update=changed)) as gateway:
        yield gateway


async def _waits_for_a_lock(owner: asyncpg.Connection) -> bool:
    return bool(await owner.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))


async def _write(gateway: RunningGateway, http: httpx2.AsyncClient) -> None:
    done = await gateway.call(http, "remember", {"items": [{"text": "The kettle is hot."}]}, path="/mcp")
    assert not done.get("isError"), done


async def _read(gateway: RunningGateway, http: httpx2.AsyncClient) -> None:
    read = await gateway.call(http, "read_graph", {})
    assert not read.get("isError"), read
