"""A mover that is killed within the switch leaves a tenant that is served nowhere: gateways and workers end that."""

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
from recollect.errors import TenantMoving
from recollect.ids import new_id
from recollect.moves import store as moves
from recollect.moves.model import TenantPlace
from recollect.platform.cache import connect_redis
from recollect.platform.cells import store as directory
from recollect.platform.cells.model import TenantDeparture
from recollect.platform.cells.service import Cells
from recollect.platform.db import Database
from recollect.platform.operator_sessions import Operator
from recollect.platform.queue import Wakeups
from recollect.settings import Settings
from recollect.settings.cells import HOME, CellUrls
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import switches
from recollect_workers.schedule import scheduled_jobs
from tests.integration.moves.test_sessions import ADD_PROVIDER, BEGIN_SESSION
from tests.support.cells import opened
from tests.support.gateway import issue_key
from tests.support.memories import Agent, embedder, names
from tests.support.moves import AWAY, TwoCells, killed_after

DEPARTED = "find_subscription", 2
"""After which statement a mover is killed when the source has said that the tenant departed."""

AT_ONCE = timedelta(0)
"""How long nobody but the mover ends its switch."""


@asynccontextmanager
async def killed_between(two_cells: TwoCells, tenant: Tenant, switch: timedelta = AT_ONCE) -> AsyncIterator[None]:
    """The tenant has departed and has not arrived, and nobody continues the move inside; somebody does in the end."""
    async with killed_after(*DEPARTED):
        await two_cells.move(tenant.slug, switch=switch)
    assert await places(two_cells, tenant) == ["departed", "arriving"]
    yield
    await two_cells.go_on(tenant.slug)
    assert await places(two_cells, tenant) == [None, "here"]
    assert await two_cells.leftovers() == []


async def places(two_cells: TwoCells, tenant: Tenant) -> list[str | None]:
    return [await two_cells.place(cell, tenant.slug) for cell in (HOME, AWAY)]


async def test_the_next_call_ends_it_and_nothing_that_was_acknowledged_is_lost(
    two_cells: TwoCells, gateway: Cells, agent: Agent, tenant: Tenant
) -> None:
    there = Agent(gateway, agent.caller)
    await there.create("Hopper")
    async with killed_between(two_cells, tenant):
        await there.create("Lovelace")
        assert await places(two_cells, tenant) == ["departed", "here"]
        assert set(names(await there.read())) == {"Ada", "Grace", "Hopper", "Lovelace"}
        with pytest.raises(TenantMoving):
            await agent.create("Babbage")  # By a process that goes to the old place.


async def test_a_key_that_is_looked_up_ends_it_in_a_process_that_knew_of_nothing(
    two_cells: TwoCells, reaching: Settings, agent: Agent, tenant: Tenant
) -> None:
    key = await issue_key(agent.db, reaching, agent.caller)
    async with killed_between(two_cells, tenant), opened(reaching) as gateway:
        pepper = reaching.key_secret.get_secret_value().encode()
        found = await identity.authenticate(gateway, key.secret, pepper=pepper)
        assert found.tenant_id == tenant.id
        assert await places(two_cells, tenant) == ["departed", "here"]


async def test_nobody_else_ends_it_while_the_mover_may_do_so_itself(
    two_cells: TwoCells, gateway: Cells, agent: Agent, tenant: Tenant
) -> None:
    async with killed_between(two_cells, tenant, timedelta(minutes=1)):
        with pytest.raises(TenantMoving):
            await Agent(gateway, agent.caller).create("Hopper")
        assert await places(two_cells, tenant) == ["departed", "arriving"]


async def test_a_tenant_arrives_by_its_secret_and_by_no_other(
    two_cells: TwoCells, gateway: Cells, agent: Agent, tenant: Tenant
) -> None:
    """Not before the source has told it, whatever the target is asked."""

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
    await agent.create("Hopper")  # The hold is over: the source serves on, and that secret lets nobody be anywhere.
    async with killed_after("find_subscription"):
        await two_cells.go_on(tenant.slug, switch=AT_ONCE)
    assert await places(two_cells, tenant) == ["departed", "arriving"]
    assert not await ends(kept)
    [departure] = await told()
    assert await ends(departure.secret)
    assert await ends(departure.secret), "it may be done again"
    await two_cells.go_on(tenant.slug)
    assert await told() == []


async def test_whoever_is_killed_while_ending_it_another_does(
    two_cells: TwoCells, gateway: Cells, agent: Agent, tenant: Tenant
) -> None:
    """After the target has it, and before the directory says so."""
    async with killed_between(two_cells, tenant):
        [departure] = await departures(gateway, tenant)
        async with gateway._short_session_at(AWAY) as session:
            assert await directory.end_switch(session, departure)
        await Agent(gateway, agent.caller).create("Hopper")


async def departures(gateway: Cells, tenant: Tenant) -> list[TenantDeparture]:
    async with gateway._short_session_at(HOME) as session:
        return await directory.find_departures(session, tenants=[tenant.id])


async def test_what_its_providers_began_ends_with_it(
    two_cells: TwoCells, gateway: Cells, agent: Agent, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    """Only whoever moves it finds out whose password was changed meanwhile."""
    await owner.execute(ADD_PROVIDER, tenant.id)
    await owner.execute(BEGIN_SESSION.replace("$2", f"'{new_id()}'::uuid"), tenant.id)
    async with killed_between(two_cells, tenant):
        await Agent(gateway, agent.caller).create("Hopper")
        async with two_cells.bare(AWAY) as away:
            held = await away.fetch("SELECT revoked_at IS NULL AS h FROM sessions WHERE confined_to = $1", tenant.id)
        assert [row["h"] for row in held] == [False]


@pytest.fixture
async def worker(reaching: Settings, db: Database) -> AsyncIterator[WorkerContext]:
    """Of home."""
    async with connect_redis(reaching) as redis:
        wakeups = Wakeups(redis)
        yield WorkerContext(reaching, db, embedder(), wakeups, asyncio.Event())
        await wakeups.aclose()


async def cell_of(two_cells: TwoCells, tenant: Tenant) -> str | None:
    """Where the directory has it."""
    async with two_cells.bare(HOME) as home:
        cell: str | None = await home.fetchval("SELECT cell FROM tenant_cells WHERE id = $1", tenant.id)
        return cell


async def test_of_a_tenant_that_nobody_calls_a_worker_ends_it(
    two_cells: TwoCells, worker: WorkerContext, agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And has nothing to ask of any other cell from then on, though whoever moved it does not come back yet."""
    async with killed_between(two_cells, tenant):
        await switches.end(worker)
        assert await places(two_cells, tenant) == ["departed", "here"]
        assert await cell_of(two_cells, tenant) == AWAY
        monkeypatch.setattr(switches, "session_in_cell", None)
        await switches.end(worker)


async def test_a_worker_goes_on_with_what_another_left_and_back_home_too(
    two_cells: TwoCells, worker: WorkerContext, agent: Agent, tenant: Tenant
) -> None:
    """The target has it, and the directory does not say so; on the way back home is the target."""
    async with killed_after("set_place"):
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


async def test_a_worker_leaves_it_to_the_mover_that_may_be_at_it_and_waits_for_a_cell_that_is_away(
    two_cells: TwoCells, worker: WorkerContext, agent: Agent, tenant: Tenant
) -> None:
    async with killed_after("record_step", 4):  # Noted, and not done: the source holds the writes.
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


async def test_workers_of_home_do_so_where_there_are_several_cells(worker: WorkerContext) -> None:
    def does(settings: Settings) -> bool:
        return switches.end in [regular.job for regular in scheduled_jobs(replace(worker, settings=settings))]

    assert does(worker.settings)
    assert not does(worker.settings.of_cell(AWAY))
    assert not does(worker.settings.model_copy(update={"cells": {}}))


async def test_what_was_noted_of_a_departure_goes_with_it(two_cells: TwoCells, agent: Agent, tenant: Tenant) -> None:
    """Whoever has a cell serve a tenant again, as after a restore, leaves no word of where it went and by what."""
    noted = "SELECT num_nonnulls(held_until, switch_secret, departed_to) FROM tenants WHERE id = $1"
    async with Operator.connect(two_cells.known[HOME].url, two_cells.settings, role=None) as source:
        held_until = await moves.hold(source, tenant.id, timedelta(minutes=1))
        assert held_until is not None
        assert await moves.depart(source, tenant.id, held_until, target=AWAY, secret=uuid4(), most=AT_ONCE)
        assert await moves.set_place(source, tenant.id, TenantPlace.HERE, [TenantPlace.DEPARTED])
    async with two_cells.bare(HOME) as home:
        assert await home.fetchval(noted, tenant.id) == 0
