"""The gateway when Valkey or PostgreSQL goes away and comes back, on servers of these tests."""

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
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from recollect.accounts.identity.model import generate_secret, operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.postgres.migrate import migrate
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.tools import TOOLS
from recollect_local.postgres import LocalPostgres
from recollect_local.valkey import LocalValkey
from tests.conftest import FAST_AND_FORGETFUL
from tests.contract.examples import EXAMPLES, Played
from tests.support import wakeup_worker
from tests.support.gateway import (
    MODES,
    RunningGateway,
    error_of,
    eventually,
    issue_key,
    rpc_answer,
    rpc_headers,
    serving,
    text_of,
)
from tests.support.workers import embedded_within, waiting, working

BOUND_SECONDS = 60
"""The longest that a call may take, whatever is away: many times what the settings allow, for a busy machine."""

READ_GRAPH = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_graph", "arguments": {}}}


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
    """Settings of a gateway for this server, with short waits."""
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
async def http(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield http


class TestValkey:
    """Without Valkey, calls may be slower, but nothing is lost or wrong."""

    @pytest.fixture
    def own(self, settings: Settings, valkey: LocalValkey) -> Settings:
        return settings.model_copy(update={"redis_url": valkey.url})

    @pytest.fixture
    def gateway(self, own: Settings) -> Iterator[RunningGateway]:
        with serving(own) as gateway:
            yield gateway

    async def test_tools_go_on_while_valkey_is_flushed_and_stopped(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, own: Settings, valkey: LocalValkey
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

    async def test_wake_ups_work_again_once_valkey_is_back(
        self,
        own: Settings,
        key: str,
        valkey: LocalValkey,
        owner: asyncpg.Connection,
        caller: Caller,
        tmp_path: Path,
    ) -> None:
        patient = own.model_copy(update={"redis_timeout_seconds": 10})
        with (
            serving(patient) as gateway,
            working(patient, tmp_path, wakeup_worker.WORKER) as worker,
        ):
            async with gateway.http(key, **rpc_headers()) as http:
                for event in ("listening for wake-ups", wakeup_worker.has_swept("passages")):
                    await asyncio.to_thread(worker.wait_for, event)
                await remember(gateway, http, "The first one was woken")
                assert await embedded_within(owner, caller)
                await asyncio.to_thread(valkey.stop)
                await asyncio.to_thread(worker.wait_for, "cannot connect to Redis, sweeping without wake-ups")
                await asyncio.to_thread(valkey.start)
                await asyncio.to_thread(worker.wait_for, "listening for wake-ups", times=2)
                await remember(gateway, http, "The second one was woken too")
                assert await embedded_within(owner, caller)
                assert await waiting(owner, caller) == 0

    async def test_a_hanging_valkey_delays_no_call(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, valkey: LocalValkey
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
    """Without PostgreSQL, every call is refused in bounded time, and works again without a restart once it is back."""

    @pytest.fixture
    def gateway(self, own_database: Settings) -> Iterator[RunningGateway]:
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

    async def test_calls_are_refused_until_postgresql_is_back(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, own_postgres: LocalPostgres
    ) -> None:
        await remember_and_find(gateway, http, "early")
        await asyncio.to_thread(own_postgres.stop)
        for _ in range(3):
            assert await add(http, 0) == "database_unavailable"
            for path in ("/v1/graphs", "/health/ready"):
                await unavailable(http, path)
        assert (await http.get("/health/live")).status_code == 200
        await asyncio.to_thread(own_postgres.start)
        await eventually(lambda: ready(http))
        assert await recalled(gateway, http, "early")
        await remember_and_find(gateway, http, "restored")

    async def test_reads_go_on_while_postgresql_is_read_only(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, own_postgres: LocalPostgres
    ) -> None:
        """The read-only mode of docs/operations.md applies to open connections, too."""
        await remember_and_find(gateway, http, "early")
        try:
            await administered(own_postgres, "ALTER SYSTEM SET default_transaction_read_only = on")
            await eventually(lambda: told_read_only(http))
            posted = await http.post("/v1/graphs/default/memories", json={"items": [{"text": "late"}]})
            assert (posted.status_code, posted.json()["code"]) == (503, "service_read_only")
            assert "retry-after" in posted.headers
            keyed = {"Idempotency-Key": "once"}
            posted = await http.post("/v1/graphs/default/memories", json={"items": [{"text": "late"}]}, headers=keyed)
            assert (posted.status_code, posted.json()["code"]) == (503, "service_read_only")
            assert await recalled(gateway, http, "early")
            for path in ("/v1/graphs", "/v1/graphs/default", "/health/ready"):
                assert (await http.get(path)).status_code == 200, path
        finally:
            await administered(own_postgres, "ALTER SYSTEM RESET default_transaction_read_only")
        await eventually(lambda: written(http))
        assert not await recalled(gateway, http, "late")
        await remember_and_find(gateway, http, "restored")

    @pytest.mark.proves("rules: database-unreachable", "graph-contract: database-errors")
    @pytest.mark.parametrize("revision", MODES)
    async def test_every_tool_reports_in_its_dialect_that_the_database_is_away(
        self, gateway: RunningGateway, key: str, own_postgres: LocalPostgres, revision: str
    ) -> None:
        async with gateway.client(key, "/mcp/x/all", revision=revision) as client:
            await client.list_tools()
            await asyncio.to_thread(own_postgres.stop)
            try:
                for tool, arguments in EXAMPLES.items():
                    if tool != "health_check":
                        require_away(TOOLS[tool], await client.call_tool(tool, Played().fill(arguments)))
                health = await client.call_tool("health_check", {})
                assert not health.is_error
                assert (health.structured_content or {})["success"] is True
                assert (health.structured_content or {})["falkordb"] is False
                with pytest.raises(MCPError, match="Unknown tool: unheard_of"):
                    await client.call_tool("unheard_of", {})
                for ask in (client.list_tools, client.list_resources):
                    with pytest.raises(MCPError, match="The database is unavailable"):
                        await ask(cache_mode="bypass")
                with pytest.raises(MCPError, match="The database is unavailable"):
                    await client.read_resource("memory://knowledge-graph", cache_mode="bypass")
            finally:
                await asyncio.to_thread(own_postgres.start)

    @pytest.mark.proves("rules: database-unreachable")
    async def test_only_well_formed_keys_learn_that_the_database_is_away(
        self, gateway: RunningGateway, key: str, own_postgres: LocalPostgres
    ) -> None:
        """So does an invented key with a right checksum, which cannot be checked. Malformed keys are refused."""
        broken = key[:-1] + ("0" if key[-1] != "0" else "1")
        await asyncio.to_thread(own_postgres.stop)
        try:
            for secret, status in ((generate_secret("agent"), 200), (broken, 401), ("x", 401), (None, 401)):
                async with gateway.http(secret, **rpc_headers()) as http:
                    response = await http.post("/mcp/x/memory", json=READ_GRAPH)
                    assert response.status_code == status
                    if status == 200:
                        told = rpc_answer(response.text)["result"]
                        assert told["isError"] is True
                        assert told["_meta"][ERROR_META]["code"] == "database_unavailable"
        finally:
            await asyncio.to_thread(own_postgres.start)

    async def test_calls_whose_sessions_are_cut_are_answered_or_can_be_repeated(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, own_database: Settings, caller: Caller
    ) -> None:
        """Each call is answered or may be repeated; everything that was confirmed is stored."""
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

    async def test_calls_on_a_locked_graph_are_refused_in_bounded_time(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, own_database: Settings
    ) -> None:
        """The lock of the graph is never released: writers wait for a bounded time, and reads go on."""
        await remember(gateway, http, "something to read")
        holder = await asyncpg.connect(own_database.migration_url, server_settings={"search_path": "recollect, public"})
        async with holder.transaction():
            await holder.execute("LOCK TABLE graph_heads IN ROW EXCLUSIVE MODE")
            await holder.execute("SELECT FROM graph_heads FOR UPDATE")
            blocked = asyncio.create_task(gateway.call(http, "remember", {"items": [{"text": "x"}]}, path="/mcp"))
            assert await recalled(gateway, http, "something")
            result = await asyncio.wait_for(blocked, BOUND_SECONDS)
        await holder.close()
        assert result["isError"]
        assert result["_meta"][ERROR_META]["code"] == "busy"
        await remember_and_find(gateway, http, "unlocked")


@pytest.mark.parametrize("revision", MODES)
async def test_abandoned_calls_release_their_connections(
    key: str, caller: Caller, settings: Settings, owner: asyncpg.Connection, revision: str
) -> None:
    """There are more of them than connections, and each is abandoned while it waits for the lock of a graph.

    Their connections would be released anyway when the lock timeout is over, but only after a call was refused.
    """
    with serving(settings.model_copy(update={"database_acquire_seconds": 5})) as gateway:
        await calls_are_abandoned(gateway, key, caller, settings.database_pool_size, owner, revision)


async def calls_are_abandoned(
    gateway: RunningGateway, key: str, caller: Caller, connections: int, owner: asyncpg.Connection, revision: str
) -> None:
    async with gateway.http(key, **rpc_headers()) as http:
        await remember(gateway, http, "the graph is there")
        async with owner.transaction():
            await owner.execute("SELECT FROM graph_heads WHERE tenant_id = $1 FOR UPDATE", caller.tenant_id)
            for _ in range(2):
                abandoned = [abandon(gateway, key, revision) for _ in range(connections)]
                await asyncio.gather(*abandoned)
            assert await recalled(gateway, http, "graph")  # Which would be refused, were no connection left.
        await remember_and_find(gateway, http, "afterwards")
        assert not await recalled(gateway, http, "abandoned")


async def abandon(gateway: RunningGateway, key: str, revision: str) -> None:
    """Call a tool that has to wait, and leave."""
    async with gateway.client(key, "/mcp", revision=revision) as client:
        with anyio.move_on_after(1):
            await client.call_tool("remember", {"items": [{"text": "abandoned"}]})
            raise AssertionError("it did not have to wait")


async def administered(server: LocalPostgres, statement: str) -> None:
    """Change a setting of the server, also for open sessions."""
    administrator = await asyncpg.connect(server.url())
    await administrator.execute("SET default_transaction_read_only = off")
    await administrator.execute(statement)
    await administrator.execute("SELECT pg_reload_conf()")
    await administrator.close()


async def told_read_only(http: httpx2.AsyncClient) -> bool:
    return await add(http, 1) == "service_read_only"


async def written(http: httpx2.AsyncClient) -> bool:
    return await add(http, 2) is None


async def remember(gateway: RunningGateway, http: httpx2.AsyncClient, text: str) -> None:
    result = await gateway.call(http, "remember", {"items": [{"text": text}]}, path="/mcp")
    assert not result["isError"], result


async def recalled(gateway: RunningGateway, http: httpx2.AsyncClient, word: str) -> list[Any]:
    result = await gateway.call(http, "recall", {"query": word}, path="/mcp")
    assert not result["isError"], result
    return [memory for memory in result["structuredContent"]["memories"] if word in memory["text"]]


async def remember_and_find(gateway: RunningGateway, http: httpx2.AsyncClient, word: str) -> None:
    """Write an entity, search it, and recall it by words."""
    entity = {"name": f"Thing {word}", "entityType": "thing", "observations": [f"was noted {word} the flood"]}
    assert not (await gateway.call(http, "create_entities", {"entities": [entity]}))["isError"]
    found = await gateway.call(http, "search_nodes", {"query": f"{word} the flood"})
    assert found["structuredContent"] == {"entities": [entity], "relations": []}
    assert await recalled(gateway, http, word)


async def add(http: httpx2.AsyncClient, number: int) -> str | None:
    """Write an entity, and return None or the code of the refusal."""
    entity = {"name": f"e{number}", "entityType": "t", "observations": ["x"]}
    call = {"name": "create_entities", "arguments": {"entities": [entity]}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    response = await http.post("/mcp/x/memory", json=body)
    result = rpc_answer(response.text)["result"]
    return result["_meta"][ERROR_META]["code"] if result["isError"] else None


def require_away(tool: ToolSpec, result: CallToolResult) -> None:
    """Require that the tool reports the missing database as its toolset reports errors."""
    assert error_of(result) == {"code": "database_unavailable", "retry_after": 2}, tool.name
    if "facts" in tool.toolsets:
        assert (result.structured_content or {})["error_code"] == "connection_error", tool.name
        assert (result.structured_content or {})["success"] is False
    else:
        assert text_of(result).removeprefix("Error: ") == "The database is unavailable. Try again in a moment.", (
            tool.name
        )


async def unavailable(http: httpx2.AsyncClient, path: str) -> None:
    """Require that the request is refused in bounded time because the database is away."""
    started = time.monotonic()
    response = await http.get(path)
    assert time.monotonic() - started < BOUND_SECONDS
    assert response.status_code == 503, response.text
    assert response.json()["code"] == "database_unavailable"
    assert response.headers["Retry-After"]


async def ready(http: httpx2.AsyncClient) -> bool:
    return (await http.get("/health/ready")).status_code == 200
