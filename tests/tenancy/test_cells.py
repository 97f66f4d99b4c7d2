"""Two tenants in two cells with equal rows: neither reaches anything of the other, in either direction."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import NewKey, worker_caller
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.errors import TenantMoving
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.settings.cells import HOME
from tests.support.attacks import admin_of, anonymous, attacks, ids_in, lasting, names_of
from tests.support.cells import OTHER, NewTenantOf
from tests.support.gateway import RunningGateway, issue_key
from tests.support.memories import at_work
from tests.support.people import browser, joined, sign_in
from tests.tenancy.conftest import Neighbour, contents, settled


@pytest.fixture
async def apart(
    cells: Databases, native: Caller, resident: Caller, owner: asyncpg.Connection, owner_b: asyncpg.Connection
) -> AsyncIterator[dict[str, tuple[Neighbour, asyncpg.Connection]]]:
    """A tenant of each cell, and the owner's connection there, by cell."""
    async with AsyncExitStack() as stack:
        at_home = await stack.enter_async_context(at_work(cells.home, native))
        away = await stack.enter_async_context(at_work(cells.all[1], resident))
        yield {HOME: (await settled(at_home, owner), owner), OTHER: (await settled(away, owner_b), owner_b)}


@pytest.mark.proves("security: cells")
@pytest.mark.parametrize(("of_stranger", "of_victim"), [(HOME, OTHER), (OTHER, HOME)])
async def test_foreign_ids_look_like_unknown_ones_and_nothing_moves(
    apart: Any, celled: Settings, celled_gateway: RunningGateway, cells: Databases, of_stranger: str, of_victim: str
) -> None:
    """Every route, as with tenants of one cell."""
    (stranger, there), (victim, here) = apart[of_stranger], apart[of_victim]
    names, own = await names_of(here, victim.caller), await names_of(there, stranger.caller)
    unknown = {name: str(uuid4()) for name in names}
    before = lasting(await contents(here, victim))
    hidden = ids_in(before) - ids_in(await contents(there, stranger))

    async def issue(caller: Caller, **fields: Any) -> Any:
        return await issue_key(cells.of(caller.tenant_id), celled, caller, **fields)

    async with admin_of(celled_gateway, issue, stranger.caller) as http:
        for foreign, other in zip(attacks(names, own), attacks(unknown, own), strict=True):
            answer = await foreign.send(http)
            where = (foreign, answer.status_code, answer.text)
            assert answer.status_code < 500, where
            assert [word for word in hidden - foreign.requested_ids() if word in answer.text] == [], where
            if foreign.url != other.url:
                assert anonymous(answer, foreign) == anonymous(await other.send(http), other), where
    assert lasting(await contents(here, victim)) == before


@pytest.mark.proves("security: cells")
@pytest.mark.parametrize(("of_tenant", "asked"), [(HOME, OTHER), (OTHER, HOME)])
async def test_a_transaction_in_the_wrong_cell_is_refused(
    celled: Settings, new_tenant_of: NewTenantOf, of_tenant: str, asked: str
) -> None:
    """Such a process has a wrong place of the tenant: a gateway, or a worker of the other cell."""
    tenant = await new_tenant_of(of_tenant)
    its = celled.of_cell(asked)
    async with Database.connect(its.database_url, settings=its) as cell:
        for caller in (tenant, worker_caller(tenant.tenant_id)):
            for read_only in (True, False):
                with pytest.raises(TenantMoving):
                    async with cell.transaction(caller, read_only=read_only):
                        raise AssertionError("it has begun")


async def test_a_key_is_valid_only_for_its_own_tenant(
    celled: Settings, celled_gateway: RunningGateway, cells: Databases, native: Caller, resident: Caller
) -> None:
    for caller, other in ((native, resident), (resident, native)):
        key = (await issue_key(cells.of(caller.tenant_id), celled, caller)).secret
        async with celled_gateway.http(key) as http:
            assert (await http.post(f"/t/{other.tenant}/mcp", json={})).status_code == 401
            told = (await http.get("/v1/graphs", headers={"X-Recollect-Tenant": other.tenant})).json()["items"]
        assert {graph["id"] for graph in told} == {str(await default_graph(cells, caller))}


async def default_graph(cells: Databases, caller: Caller) -> Any:
    async with cells.of(caller.tenant_id).transaction(caller, read_only=True) as tx:
        return (await graphs.get_graph(tx, "default")).id


async def test_a_member_of_one_tenant_is_unknown_in_the_other(
    celled: Settings, celled_gateway: RunningGateway, cells: Databases, native: Caller, resident: Caller
) -> None:
    pepper = celled.key_secret.get_secret_value().encode()
    for caller, other in ((native, resident), (resident, native)):
        person = await joined(cells, caller, Role.OWNER, pepper=pepper)
        async with browser(celled_gateway) as http:
            await sign_in(http, person.email)
            told = {}
            for tenant in (caller.tenant, other.tenant, "nobodys-name"):
                answer = await http.get("/v1/members", headers={"X-Recollect-Tenant": tenant})
                told[tenant] = answer.status_code, answer.text if answer.status_code != 200 else ""
            assert told[caller.tenant] == (200, "")
            assert told[other.tenant] == told["nobodys-name"]
            assert told[other.tenant][0] == 401


async def test_a_key_of_an_arriving_tenant_is_refused(
    celled: Settings, celled_gateway: RunningGateway, cells: Databases, resident: Caller, owner_b: asyncpg.Connection
) -> None:
    """Its rows may be incomplete."""
    async with cells.of(resident.tenant_id).transaction(resident) as tx:
        pepper = celled.key_secret.get_secret_value().encode()
        key = (await identity.create_key(tx, NewKey("test"), pepper=pepper)).secret
    await owner_b.execute("UPDATE tenants SET place = 'arriving' WHERE id = $1", resident.tenant_id)
    async with celled_gateway.http(key) as http:
        refused = await http.get("/v1/plan")
    assert (refused.status_code, refused.json()["code"]) == (503, "tenant_moving")
    assert "Retry-After" in refused.headers
