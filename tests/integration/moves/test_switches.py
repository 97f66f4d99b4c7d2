"""A mover that is killed within the switch leaves a tenant that is served nowhere: gateways end that."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.accounts.identity import service as identity
from recollect.accounts.tenants.model import Tenant
from recollect.errors import TenantMoving
from recollect.ids import new_id
from recollect.platform.cells import store as directory
from recollect.platform.cells.model import Departure
from recollect.platform.cells.service import Cells
from recollect.settings import Settings
from recollect.settings.cells import HOME
from tests.integration.moves.test_sessions import ADD_PROVIDER, BEGIN_SESSION
from tests.support.cells import opened
from tests.support.gateway import issue_key
from tests.support.memories import Agent, names
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
        async with gateway._asked_at(AWAY) as session:
            return await directory.end_switch(session, Departure(tenant.id, AWAY, secret))

    async def told() -> list[Departure]:
        async with gateway._asked_at(HOME) as session:
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
        async with gateway._asked_at(AWAY) as session:
            assert await directory.end_switch(session, departure)
        await Agent(gateway, agent.caller).create("Hopper")


async def departures(gateway: Cells, tenant: Tenant) -> list[Departure]:
    async with gateway._asked_at(HOME) as session:
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
