"""A gateway that listens on its own port, keys for it, and the official MCP client."""

import asyncio
import itertools
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import pytest
from litestar import Litestar
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import IssuedKey, NewKey
from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.postgres.tenant_database import TenantDatabase
from recollect.settings import Settings
from recollect.settings.addresses.public_url import local_url
from recollect_gateway.app import create_app
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_http.server.draining import Drain
from recollect_http.server.uvicorn_server import GatewayServer, server_config
from tests.support.timeouts import MAX_WAIT_SECONDS

T = TypeVar("T")

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
MODES = {LEGACY: "legacy", MODERN: MODERN}
"""Wire revisions, and the modes of the official client for them."""

NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of `http://` addresses, which would otherwise read the machine's certificates for 30 ms each."""

_ids = itertools.count(1)


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """A gateway that serves at `url` (http://127.0.0.1:port)."""

    url: str

    def http(self, key: str | None = None, **headers: str) -> httpx2.AsyncClient:
        """A plain HTTP client with that key."""
        bearer = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx2.AsyncClient(
            base_url=self.url, headers=bearer | headers, timeout=MAX_WAIT_SECONDS, verify=NO_AUTHORITIES
        )

    @asynccontextmanager
    async def client(
        self, key: str, path: str = "/mcp/x/memory", *, revision: str = LEGACY, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[Client]:
        """The official client, connected."""
        async with (
            self.http(key, **(headers or {})) as http,
            Client(streamable_http_client(self.url + path, http_client=http), mode=MODES[revision]) as client,
        ):
            yield client

    async def post(
        self, http: httpx2.AsyncClient, method: str, params: Mapping[str, Any], *, path: str = "/mcp/x/memory"
    ) -> dict[str, Any]:
        """Send a JSON-RPC request as current clients do, without checks of a client, and return the whole answer."""
        body = {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params}
        response = await http.post(path, content=json.dumps(body), headers=rpc_headers())
        answer = rpc_answer(response.text)
        assert answer.get("id") == body["id"], (response.status_code, answer)
        return answer

    async def call(
        self, http: httpx2.AsyncClient, tool: str, arguments: Any, *, path: str = "/mcp/x/memory"
    ) -> dict[str, Any]:
        """Call a tool, and return its result, which may be a tool error."""
        answer = await self.post(http, "tools/call", {"name": tool, "arguments": arguments}, path=path)
        result: dict[str, Any] = answer["result"]
        return result

    def write(self, data: bytes, *, read: bool = True) -> bytes:
        """Bytes on a bare connection, such as no HTTP client would send; the first part of what comes back.

        Without `read` the connection is closed at once.
        """
        address = urlsplit(self.url)
        with socket.create_connection(
            (str(address.hostname), address.port or 80), timeout=MAX_WAIT_SECONDS
        ) as connection:
            connection.sendall(data)
            return connection.recv(65536) if read else b""


def rpc_headers(revision: str = LEGACY) -> dict[str, str]:
    """The headers of a client of that revision, besides its credential."""
    return {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": revision,
    }


def rpc_answer(body: str) -> dict[str, Any]:
    """The JSON-RPC answer of a reply: plain JSON, or the last event of a stream."""
    lines = [line.removeprefix("data: ") for line in re.split(r"\r?\n", body) if line.startswith("data: {")]
    answer: dict[str, Any] = json.loads(lines[-1] if lines else body)
    return answer


@contextmanager
def serving(settings: Settings, app: Any = None, *, host: str = "127.0.0.1") -> Iterator[RunningGateway]:
    """A gateway, or another application, in a thread of this process, served as `python -m recollect_gateway` does.

    Its public address is where it listens, unless the settings name one. `host`: an address of this machine; one of
    IPv6 takes connections of IPv4, too.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        if ":" in host:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((host, 0))
        listening = RunningGateway(local_url(host, listener.getsockname()[1]))
        settings = settings.model_copy(update={"public_url": settings.public_url or listening.url})
        app = app or create_app(settings)
        drain = (app.state.get("drain") if isinstance(app, Litestar) else None) or Drain()
        server = GatewayServer(server_config(app, settings, drain), drain, settings.drain_seconds)
        thread = threading.Thread(target=server.run, args=([listener],), name="gateway")
        thread.start()
        try:
            give_up = time.monotonic() + MAX_WAIT_SECONDS
            while not server.started:
                assert thread.is_alive(), "the gateway did not start"
                assert time.monotonic() < give_up, "the gateway did not start in time"
                time.sleep(0.01)
            yield listening
        finally:
            server.should_exit = True
            thread.join(MAX_WAIT_SECONDS)
            assert not thread.is_alive(), "the gateway did not stop"


@pytest.fixture(scope="session")
def gateway(settings: Settings) -> Iterator[RunningGateway]:
    """The gateway of the whole run, on the run's PostgreSQL and Valkey."""
    with serving(settings) as gateway:
        yield gateway


NewApiKey = Callable[..., Awaitable[IssuedKey]]


@pytest.fixture(scope="session")
def issue(db: Database, settings: Settings) -> NewApiKey:
    """Makes API keys: `await issue(caller, scopes=…, …)`, the fields of NewKey."""

    async def make(caller: Caller, **fields: Any) -> IssuedKey:
        return await issue_key(db, settings, caller, **fields)

    return make


@pytest.fixture
async def key(issue: NewApiKey, caller: Caller) -> str:
    """The secret of an agent's key of the test's tenant."""
    return (await issue(caller)).secret


@pytest.fixture
async def admin_key(issue: NewApiKey, caller: Caller) -> str:
    """The secret of an admin's key of the test's tenant."""
    return (await issue(caller, kind="admin")).secret


async def issue_key(db: TenantDatabase, settings: Settings, caller: Caller, **fields: Any) -> IssuedKey:
    """Make an API key of the caller's tenant; the fields are those of NewKey."""
    async with db.transaction(caller) as tx:
        pepper = settings.key_secret.get_secret_value().encode()
        return await identity.create_key(tx, NewKey(**{"name": "test", **fields}), pepper=pepper)


@asynccontextmanager
async def in_one_task(context: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Enter and leave a context in one task, as anyio's scopes require; fixtures are entered and left in two."""
    entered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    leave = asyncio.Event()

    async def hold() -> None:
        async with context as value:
            entered.set_result(value)
            await leave.wait()

    holding = asyncio.create_task(hold())
    holding.add_done_callback(lambda _: entered.cancel())  # if entering failed
    try:
        yield await entered
    finally:
        leave.set()
        await holding


def text_of(result: CallToolResult) -> str:
    """The one text of a tool's result."""
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


def texts_of(result: CallToolResult) -> list[str]:
    """All texts of a tool's result."""
    return [content.text for content in result.content if isinstance(content, TextContent)]


async def answer(client: Client, tool: str, /, **arguments: Any) -> Any:
    """Call a tool that must succeed, and return its structured content."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(client: Client, tool: str, /, **arguments: Any) -> tuple[str, str]:
    """Call a tool that must fail, and return the code and the text of the error."""
    result = await client.call_tool(tool, arguments)
    return error_of(result)["code"], text_of(result)


def error_of(result: CallToolResult) -> dict[str, Any]:
    """The code of a tool error, and its path if it has one."""
    assert result.is_error
    error: dict[str, Any] = (result.meta or {})[ERROR_META]
    return error


async def revision_of(db: TenantDatabase, caller: Caller, graph: str = "default") -> int:
    """The newest revision of a graph; 0 where there is none."""
    async with db.transaction(caller, read_only=True) as tx:
        found = await tx.fetchval(
            Query.compile(
                "SELECT h.revision FROM graph_heads h JOIN graphs g ON g.id = h.graph_id AND g.tenant_id = h.tenant_id "
                "WHERE g.name = :graph"
            ),
            graph=graph,
        )
    return found or 0


async def eventually(
    holds: Callable[[], Awaitable[bool]], *, seconds: float = MAX_WAIT_SECONDS, every: float = 0.1
) -> None:
    """Wait until the condition is true, or fail after `seconds`. It polls often at first, later `every` seconds."""
    give_up, pause = time.monotonic() + seconds, 0.01
    while not await holds():
        assert time.monotonic() < give_up, f"still not so after {seconds} s"
        await asyncio.sleep(pause)
        pause = min(2 * pause, every)


async def until(holds: Callable[[], bool]) -> None:
    """As `eventually`, for a condition that is not a coroutine."""

    async def condition() -> bool:
        return holds()

    await eventually(condition)
