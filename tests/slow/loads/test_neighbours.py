"""The calls of one tenant take no more than their share of the resources that all tenants need."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.errors import ErrorCode, Unavailable
from recollect.fairness.shares import Shares
from recollect.postgres.database import MAX_WRITERS, Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway, eventually, rpc_headers, serving
from tests.support.timeouts import MAX_WAIT_SECONDS

ATTACKERS = 12
"""Concurrent calls: more than a gateway has connections, and twice as many as one tenant may have of them."""


@pytest.fixture
async def neighbours(new_tenant: NewTenant) -> tuple[Caller, Caller]:
    """A tenant that floods the service, and one that calls it meanwhile."""
    return operator_caller(await new_tenant()), operator_caller(await new_tenant())


class TestConnections:
    @pytest.mark.proves("security: database-connections")
    async def test_a_tenant_with_its_share_of_connections_leaves_the_rest_to_others(
        self, settings: Settings, neighbours: tuple[Caller, Caller]
    ) -> None:
        flooding, other = neighbours
        small = settings.model_copy(update={"database_pool_size": 4, "database_tenant_share": 0.5})
        async with Database.connect(small.database_url, settings=small) as db, AsyncExitStack() as held:
            for _ in range(2):
                await held.enter_async_context(db.transaction(flooding))
            waiting = [asyncio.create_task(_transact(db, flooding)) for _ in range(8)]
            for _ in range(2):
                await held.enter_async_context(db.transaction(other))
            async with db.system():  # Where a key is looked up, whoever holds the pool.
                assert not any(task.done() for task in waiting)
            await held.aclose()
            await asyncio.gather(*waiting)
        assert len(db._tenants) == 0, "nothing is kept of who has gone"

    async def test_a_call_beyond_the_share_of_its_tenant_is_refused_as_busy(
        self, settings: Settings, neighbours: tuple[Caller, Caller]
    ) -> None:
        small = settings.model_copy(update={"database_pool_size": 2})
        async with Database.connect(small.database_url, settings=small) as db, db.transaction(neighbours[0]):
            db.acquire_seconds = 0.1  # From here on: a busy machine takes longer to connect.
            with pytest.raises(Unavailable) as refused:
                await _transact(db, neighbours[0])
        assert refused.value.code is ErrorCode.BUSY

    async def test_a_call_that_gives_up_leaves_no_place_taken(self) -> None:
        shares = Shares(1)
        async with shares.acquire("tenant", wait_seconds=1):
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    async with shares.acquire("tenant", wait_seconds=0.01):
                        raise AssertionError("the place is taken")
        async with shares.acquire("tenant", wait_seconds=0.01):
            assert len(shares) == 1
        assert len(shares) == 0


async def _transact(db: Database, caller: Caller) -> None:
    async with db.transaction(caller):
        await asyncio.sleep(0)


@pytest.fixture(scope="module")
def patient(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway whose writers wait as long as a busy machine may need."""
    waits = {"lock_timeout_seconds": MAX_WAIT_SECONDS, "statement_timeout_seconds": MAX_WAIT_SECONDS}
    with serving(settings.model_copy(update=waits)) as gateway:
        yield gateway


async def test_writers_of_a_locked_graph_keep_few_connections_and_delay_no_one(
    patient: RunningGateway, issue: NewApiKey, neighbours: tuple[Caller, Caller], owner: asyncpg.Connection
) -> None:
    flooding, other = [(await issue(caller)).secret for caller in neighbours]
    async with patient.http(flooding, **rpc_headers()) as one, patient.http(other, **rpc_headers()) as two:
        await _remember(patient, one, "first")
        async with owner.transaction():
            lock = "SELECT 1 FROM graph_heads WHERE tenant_id = $1 FOR UPDATE"
            await owner.execute(lock, neighbours[0].tenant_id)
            floods = [asyncio.create_task(_remember(patient, one, f"flood {n}")) for n in range(ATTACKERS)]
            await eventually(lambda: _as_many_wait(owner, MAX_WRITERS))
            await _remember(patient, two, "beside it")
            assert "beside it" in await _recalled(patient, two, "beside it")
            assert "first" in await _recalled(patient, one, "first"), "its own reads go on as well"
            assert not any(flood.done() for flood in floods)
            assert await _as_many_wait(owner, MAX_WRITERS)
        await asyncio.gather(*floods)


WRITERS: dict[str, tuple[str, str, Any]] = {
    "archive_entities": ("tool", "/mcp/x/organize", {"importanceBelow": 9}),
    "compact": ("tool", "/mcp/x/admin", {}),
    "compress_graph": ("tool", "/mcp/x/organize", {"threshold": 0.8}),
    "undo_changes": ("tool", "/mcp/x/admin", {"since_revision": 0}),
    "update_graph_config": ("tool", "/mcp/x/lineage", {"metadata": {"is": "configured"}}),
    "delete_graph": ("tool", "/mcp/x/lineage", {"graph": "default"}),
    "import": (
        "POST",
        "/v1/graphs/default/import",
        {"type": "entity", "name": "a", "entityType": "b", "observations": []},
    ),
    "erase": ("POST", "/v1/graphs/default/erase", {"name": "the very same kettle"}),
    "erase_graph": ("DELETE", "/v1/graphs/default", None),
}
"""Writers of each kind: tool or method, address, and arguments."""


@pytest.mark.parametrize("writer", WRITERS)
async def test_writers_of_each_kind_wait_with_few_connections(
    patient: RunningGateway, issue: NewApiKey, neighbours: tuple[Caller, Caller], owner: asyncpg.Connection, writer: str
) -> None:
    flooding, other = [(await issue(caller, kind="admin")).secret for caller in neighbours]
    async with patient.http(flooding, **rpc_headers()) as http, patient.http(other) as beside:
        alike = [
            {"name": f"the very same kettle{end}", "entityType": "thing", "observations": ["is hot"]}
            for end in ("", "s")
        ]
        await patient.call(http, "create_entities", {"entities": alike})
        async with owner.transaction():
            lock = "SELECT 1 FROM graph_heads WHERE tenant_id = $1 FOR UPDATE"
            await owner.execute(lock, neighbours[0].tenant_id)
            floods = [asyncio.create_task(_write(patient, http, writer)) for _ in range(ATTACKERS)]
            await eventually(lambda: _as_many_wait(owner, MAX_WRITERS))
            for _ in range(ATTACKERS):  # As many as wait are heard meanwhile.
                assert (await beside.get("/v1/graphs")).status_code == 200
            assert not any(flood.done() for flood in floods), "what was to wait did not"
            assert await _as_many_wait(owner, MAX_WRITERS)
            read = await patient.call(http, "open_nodes", {"names": ["the very same kettle"]})
            assert not read["isError"], "its own reads go on as well"
        for status in await asyncio.gather(*floods):
            assert status < 500


async def _write(gateway: RunningGateway, client: httpx2.AsyncClient, writer: str) -> int:
    """Call the writer, and return the status of the answer."""
    way, path, arguments = WRITERS[writer]
    if way == "tool":
        await gateway.call(client, writer, arguments, path=path)
        return 200
    headers = {"Content-Type": "application/x-ndjson" if writer == "import" else "application/json"}
    return (await client.request(way, path, json=arguments, headers=headers)).status_code


async def _remember(gateway: RunningGateway, client: httpx2.AsyncClient, text: str) -> None:
    done = await gateway.call(client, "remember", {"items": [{"text": text}]}, path="/mcp")
    assert not done.get("isError"), done


async def _recalled(gateway: RunningGateway, client: httpx2.AsyncClient, query: str) -> str:
    found = await gateway.call(client, "recall", {"query": query}, path="/mcp")
    assert not found.get("isError"), found
    return str(found["content"])


async def _as_many_wait(owner: asyncpg.Connection, count: int) -> bool:
    """Whether so many connections wait for a lock."""
    waiting: int = await owner.fetchval("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted")
    assert waiting <= count, f"{waiting} connections wait"
    return waiting == count
