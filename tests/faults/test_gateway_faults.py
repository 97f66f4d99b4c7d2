"""The gateway when Valkey or PostgreSQL goes away and comes back, on servers of the tests' own."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import asyncpg
import httpx2
import pytest

from recollect.caller import Caller
from recollect.identity.model import operator_caller
from recollect.platform.cache import connect_redis
from recollect.platform.db import Database, Operator
from recollect.platform.migrate import migrate
from recollect.settings import Settings
from recollect.tenants import service as tenants
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_local.postgres import LocalPostgres
from recollect_local.valkey import LocalValkey
from tests.conftest import FAST_AND_FORGETFUL
from tests.gateway import MODES, Gateway, eventually, issue_key, rpc_answer, rpc_headers, serving
from tests.workers import embedded_within, waiting, working

BOUND_SECONDS = 20
"""No call may take longer, whatever is away: several times what the settings allow, to bear a busy machine."""


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[LocalValkey]:
    server = LocalValkey(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def own_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPostgres]:
    server = LocalPostgres(tmp_path_factory.mktemp("postgres"), settings=FAST_AND_FORGETFUL)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
async def own_database(settings: Settings, own_postgres: LocalPostgres) -> Settings:
    """Settings for it, with short waits."""
    await migrate(own_postgres.url())
    return settings.model_copy(
        update={
            "database_url": own_postgres.url("recollect_app"),
            "owner_database_url": own_postgres.url("recollect_owner"),
            "database_acquire_seconds": 1,
            "lock_timeout_seconds": 2,
        }
    )


@pytest.fixture
async def http(gateway: Gateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield http


class TestValkey:
    """Slower at most: nothing lost, nothing wrong."""

    @pytest.fixture
    def own(self, settings: Settings, valkey: LocalValkey) -> Settings:
        # A minute between sweeps: what is embedded within seconds was woken.
        return settings.model_copy(update={"redis_url": valkey.url, "sweep_seconds": 60})

    @pytest.fixture
    def gateway(self, own: Settings) -> Iterator[Gateway]:
        with serving(own) as gateway:
            yield gateway

    async def test_tools_go_on_while_it_is_flushed_and_stopped(
        self, gateway: Gateway, http: httpx2.AsyncClient, own: Settings, valkey: LocalValkey
    ) -> None:
        await remember_and_find(gateway, http, "early")
        async with connect_redis(own) as redis:
            await redis.flushall()
        await remember_and_find(gateway, http, "flushed")
        valkey.stop()
        await remember_and_find(gateway, http, "stopped")
        assert (await http.get("/health/ready")).status_code == 200
        valkey.start()
        await remember_and_find(gateway, http, "restored")
        for word in ("early", "flushed", "stopped"):
            assert await recalled(gateway, http, word), f"what was written {word} is lost"

    async def test_wake_ups_work_again_once_it_is_back(
        self,
        gateway: Gateway,
        http: httpx2.AsyncClient,
        own: Settings,
        valkey: LocalValkey,
        owner: asyncpg.Connection,
        caller: Caller,
        tmp_path: Path,
    ) -> None:
        with working(own, tmp_path) as worker:
            await asyncio.to_thread(worker.wait_for, "listening for wake-ups")
            await remember(gateway, http, "The first one was woken")
            assert await embedded_within(owner, caller, 15)
            await asyncio.to_thread(valkey.stop)
            await asyncio.to_thread(worker.wait_for, "Redis is away: sweeping without wake-ups")
            await asyncio.to_thread(valkey.start)
            await asyncio.to_thread(worker.wait_for, "listening for wake-ups", times=2)
            await remember(gateway, http, "The second one was woken too")
            assert await embedded_within(owner, caller, 15)
            assert await waiting(owner, caller) == 0

    async def test_one_that_hangs_holds_no_call_up(
        self, gateway: Gateway, http: httpx2.AsyncClient, valkey: LocalValkey
    ) -> None:
        assert valkey.pid is not None
        os.kill(valkey.pid, signal.SIGSTOP)
        try:
            started = time.monotonic()
            for number in range(20):
                await remember(gateway, http, f"written while it hangs, {number}")
            assert time.monotonic() - started < BOUND_SECONDS
            assert await recalled(gateway, http, "hangs")
        finally:
            os.kill(valkey.pid, signal.SIGCONT)


class TestPostgreSQL:
    """Every call is told so in bounded time, and works again, without a restart, once it is back."""

    @pytest.fixture
    def gateway(self, own_database: Settings) -> Iterator[Gateway]:
        with serving(own_database) as gateway:
            yield gateway

    @pytest.fixture
    async def caller(self, own_database: Settings) -> Caller:
        async with Operator.connect(own_database.migration_url, own_database) as operator:
            slug = f"fault-{time.monotonic_ns()}"
            return operator_caller(await tenants.create_tenant(operator, slug, "Fault"))

    @pytest.fixture
    async def key(self, own_database: Settings, caller: Caller) -> str:
        async with Database.connect(own_database.database_url, settings=own_database) as db:
            return (await issue_key(db, own_database, caller, kind="admin")).secret

    async def test_stopped_and_started(
        self, gateway: Gateway, http: httpx2.AsyncClient, own_postgres: LocalPostgres
    ) -> None:
        await remember_and_find(gateway, http, "early")
        await asyncio.to_thread(own_postgres.stop)
        for _ in range(3):
            for method, path in (("POST", "/mcp/x/memory"), ("GET", "/v1/graphs"), ("GET", "/health/ready")):
                await unavailable(http, method, path)
        assert (await http.get("/health/live")).status_code == 200
        await asyncio.to_thread(own_postgres.start)
        await eventually(lambda: ready(http))
        assert await recalled(gateway, http, "early")
        await remember_and_find(gateway, http, "restored")

    async def test_sessions_cut_in_the_middle_of_many_calls(
        self, gateway: Gateway, http: httpx2.AsyncClient, own_database: Settings, caller: Caller
    ) -> None:
        """Each call is answered or told to try again; what was said to be written is there."""
        writing = [asyncio.create_task(add(http, number)) for number in range(60)]
        administrator = await asyncpg.connect(own_database.database_url.replace("recollect_app", "postgres"))
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'recollect'"
        for _ in range(5):
            await administrator.execute(cut)
            await asyncio.sleep(0.05)
        await administrator.close()
        answers = await asyncio.gather(*writing)
        refused = {code for code in answers if code is not None}
        assert refused <= {"database_unavailable", "busy"}
        await eventually(lambda: ready(http))
        graph = (await gateway.call(http, "read_graph", {}))["structuredContent"]
        written = {f"e{number}" for number, code in enumerate(answers) if code is None}
        assert written <= {entity["name"] for entity in graph["entities"]}

    async def test_one_that_hangs(self, gateway: Gateway, http: httpx2.AsyncClient, own_database: Settings) -> None:
        """A graph whose lock nobody gives back: the others wait no longer than they are told to, and reads go on."""
        await remember(gateway, http, "something to read")
        holder = await asyncpg.connect(own_database.migration_url, server_settings={"search_path": "recollect, public"})
        async with holder.transaction():
            await holder.execute("LOCK TABLE graph_heads IN ROW EXCLUSIVE MODE")
            await holder.execute("SELECT FROM graph_heads FOR UPDATE")
            blocked = asyncio.create_task(gateway.call(http, "remember", {"items": [{"text": "x"}]}, path="/mcp"))
            assert await recalled(gateway, http, "something")
            assert not blocked.done()
            result = await asyncio.wait_for(blocked, BOUND_SECONDS)
        await holder.close()
        assert result["isError"]
        assert result["_meta"][ERROR_META]["code"] == "busy"
        await remember_and_find(gateway, http, "unlocked")


@pytest.mark.parametrize("revision", MODES)
async def test_calls_that_nobody_waits_for_give_back_what_they_hold(
    gateway: Gateway, key: str, caller: Caller, settings: Settings, owner: asyncpg.Connection, revision: str
) -> None:
    """More of them than the pool has connections, each stopped while it waits for a graph's lock."""
    async with gateway.http(key, **rpc_headers()) as http:
        await remember(gateway, http, "the graph is there")
        async with owner.transaction():
            await owner.execute("SELECT FROM graph_heads WHERE tenant_id = $1 FOR UPDATE", caller.tenant_id)
            for _ in range(2):
                abandoned = [abandon(gateway, key, revision) for _ in range(settings.database_pool_size)]
                await asyncio.gather(*abandoned)
            assert await recalled(gateway, http, "graph")  # Which would be refused, were no connection left.
        await remember_and_find(gateway, http, "afterwards")
        assert not await recalled(gateway, http, "abandoned")


async def abandon(gateway: Gateway, key: str, revision: str) -> None:
    """Call a tool that must wait, and leave."""
    async with gateway.client(key, "/mcp", revision=revision) as client:
        with anyio.move_on_after(1):
            await client.call_tool("remember", {"items": [{"text": "abandoned"}]})
            raise AssertionError("it did not have to wait")


async def remember(gateway: Gateway, http: httpx2.AsyncClient, text: str) -> None:
    result = await gateway.call(http, "remember", {"items": [{"text": text}]}, path="/mcp")
    assert not result["isError"], result


async def recalled(gateway: Gateway, http: httpx2.AsyncClient, word: str) -> list[Any]:
    result = await gateway.call(http, "recall", {"query": word}, path="/mcp")
    assert not result["isError"], result
    return [memory for memory in result["structuredContent"]["memories"] if word in memory["text"]]


async def remember_and_find(gateway: Gateway, http: httpx2.AsyncClient, word: str) -> None:
    """Write, search and recall by words."""
    entity = {"name": f"Thing {word}", "entityType": "thing", "observations": [f"was noted {word} the flood"]}
    assert not (await gateway.call(http, "create_entities", {"entities": [entity]}))["isError"]
    found = await gateway.call(http, "search_nodes", {"query": f"{word} the flood"})
    assert found["structuredContent"] == {"entities": [entity], "relations": []}
    assert await recalled(gateway, http, word)


async def add(http: httpx2.AsyncClient, number: int) -> str | None:
    """Write an entity; None, or the code of the refusal."""
    entity = {"name": f"e{number}", "entityType": "t", "observations": ["x"]}
    call = {"name": "create_entities", "arguments": {"entities": [entity]}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    response = await http.post("/mcp/x/memory", json=body)
    if response.status_code == 503:
        return str(response.json()["code"])
    result = rpc_answer(response.text)["result"]
    return result["_meta"][ERROR_META]["code"] if result["isError"] else None


async def unavailable(http: httpx2.AsyncClient, method: str, path: str) -> None:
    """The request must be refused in bounded time, for the database is away."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_graph", "arguments": {}}}
    started = time.monotonic()
    response = await http.request(method, path, json=body if method == "POST" else None)
    assert time.monotonic() - started < BOUND_SECONDS
    assert response.status_code == 503, response.text
    assert response.json()["code"] == "database_unavailable"
    assert response.headers["Retry-After"]


async def ready(http: httpx2.AsyncClient) -> bool:
    return (await http.get("/health/ready")).status_code == 200
