"""No part of a call goes on after its client left: clients leave every tool and route in the middle of its work.

Everything that they read is locked in PostgreSQL, so that each waits there until its client leaves, and would wait for
ever. The gateway has one place for calls of the tenant and one connection for it: if a call kept its own, the next one
would find none.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.graph.entities.model import NewEntity
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from recollect_local.postgres import LocalPostgres
from tests.conftest import NewTenant
from tests.contract.examples import EXAMPLES
from tests.support.documents import DOCUMENT, OPERATIONS
from tests.support.gateway import NewApiKey, RunningGateway, eventually
from tests.support.memories import Agent
from tests.support.routes import stand_ins
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.support.watched_gateway import read_heartbeat, watched_gateway
from tests.support.worst_calls import RouteRequest, least_request

pytestmark = pytest.mark.usefixtures("leaves_nothing")

ENDLESS = 20 * MAX_WAIT_SECONDS
"""Seconds after which PostgreSQL or the gateway would give up waiting."""

NARROW = {
    "concurrent_calls_per_tenant": 1,
    "database_pool_size": 2,
    "database_tenant_share": 0.5,
    "statement_timeout_seconds": ENDLESS,
    "lock_timeout_seconds": ENDLESS,
    "usage_flush_seconds": 3_600,
    "compute_seconds": 10**6,
}

KNOWING_CALLERS = ("api_keys", "tenants", "plans", "graphs")
"""Tables that are read before a call is at work, to identify the caller."""

WITHOUT_TABLES = {"/health/live", "/health/ready", "/v1/keys/report", "test_connection"}
"""Routes and tools that read no table, so that they do not wait; the key that is reported here is malformed."""

READING_GRAPHS = {"list_graphs", "delete_graph"}
"""Tools that read no other table here: there is no graph that could be deleted."""

BODIES: dict[str, dict[str, Any]] = {
    "/v1/graphs/{name}/recall": {"query": "who?"},
    "/v1/graphs/{name}/conversations": {"thread": "call", "messages": [{"role": "user", "content": "who?"}]},
    "/v1/graphs/{name}/revise": {"name": "nobody"},
    "/v1/graphs/{name}/forget": {"names": ["nobody"]},
    "/v1/graphs/{name}/nodes/batch": {"items": [{"name": "nobody"}]},
    "/v1/graphs/{name}/erase": {"name": "nobody"},
    "/v1/language-model": {"url": "https://models.example.com/v1", "model": "small"},
    "/v1/invitations": {"email": "nobody@example.com"},
    "/v1/email-domains": {"domain": "example.com"},
    "/v1/identity-providers": {
        "name": "Login",
        "issuer": "https://login.example.com",
        "client_id": "recollect",
        "client_secret": "x",
    },
    "/v1/trusted-issuers": {
        "name": "Machines",
        "issuer": "https://machines.example.com",
        "claim": "groups",
        "rules": [{"value": "agents", "scopes": ["memory:read"]}],
    },
    "/v1/webhooks": {"url": "https://hooks.example.com/", "events": ["graph.changed"]},
}
"""Bodies of routes that need optional fields, or values that a schema cannot describe, such as addresses."""

_NODES = {"type": "ref/resource", "uri": "recollect://graphs/{graph}/nodes/{name_or_id}"}
OTHER_REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("resources/read", {"uri": "recollect://graphs/default"}),
    ("resources/read", {"uri": "recollect://graphs/default/nodes/x"}),
    ("resources/read", {"uri": "memory://knowledge-graph"}),
    ("completion/complete", {"ref": _NODES, "argument": {"name": "name_or_id", "value": "x"}}),
]
"""Other requests of MCP that read the database."""

LISTING_GRAPHS: list[tuple[str, dict[str, Any]]] = [
    ("resources/list", {}),
    ("resources/read", {"uri": "recollect://graphs"}),
    ("completion/complete", {"ref": _NODES, "argument": {"name": "graph", "value": "x"}}),
]
"""Requests that read only a table that also identifies callers."""

ID = "00000000-0000-7000-8000-000000000001"
SOON = 0.01


@pytest.fixture(scope="module")
def alone() -> None:
    """Unlike other tests of faults, these share a gateway."""


@pytest.fixture(scope="module")
async def narrow(settings: Settings) -> AsyncIterator[RunningGateway]:
    async with watched_gateway(settings.model_copy(update=NARROW)) as gateway:
        yield gateway


@pytest.fixture(scope="module")
async def tenant_caller(new_tenant: NewTenant) -> Caller:
    return operator_caller(await new_tenant())


@pytest.fixture(scope="module")
async def admin(narrow: RunningGateway, issue: NewApiKey, tenant_caller: Caller) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of a tenant with a graph, whose key was used before: the use of a key is recorded now and then."""
    async with narrow.http((await issue(tenant_caller, kind="admin")).secret) as http:
        body = {"items": [{"text": "there is a graph"}]}
        assert (await http.post("/v1/graphs/default/memories", json=body)).status_code < 300
        yield http


@pytest.fixture(scope="module")
async def observer(postgres: LocalPostgres) -> AsyncIterator[asyncpg.Connection]:
    """A connection that sees the sessions of PostgreSQL, outside of transactions, which would freeze the view."""
    connection = await asyncpg.connect(postgres.url())
    yield connection
    await connection.close()


@pytest.fixture(scope="module")
async def holder(postgres: LocalPostgres) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres.url())
    yield connection
    await connection.close()


@pytest.fixture(scope="class")
async def everything_waits(holder: asyncpg.Connection, admin: httpx2.AsyncClient) -> AsyncIterator[None]:
    """Lock every table except those that identify callers."""
    async with holder.transaction():
        await lock(holder, lambda table: table not in KNOWING_CALLERS)
        yield


async def lock(holder: asyncpg.Connection, chosen: Callable[[str], bool]) -> None:
    tables = await holder.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'recollect'")
    names = ", ".join(f"recollect.{row['tablename']}" for row in tables if chosen(row["tablename"]))
    await holder.execute(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")


async def left_at_work(observer: asyncpg.Connection, asked: Awaitable[Any]) -> bool:
    """Whether the call waited in PostgreSQL when its client left. Waits until no part of it is at work there."""
    asking = asyncio.ensure_future(asked)

    async def is_at_work() -> bool:
        return asking.done() or await count_of(observer, "wait_event_type = 'Lock'") > 0

    async def is_idle() -> bool:
        return await count_of(observer, "state <> 'idle'") == 0

    await eventually(is_at_work, every=SOON)
    waited = not asking.done()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await eventually(is_idle, every=SOON)
    return waited


async def count_of(observer: asyncpg.Connection, condition: str) -> int:
    """The number of gateway connections that meet the condition."""
    count: int = await observer.fetchval(
        f"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'recollect' AND {condition}"
    )
    return count


async def called(gateway: RunningGateway, http: httpx2.AsyncClient, tool: str) -> dict[str, Any]:
    return await gateway.call(http, tool, EXAMPLES[tool], path="/mcp/x/all")


async def sent(http: httpx2.AsyncClient, request: RouteRequest) -> int:
    headers = {} if request.body is None else {"Content-Type": request.media_type}
    answer = await http.request(
        request.method.upper(), request.path, params=request.params, content=request.body, headers=headers
    )
    return answer.status_code


def request_of(method: str, path: str) -> RouteRequest:
    least = least_request(DOCUMENT, method, path, stand_ins(path, graph="default", id_=ID))
    if path == "/v1/graphs/{name}/distilled":
        least = replace(least, params={"thread": "call"})
    body = BODIES.get(path)
    return least if least.body is None or body is None else replace(least, body=json.dumps(body).encode())


READING_CALLERS = {
    (method, path)
    for method, path in OPERATIONS
    if path.startswith(("/v1/keys", "/v1/members", "/v1/plan", "/v1/tenant", "/v1/sessions", "/v1/oauth"))
    or path in {"/v1/graphs", *WITHOUT_TABLES}
}


@pytest.mark.usefixtures("everything_waits")
class TestAtWork:
    @pytest.mark.proves("security: abandoned-calls")
    async def test_a_tool_ends_with_its_client(
        self, narrow: RunningGateway, admin: httpx2.AsyncClient, observer: asyncpg.Connection, subtests: pytest.Subtests
    ) -> None:
        for tool in CATALOGUE:
            with subtests.test(tool.name):
                waited = await left_at_work(observer, called(narrow, admin, tool.name))
                assert waited or tool.name in WITHOUT_TABLES | READING_GRAPHS

    async def test_another_request_of_mcp_ends_with_its_client(
        self, narrow: RunningGateway, admin: httpx2.AsyncClient, observer: asyncpg.Connection, subtests: pytest.Subtests
    ) -> None:
        for method, params in OTHER_REQUESTS:
            with subtests.test(f"{method} {params}"):
                assert await left_at_work(observer, narrow.post(admin, method, params, path="/mcp/x/all")), params

    @pytest.mark.proves("security: abandoned-calls")
    async def test_a_route_ends_with_its_client(
        self, admin: httpx2.AsyncClient, observer: asyncpg.Connection, subtests: pytest.Subtests
    ) -> None:
        for method, path in OPERATIONS:
            with subtests.test(f"{method} {path}"):
                waited = await left_at_work(observer, sent(admin, request_of(method, path)))
                assert waited or (method, path) in READING_CALLERS


@pytest.mark.proves("security: abandoned-calls")
async def test_the_look_up_of_a_caller_ends_with_its_client(
    narrow: RunningGateway, admin: httpx2.AsyncClient, holder: asyncpg.Connection, observer: asyncpg.Connection
) -> None:
    """So do the routes that read no other tables."""
    async with holder.transaction():
        await lock(holder, lambda _: True)
        for method, path in sorted(READING_CALLERS):
            waited = await left_at_work(observer, sent(admin, request_of(method, path)))
            assert waited or path in WITHOUT_TABLES, (method, path)
        for tool in sorted(READING_GRAPHS):
            assert await left_at_work(observer, called(narrow, admin, tool)), tool
        for method, params in LISTING_GRAPHS:
            assert await left_at_work(observer, narrow.post(admin, method, params, path="/mcp/x/all")), method


@pytest.mark.parametrize("tool", ["find_duplicates", "compress_graph"])
async def test_a_computation_ends_with_its_client(
    narrow: RunningGateway, admin: httpx2.AsyncClient, db: Database, tenant_caller: Caller, tool: str
) -> None:
    agent = Agent(db, tenant_caller, "alike")
    await agent.create(*(NewEntity("x" * 440 + f"{n:060}", "thing") for n in range(4_000)))
    arguments = {"graph": "alike", "threshold": 0.65}
    async with narrow.http() as watching:
        before = (await read_heartbeat(watching)).spent
        asking = asyncio.create_task(narrow.call(admin, tool, arguments, path="/mcp/x/organize"))

        async def is_computing() -> bool:
            return (await read_heartbeat(watching)).spent > before + 1

        async def is_idle() -> bool:
            spent = (await read_heartbeat(watching)).spent
            await asyncio.sleep(0.5)
            return (await read_heartbeat(watching)).spent < spent + 0.1

        await eventually(is_computing)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await eventually(is_idle)
        result = await narrow.call(admin, "list_graphs", {}, path="/mcp/x/lineage")
    assert not result["isError"], result
