"""Remembered callers: gateways are told of changes, and forget callers after a time in any case."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import IssuedKey
from recollect.accounts.plans import service as plans
from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from tests.support.erasures import erase_now
from tests.support.gateway import NewApiKey, RunningGateway, eventually, rpc_headers, serving
from tests.support.timeouts import MAX_WAIT_SECONDS

LONG = 10 * MAX_WAIT_SECONDS
"""Seconds for which callers are remembered if a test is not about time; more than the setting allows."""

REVOKE = "UPDATE api_keys SET revoked_at = clock_timestamp() WHERE id = $1"
"""Without an audit entry and without a message to gateways."""


@pytest.fixture(scope="module")
def lasting(settings: Settings) -> Settings:
    return settings.model_copy(update={"remember_callers_seconds": LONG})


@pytest.fixture(scope="module")
def gateway(lasting: Settings) -> Iterator[RunningGateway]:
    with serving(lasting) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def other_gateway(lasting: Settings) -> Iterator[RunningGateway]:
    with serving(lasting) as gateway:
        yield gateway


@pytest.fixture
async def agents(issue: NewApiKey, caller: Caller) -> IssuedKey:
    return await issue(caller)


@asynccontextmanager
async def opened(gateway: RunningGateway, secret: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(secret, **rpc_headers()) as http:
        yield http


async def status_of_call(gateway: RunningGateway, http: httpx2.AsyncClient) -> int:
    """The status of an MCP request."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    return (await http.post("/mcp/x/memory", json=body)).status_code


async def wait_until_remembered(
    gateway: RunningGateway, http: httpx2.AsyncClient, owner: asyncpg.Connection, key: IssuedKey
) -> None:
    """Wait until the caller is remembered: a key that was revoked silently is still served, since it is not looked
    up.
    """

    async def is_remembered() -> bool:
        await owner.execute("UPDATE api_keys SET revoked_at = NULL WHERE id = $1", key.key.id)
        if await status_of_call(gateway, http) != 200:  # It was just refused.
            return False
        await owner.execute(REVOKE, key.key.id)
        return await status_of_call(gateway, http) == 200

    await eventually(is_remembered)  # Nobody is remembered before the bus is connected.
    await owner.execute("UPDATE api_keys SET revoked_at = NULL WHERE id = $1", key.key.id)


@pytest.mark.proves("security: remembered-credentials")
async def test_a_revoked_key_is_refused_at_once_and_soon_by_other_gateways(
    gateway: RunningGateway,
    other_gateway: RunningGateway,
    agents: IssuedKey,
    admin_key: str,
    owner: asyncpg.Connection,
) -> None:
    async with (
        opened(gateway, agents.secret) as here,
        opened(other_gateway, agents.secret) as there,
        gateway.http(admin_key) as admin,
    ):
        await wait_until_remembered(gateway, here, owner, agents)
        await wait_until_remembered(other_gateway, there, owner, agents)
        assert (await admin.delete(f"/v1/keys/{agents.key.id}")).status_code in (200, 204)
        assert await status_of_call(gateway, here) == 401

        async def is_refused() -> bool:
            return await status_of_call(other_gateway, there) == 401

        await eventually(is_refused)


Act = Callable[[Operator, Caller], Awaitable[object]]

ACTS: dict[str, tuple[Act, int]] = {
    "suspended": (lambda operator, caller: tenants.suspend_tenant(operator, caller.tenant), 401),
    "deleted": (lambda operator, caller: erase_now(operator, caller.tenant), 401),
}


@pytest.mark.parametrize("act", ACTS)
async def test_acts_of_operators_are_announced(
    gateway: RunningGateway,
    agents: IssuedKey,
    caller: Caller,
    owner: asyncpg.Connection,
    settings: Settings,
    act: str,
) -> None:
    do, status = ACTS[act]
    async with opened(gateway, agents.secret) as http:
        await wait_until_remembered(gateway, http, owner, agents)
        async with Operator.connect(settings.migration_url, settings) as operator:
            await do(operator, caller)

        async def is_refused() -> bool:
            return await status_of_call(gateway, http) == status

        await eventually(is_refused)


async def test_changes_of_plans_are_announced(
    gateway: RunningGateway, agents: IssuedKey, caller: Caller, owner: asyncpg.Connection, settings: Settings
) -> None:
    name = f"plan-{caller.tenant_id}"
    async with opened(gateway, agents.secret) as http:

        async def limit() -> str | None:
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
            return (await http.post("/mcp/x/memory", json=body)).headers.get("RateLimit-Policy")

        for number in (50_000, 60_000):
            await wait_until_remembered(gateway, http, owner, agents)
            async with Operator.connect(settings.migration_url, settings) as operator:
                await plans.set_plan(operator, name, {"requests_per_minute": number})
                if number == 50_000:
                    await tenants.set_plan(operator, caller.tenant, name)

            async def is_told(number: int = number) -> bool:
                return str(number) in (await limit() or "")

            await eventually(is_told)


@pytest.mark.proves("security: remembered-credentials")
async def test_administrative_acts_never_use_a_remembered_caller(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, owner: asyncpg.Connection
) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "delete_graph", "arguments": {"graph": "none"}},
    }
    for method, address, body in (
        ("POST", "/v1/keys", {"name": "for later"}),
        ("GET", "/v1/members", None),
        ("POST", "/mcp/x/lineage", call),
    ):
        admins = await issue(caller, kind="admin")
        async with opened(gateway, admins.secret) as http:
            await wait_until_remembered(gateway, http, owner, admins)
            await owner.execute(REVOKE, admins.key.id)
            assert (await http.request(method, address, json=body)).status_code == 401
            assert await status_of_call(gateway, http) == 401  # It is no longer remembered.


@pytest.mark.proves("security: remembered-credentials")
async def test_a_remembered_caller_is_forgotten_after_a_time(
    settings: Settings, issue: NewApiKey, caller: Caller, owner: asyncpg.Connection
) -> None:
    agents = await issue(caller)
    with serving(settings.model_copy(update={"remember_callers_seconds": 1.0})) as gateway:
        async with opened(gateway, agents.secret) as http:
            await wait_until_remembered(gateway, http, owner, agents)
            await status_of_call(gateway, http)
            await owner.execute(REVOKE, agents.key.id)

            async def is_refused() -> bool:
                return await status_of_call(gateway, http) == 401

            await eventually(is_refused)


@pytest.mark.proves("security: remembered-credentials")
async def test_every_request_is_looked_up_while_redis_is_away(
    lasting: Settings, agents: IssuedKey, owner: asyncpg.Connection
) -> None:
    with serving(lasting.model_copy(update={"redis_url": "redis://127.0.0.1:1"})) as gateway:
        async with opened(gateway, agents.secret) as http:
            assert await status_of_call(gateway, http) == 200
            await owner.execute(REVOKE, agents.key.id)
            assert await status_of_call(gateway, http) == 401
