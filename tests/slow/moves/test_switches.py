"""A mover killed during the switch leaves a tenant that no cell serves: gateways and workers end the switch."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.accounts.identity import service as identity
from recollect.accounts.tenants.model import Tenant
from recollect.cells import store as directory
from recollect.cells.databases import Databases
from recollect.cells.model import TenantDeparture
from recollect.errors import TenantMoving
from recollect.ids import new_id
from recollect.moves import store as moves
from recollect.moves.model import TenantState
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect.settings.cells import HOME, CellUrls
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import Wakeups
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import switches
from recollect_workers.schedule import scheduled_jobs
from tests.slow.moves.test_sessions import ADD_PROVIDER, BEGIN_SESSION
from tests.support.cells import opened, routed
from tests.support.gateway import issue_key
from tests.support.memories import Agent, embedder, names
from tests.support.moves import AWAY, TwoCells, killed_after

DEPARTED = "find_subscription", 2
"""The statement after which a mover is killed, when the source has noted that the tenant departed."""

AT_ONCE = timedelta(0)
"""The time in which nobody but the mover ends its switch."""


@asynccontextmanager
async def killed_between(two_cells: TwoCells, tenant: Tenant, switch: timedelta = AT_ONCE) -> AsyncIterator[None]:
    """Inside, the tenant has departed and not arrived, and nobody continues the move. Somebody does in the end."""
    async with killed_after(*DEPARTED):
        await two_cells.move(tenant.slug, switch=switch)
    assert await places(two_cells, tenant) == ["departed", "arriving"]
    yield
    await two_cells.go_on(tenant.slug)
    assert await places(two_cells, tenant) == [None, "here"]
    assert await two_cells.leftovers() == []


async def places(two_cells: TwoCells, tenant: Tenant) -> list[str | None]:
    return [await two_cells.place(cell, tenant.slug) for cell in (HOME, AWAY)]


async def test_the_next_call_ends_the_switch_and_no_acknowledged_write_is_lost(
    two_cells: TwoCells, gateway: Databases, agent: Agent, tenant: Tenant
) -> None:
    there = routed(gateway, agent)
    await there.create("Hopper")
    async with killed_between(two_cells, tenant):
        await there.create("Lovelace")
        assert await places(two_cells, tenant) == ["departed", "here"]
        assert set(names(await there.read())) == {"Ada", "Grace", "Hopper", "Lovelace"}
        with pytest.raises(TenantMoving):
            await agent.create("Babbage")  # By a process that uses the old cell.


async def test_a_key_lookup_ends_the_switch_in_a_process_that_did_not_know_of_it(
    two_cells: TwoCells, reaching: Settings, agent: Agent, tenant: Tenant
) -> None:
    key = await issue_key(agent.db, reaching, agent.caller)
    async with killed_between(two_cells, tenant), opened(reaching) as gateway:
        pepper = reaching.key_secret.get_secret_value().encode()
        found = await identity.authenticate(gateway, key.secret, pepper=pepper)
        assert found.tenant_id == tenant.id
        assert await places(two_cells, tenant) == ["departed", "here"]


async def test_nobody_else_ends_the_switch_while_the_mover_may(
    two_cells: TwoCells, gateway: Databases, agent: Agent, tenant: Tenant
) -> None:
    async with killed_between(two_cells, tenant, timedelta(minutes=1)):
        with pytest.raises(TenantMoving):
            await routed(gateway, agent).create("Hopper")
        assert await places(two_cells, tenant) == ["departed", "arriving"]


async def test_a_tenant_arrives_only_by_its_switch_secret(
    two_cells: TwoCells, gateway: Databases, agent: Agent, tenant: Tenant
) -> None:
    """And not before the source has revealed it, whatever the target is asked."""

    async def ends(secret: UUID) -> bool:
        async with gateway._short_session_at(AWAY) as session:
            return await directory.end_switch(session, TenantDeparture(tenant.id, AWAY, secret))

    async def told() -> list[TenantDeparture]:
        async with gateway._short_session_at(HOME) as session:
            return await directory.find_departures(session, tenants=[tenant.id])

    async with killed_after("keep_switch_secret"):
        await two_cells.move(tenant.slug)
    assert await told() == []
    async with two_cells.bare(AWAY) as away:
        kept = await away.fetchval("SELECT switch_secret FROM tenants WHERE id = $1", tenant.id)
    assert not await ends(uuid4())
    async with two_cells.bare(HOME) as home:
        await home.execute("UPDATE tenants SET held_until = clock_timestamp() WHERE id = $1", tenant.id)
    await agent.create("Hopper")  # The hold has expired: the source continues to serve, and that secret is useless.
    async with killed_after("find_subscription"):
        await two_cells.go_on(tenant.slug, switch=AT_ONCE)
    assert await places(two_cells, tenant) == ["departed", "arriving"]
    assert not await ends(kept)
    [departure] = await told()
    assert await ends(departure.secret)
    assert await ends(departure.secret), "it may be done again"
    await two_cells.go_on(tenant.slug)
    assert await told() == []


async def test_an_interrupted_end_of_the_switch_is_completed_by_another(
    two_cells: TwoCells, gateway: Databases, agent: Agent, tenant: Tenant
) -> None:
    """Interrupted after the target has the tenant, and before the directory says so."""
    async with killed_between(two_cells, tenant):
        [departure] = await departures(gateway, tenant)
        async with gateway._short_session_at(AWAY) as session:
            assert await directory.end_switch(session, departure)
        await routed(gateway, agent).create("Hopper")


async def departures(gateway: Databases, tenant: Tenant) -> list[TenantDeparture]:
    async with gateway._short_session_at(HOME) as session:
        return await directory.find_departures(session, tenants=[tenant.id])


async def test_sessions_by_the_tenants_providers_end_with_the_switch(
    two_cells: TwoCells, gateway: Databases, agent: Agent, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    """Only the mover finds out whose password was changed meanwhile."""
    await owner.execute(ADD_PROVIDER, tenant.id)
    await owner.execute(BEGIN_SESSION.replace("$2", f"'{new_id()}'::uuid"), tenant.id)
    async with killed_between(two_cells, tenant):
        await routed(gateway, agent).create("Hopper")
        async with two_cells.bare(AWAY) as away:
            held = await away.fetch("SELECT revoked_at IS NULL AS h FROM sessions WHERE confined_to = $1", tenant.id)
        assert [row["h"] for row in held] == [False]


@pytest.fixture
async def worker(reaching: Settings, db: Database) -> AsyncIterator[WorkerContext]:
    """A worker of home."""
    async with connect_redis(reaching) as redis:
        wakeups = Wakeups(redis)
        yield WorkerContext(reaching, db, embedder(), wakeups, asyncio.Event())
        await wakeups.aclose()


async def cell_of(two_cells: TwoCells, tenant: Tenant) -> str | None:
    """The tenant's cell in the directory."""
    async with two_cells.bare(HOME) as home:
        cell: str | None = await home.fetchval("SELECT cell FROM tenant_cells WHERE id = $1", tenant.id)
        return cell


async def test_a_worker_ends_the_switch_of_a_tenant_that_nobody_calls(
    two_cells: TwoCells, worker: WorkerContext, agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Afterwards, it has nothing to ask of any other cell, though the mover has not returned yet."""
    async with killed_between(two_cells, tenant):
        await switches.end(worker)
        assert await places(two_cells, tenant) == ["departed", "here"]
        assert await cell_of(two_cells, tenant) == AWAY
        monkeypatch.setattr(switches, "session_in_cell", None)
        await switches.end(worker)


async def test_a_worker_completes_a_switch_in_either_direction(
    two_cells: TwoCells, worker: WorkerContext, agent: Agent, tenant: Tenant
) -> None:
    """The target has the tenant, and the directory does not say so. On the way back, home is the target."""
    async with killed_after("set_tenant_state"):
        await two_cells.move(tenant.slug, switch=AT_ONCE)
    assert await places(two_cells, tenant) == ["departed", "here"]
    await switches.end(worker)
    assert await cell_of(two_cells, tenant) == AWAY
    await two_cells.go_on(tenant.slug)
    async with killed_after(*DEPARTED):
        await two_cells.move(tenant.slug, to=HOME, switch=AT_ONCE)
    await switches.end(worker)
    assert await places(two_cells, tenant) == ["here", "departed"]
    assert await cell_of(two_cells, tenant) == HOME
    await two_cells.go_on(tenant.slug)


async def test_a_worker_leaves_the_switch_to_an_active_mover_and_waits_for_an_absent_cell(
    two_cells: TwoCells, worker: WorkerContext, agent: Agent, tenant: Tenant
) -> None:
    async with killed_after("record_step", 4):  # It is noted and not done: the source holds the writes.
        await two_cells.move(tenant.slug)
    await switches.end(worker)
    assert await places(two_cells, tenant) == ["leaving", "arriving"]
    async with killed_after("find_subscription"):
        await two_cells.go_on(tenant.slug, switch=timedelta(minutes=1))
    await switches.end(worker)
    assert await places(two_cells, tenant) == ["departed", "arriving"]
    async with two_cells.bare(HOME) as home:
        await home.execute("UPDATE tenants SET held_until = clock_timestamp() WHERE id = $1", tenant.id)
    lost = CellUrls(database_url="postgresql://recollect_app@127.0.0.1:9/recollect")
    for cells in ({}, {AWAY: lost}):
        await switches.end(replace(worker, settings=worker.settings.model_copy(update={"cells": cells})))
        assert await places(two_cells, tenant) == ["departed", "arriving"]
    await switches.end(worker)
    assert await places(two_cells, tenant) == ["departed", "here"]
    await two_cells.go_on(tenant.slug)


async def test_only_workers_of_home_end_switches_and_only_with_several_cells(worker: WorkerContext) -> None:
    def does(settings: Settings) -> bool:
        return switches.end in [regular.job for regular in scheduled_jobs(replace(worker, settings=settings))]

    assert does(worker.settings)
    assert not does(worker.settings.of_cell(AWAY))
    assert not does(worker.settings.model_copy(update={"cells": {}}))


async def test_notes_of_a_departure_are_deleted_when_a_cell_serves_the_tenant_again(
    two_cells: TwoCells, agent: Agent, tenant: Tenant
) -> None:
    """As after a restore: no note of the target or its secret remains."""
    noted = "SELECT num_nonnulls(held_until, switch_secret, departed_to) FROM tenants WHERE id = $1"
    async with Operator.connect(two_cells.known[HOME].url, two_cells.settings, role=None) as source:
        held_until = await moves.hold(source, tenant.id, timedelta(minutes=1))
        assert held_until is not None
        assert await moves.depart(source, tenant.id, held_until, target=AWAY, secret=uuid4(), most=AT_ONCE)
        assert await moves.set_tenant_state(source, tenant.id, TenantState.HERE, [TenantState.DEPARTED])
    async with two_cells.bare(HOME) as home:
        assert await home.fetchval(noted, tenant.id) == 0
