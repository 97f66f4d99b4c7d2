"""Clients that leave before they are answered: their calls end with them, and nothing is logged as an error."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.graph.entities.model import NewEntity
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import LEGACY, MODERN, NewApiKey, RunningGateway, eventually, rpc_headers
from tests.support.memories import Agent
from tests.support.ports import reserved_port
from tests.support.timeouts import MAX_WAIT_SECONDS

pytestmark = pytest.mark.usefixtures("leaves_nothing")

SAID_LONG = "x" * 9_900


@dataclass(frozen=True, slots=True)
class LoggedGateway:
    """A gateway in a process of its own, and the file that it logs to."""

    running: RunningGateway
    log: Path

    def alarms(self) -> list[dict[str, Any]]:
        """The lines that it logged as an error, or with a traceback."""
        lines = self.log.read_text().splitlines()
        told = [json.loads(line) if line.startswith("{") else {"level": "error", "event": line} for line in lines]
        return [line for line in told if line.get("level") in ("error", "critical") or "exception" in line]


@pytest.fixture(scope="module")
def alone() -> None:
    """Unlike other tests of faults, these share a gateway."""


@pytest.fixture(scope="module")
async def logged(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LoggedGateway]:
    """A gateway whose time limits are longer than the test."""
    endless = {
        "compute_seconds": 10**6,
        "lock_timeout_seconds": 2 * MAX_WAIT_SECONDS,
        "statement_timeout_seconds": 2 * MAX_WAIT_SECONDS,
        "log_format": "json",
    }
    chosen = settings.model_copy(update=endless)
    environment = os.environ | {
        f"RECOLLECT_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
        for name, value in chosen.model_dump(exclude_unset=True, mode="json").items()
    }
    log = tmp_path_factory.mktemp("gateway") / "log"
    with reserved_port() as port, log.open("wb") as written:
        environment["RECOLLECT_PORT"] = str(port)
        process = subprocess.Popen(  # noqa: ASYNC220 - returns at once
            [sys.executable, "-m", "recollect_gateway"], env=environment, stderr=written
        )
        running = RunningGateway(f"http://127.0.0.1:{port}")
        try:
            async with running.http() as http:
                await eventually(lambda: _serves(http))
            yield LoggedGateway(running, log)
        finally:
            process.terminate()
            process.wait(MAX_WAIT_SECONDS)


@pytest.fixture(scope="module")
async def tenant_caller(new_tenant: NewTenant) -> Caller:
    return operator_caller(await new_tenant())


@pytest.fixture(scope="module")
async def secret(issue: NewApiKey, tenant_caller: Caller) -> str:
    return (await issue(tenant_caller)).secret


@pytest.fixture(scope="module")
async def agent(db: Database, tenant_caller: Caller) -> Agent:
    """The agent of a graph that takes a while to send, and of one that takes very long to compare."""
    agent = Agent(db, tenant_caller, "default")
    await agent.create(*(NewEntity(f"talker {n}", "talker", (f"{SAID_LONG}{n}",)) for n in range(1_000)))
    alike = Agent(db, tenant_caller, "alike")
    await alike.create(*(NewEntity("x" * 440 + f"{n:060}", "thing") for n in range(4_000)))
    return agent


@pytest.fixture
async def quiet(logged: LoggedGateway, owner: asyncpg.Connection, tenant_caller: Caller) -> AsyncIterator[None]:
    """After the test, the gateway serves, has no open statement or transaction, and logged no error."""
    before = len(logged.alarms())
    yield
    await eventually(lambda: _is_idle(owner))
    async with logged.running.http() as http:
        assert (await http.get("/health/ready")).status_code == 200
    assert logged.alarms()[before:] == []


@asynccontextmanager
async def held_graph(owner: asyncpg.Connection, caller: Caller) -> AsyncIterator[None]:
    """Lock the graphs of the tenant in PostgreSQL, so that writers wait."""
    async with owner.transaction():
        await owner.execute("SELECT 1 FROM graph_heads WHERE tenant_id = $1 FOR UPDATE", caller.tenant_id)
        yield


MCP_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
FACT = {"items": [{"text": "somebody left"}]}


def call(tool: str, arguments: dict[str, Any], revision: str) -> tuple[str, Any, dict[str, str]]:
    """The call of a tool as a request of a protocol revision."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    headers = rpc_headers(revision)
    if revision == MODERN:
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        }
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": tool}
    return "/mcp/x/all", {**MCP_CALL, "params": params}, headers


REQUESTS: dict[str, Callable[[str], tuple[str, Any, dict[str, str]]]] = {
    "mcp": lambda revision: call("remember", FACT, revision),
    "v1": lambda _: ("/v1/graphs/default/memories", FACT, {}),
}


@pytest.mark.usefixtures("agent", "quiet")
class TestDuringACall:
    @pytest.mark.parametrize(("transport", "revision"), [("mcp", LEGACY), ("mcp", MODERN), ("v1", LEGACY)])
    async def test_a_statement_ends_with_its_client(
        self,
        logged: LoggedGateway,
        secret: str,
        owner: asyncpg.Connection,
        tenant_caller: Caller,
        transport: str,
        revision: str,
    ) -> None:
        path, body, headers = REQUESTS[transport](revision)
        async with held_graph(owner, tenant_caller), logged.running.http(secret, **headers) as http:
            asking = asyncio.create_task(http.post(path, json=body))
            await eventually(lambda: _as_many_wait(owner, 1))
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await eventually(lambda: _as_many_wait(owner, 0))

    async def test_a_call_with_an_idempotency_key_is_finished(
        self, logged: LoggedGateway, secret: str, owner: asyncpg.Connection, tenant_caller: Caller
    ) -> None:
        path, with_key, answers = "/v1/graphs/default/memories", {"Idempotency-Key": "left"}, list[httpx2.Response]()

        async def answered() -> bool:
            answers.append(await http.post(path, json=FACT, headers=with_key))
            return answers[-1].status_code != 409

        async with logged.running.http(secret) as http:
            async with held_graph(owner, tenant_caller):
                asking = [asyncio.create_task(http.post(path, json=FACT, headers=each)) for each in (with_key, {})]
                await eventually(lambda: _as_many_wait(owner, 2))
                for each in asking:
                    each.cancel()
                await asyncio.gather(*asking, return_exceptions=True)
                await eventually(lambda: _as_many_wait(owner, 1))
            await eventually(answered)
        assert (answers[-1].is_success, answers[-1].headers.get("idempotency-replayed")) == (True, "true")

    @pytest.mark.parametrize("revision", [LEGACY, MODERN])
    async def test_a_computation_ends_with_its_client(self, logged: LoggedGateway, secret: str, revision: str) -> None:
        path, body, headers = call("find_duplicates", {"graph": "alike", "threshold": 0.65}, revision)
        async with logged.running.http(secret, **headers) as http, logged.running.http() as watching:
            asking = asyncio.create_task(http.post(path, json=body))
            await asyncio.sleep(2)
            assert not asking.done()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            assert (await watching.get("/health/live")).status_code == 200

    async def test_an_export_ends_with_its_client(self, logged: LoggedGateway, secret: str) -> None:
        async with (
            logged.running.http(secret) as http,
            http.stream("GET", "/v1/graphs/default/export") as response,
        ):
            async for _ in response.aiter_raw():
                break

    async def test_a_wait_for_a_job_ends_with_its_client(self, logged: LoggedGateway, secret: str) -> None:
        async with logged.running.http(secret, **rpc_headers()) as http:
            job = await logged.running.call(http, "reindex", {}, path="/mcp/x/all")
            wait = {"id": job["structuredContent"]["id"], "wait_seconds": 60}
            asking = asyncio.create_task(logged.running.call(http, "get_job", wait, path="/mcp/x/all"))
            await asyncio.sleep(1)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)


@pytest.mark.usefixtures("agent", "quiet")
class TestDuringAnUpload:
    @pytest.mark.parametrize(
        "path", ["/mcp", "/v1/graphs/default/memories", "/v1/graphs/default/import", "/v1/graphs/default/imports"]
    )
    @pytest.mark.parametrize("abruptly", [False, True], ids=["closed", "reset"])
    async def test_half_a_body_leaves_no_held_job(
        self,
        logged: LoggedGateway,
        secret: str,
        owner: asyncpg.Connection,
        tenant_caller: Caller,
        path: str,
        abruptly: bool,
    ) -> None:
        address = urlsplit(logged.running.url)
        media_type = "application/x-ndjson" if "import" in path else "application/json"
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost:{address.port}\r\nAuthorization: Bearer {secret}\r\n"
            f"Content-Type: {media_type}\r\nAccept: application/json, text/event-stream\r\nContent-Length: 2000\r\n\r\n"
        )
        with socket.create_connection((str(address.hostname), address.port or 80)) as client:
            client.sendall(head.encode() + b'{"type": ')
            await asyncio.sleep(0.3)
            if abruptly:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        await asyncio.sleep(0.3)
        await eventually(lambda: _none_waits_for_input(owner, tenant_caller))


async def _serves(http: httpx2.AsyncClient) -> bool:
    try:
        return (await http.get("/health/live")).status_code == 200
    except httpx2.TransportError:
        return False


async def _as_many_wait(owner: asyncpg.Connection, count: int) -> bool:
    """Whether so many connections wait for a lock."""
    waiting: int = await owner.fetchval("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted")
    return waiting == count


async def _none_waits_for_input(owner: asyncpg.Connection, caller: Caller) -> bool:
    """Whether no job of the tenant waits for input."""
    held: int = await owner.fetchval(
        "SELECT count(*) FROM jobs WHERE tenant_id = $1 AND held AND finished_at IS NULL", caller.tenant_id
    )
    return held == 0


async def _is_idle(owner: asyncpg.Connection) -> bool:
    """Whether no other connection is at work or in a transaction."""
    busy: int = await owner.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'recollect' AND state <> 'idle'"
    )
    return busy == 0
