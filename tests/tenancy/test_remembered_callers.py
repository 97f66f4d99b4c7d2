"""Cached callers: none is served as one of another tenant, nor evicted by a change of another tenant."""

from uuid import uuid4

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.settings import Settings
from recollect_gateway.callers.remembered_callers import RememberedCallers
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway, eventually, rpc_headers, serving
from tests.support.timeouts import MAX_WAIT_SECONDS

REVOKE = "UPDATE api_keys SET revoked_at = clock_timestamp() WHERE id = $1"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


async def status(gateway: RunningGateway, secret: str, tenant: str | None = None) -> int:
    address = "/mcp" if tenant is None else f"/t/{tenant}/mcp"
    async with gateway.http(secret, **rpc_headers()) as http:
        return (await http.post(address, json=LIST)).status_code


@pytest.fixture
async def neighbour(new_tenant: NewTenant) -> Caller:
    return operator_caller(await new_tenant())


@pytest.mark.proves("security: remembered-callers")
async def test_a_cached_caller_is_served_only_at_addresses_of_its_own_tenant(
    settings: Settings, issue: NewApiKey, caller: Caller, neighbour: Caller, owner: asyncpg.Connection
) -> None:
    lasting = settings.model_copy(update={"remember_callers_seconds": 10 * MAX_WAIT_SECONDS})
    mine, admins_there = await issue(caller), await issue(neighbour, kind="admin")
    with serving(lasting) as gateway:

        async def is_remembered() -> bool:
            assert await status(gateway, mine.secret, caller.tenant) == 200
            for address in (neighbour.tenant, f"none-{uuid4()}"):
                assert await status(gateway, mine.secret, address) == 401
            assert await status(gateway, mine.secret) == 200
            await owner.execute(REVOKE, mine.key.id)
            served = await status(gateway, mine.secret)
            await owner.execute("UPDATE api_keys SET revoked_at = NULL WHERE id = $1", mine.key.id)
            return served == 200

        await eventually(is_remembered)
        await owner.execute(REVOKE, mine.key.id)
        async with gateway.http(admins_there.secret) as http:  # What another tenant does has it not looked up.
            assert (await http.post("/v1/keys", json={"name": "theirs"})).status_code == 201
        assert await status(gateway, mine.secret) == 200


def test_a_change_of_one_tenant_evicts_no_caller_of_another(caller: Caller, neighbour: Caller) -> None:
    callers = RememberedCallers(60.0, lambda: True)
    presented = [(who.tenant.encode(), None, None) for who in (caller, neighbour)]
    for each, who in zip(presented, (caller, neighbour), strict=True):
        callers.remember(each, who, callers.now())
    callers.forget(neighbour.tenant_id)
    assert [callers.find(each) for each in presented] == [caller, None]
