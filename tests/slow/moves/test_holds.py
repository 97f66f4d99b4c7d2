"""Held writes continue by themselves, whatever happens to the mover, and none of them is lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant, TenantPatch
from recollect.errors import NotFound, TenantMoving, Unavailable
from recollect.moves import store
from recollect.moves.model import Step
from recollect.postgres.operator_sessions import Operator
from recollect.settings.cells import HOME
from tests.support.gateway import eventually
from tests.support.memories import Agent
from tests.support.moves import AWAY, TwoCells, killed_after

MINUTE = timedelta(minutes=1)

HOLDING = [("mark_log", 1), ("digest_of_tenant", 1), ("record_step", 3)]
"""Statements after which a mover is killed while writes are held; the last is the note that it switches."""


async def let_time_pass(two_cells: TwoCells, tenant: Tenant) -> None:
    """Let the hold expire."""
    async with two_cells.bare(HOME) as connection:
        held = await connection.execute(
            "UPDATE tenants SET held_until = clock_timestamp() WHERE id = $1 AND place = 'leaving'", tenant.id
        )
    assert held == "UPDATE 1"


async def names_in(two_cells: TwoCells, cell: str, tenant: Tenant) -> set[str]:
    async with two_cells.bare(cell) as connection:
        rows = await connection.fetch("SELECT name FROM nodes WHERE tenant_id = $1", tenant.id)
    return {row["name"] for row in rows}


@asynccontextmanager
async def mover(two_cells: TwoCells) -> AsyncIterator[Operator]:
    """A mover's connection to the source."""
    async with Operator.connect(two_cells.known[HOME].url, two_cells.settings, role=None) as operator:
        yield operator


async def depart(source: Operator, tenant: Tenant, held_until: Any) -> bool:
    """Let the tenant depart, as a move does."""
    async with source.transaction():
        await store.lock_writes(source, tenant.id)
        return await depart_locked(source, tenant, held_until)


async def depart_locked(source: Operator, tenant: Tenant, held_until: Any) -> bool:
    """The same in a transaction that already has the lock."""
    return await store.depart(source, tenant.id, held_until, target=AWAY, secret=uuid4(), most=MINUTE)


async def test_writes_continue_after_an_expired_hold_and_another_mover_includes_them(
    two_cells: TwoCells, agent: Agent, tenant: Tenant
) -> None:
    act: Callable[[str], Awaitable[None]] = two_cells.move
    for function, times in HOLDING:
        async with killed_after(function, times):
            await act(tenant.slug)
        with pytest.raises(TenantMoving):
            await agent.create(function)
        assert await two_cells.place(HOME, tenant.slug) == "leaving"
        await let_time_pass(two_cells, tenant)
        assert await agent.create(function) == [function]
        assert await two_cells.place(HOME, tenant.slug) == "here"
        act = two_cells.go_on
    await two_cells.go_on(tenant.slug)
    assert await names_in(two_cells, AWAY, tenant) == {"Ada", "Grace", *(function for function, _ in HOLDING)}
    assert await two_cells.leftovers() == []


async def test_a_mover_that_is_too_late_does_not_switch(
    two_cells: TwoCells, agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has compared both cells when its hold expires, and somebody writes."""
    original = store.record_step

    async def held_up(home: Operator, tenant_id: Any, step: Step) -> None:
        await original(home, tenant_id, step)
        if step is Step.SWITCH:
            await let_time_pass(two_cells, tenant)
            assert await agent.create("Babbage") == ["Babbage"]

    with monkeypatch.context() as patch:
        patch.setattr(store, "record_step", held_up)
        with pytest.raises(Unavailable, match="writes are allowed again"):
            await two_cells.move(tenant.slug)
    assert await two_cells.place(HOME, tenant.slug) == "here"
    assert await two_cells.step(tenant.slug) == "copy"
    await two_cells.go_on(tenant.slug)
    assert await names_in(two_cells, AWAY, tenant) == {"Ada", "Grace", "Babbage"}


async def test_a_mover_can_switch_only_with_its_own_valid_hold(
    two_cells: TwoCells, agent: Agent, tenant: Tenant
) -> None:
    async with mover(two_cells) as source:
        lost = await store.hold(source, tenant.id, MINUTE)
        own = await store.hold(source, tenant.id, MINUTE)
        assert not await depart(source, tenant, lost), "another one, whose check is not over, holds the writes"
        await let_time_pass(two_cells, tenant)
        assert not await depart(source, tenant, own), "it is over, though nobody has written"
        again = await store.hold(source, tenant.id, MINUTE)
        assert await depart(source, tenant, again)
        assert await store.hold(source, tenant.id, MINUTE) is None
    with pytest.raises(TenantMoving):
        await agent.create("Babbage")


async def test_a_write_about_to_commit_at_the_end_of_a_hold_prevents_the_switch(
    two_cells: TwoCells, agent: Agent, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    """The switch waits for it and then finds the hold ended, even if the clock is set back meanwhile."""
    async with mover(two_cells) as source:
        held_until = await store.hold(source, tenant.id, MINUTE)
        await let_time_pass(two_cells, tenant)
        async with owner.transaction():
            await owner.execute("SELECT set_config('recollect.tenant_id', $1, true)", str(tenant.id))
            await owner.execute("UPDATE graphs SET metadata = metadata WHERE tenant_id = $1", tenant.id)
            await owner.execute("SELECT require_here(true, true)")
            switching = asyncio.create_task(depart(source, tenant, held_until))
            await eventually(lambda: somebody_waits(owner))
            assert not switching.done()
        assert await switching is False
    assert await two_cells.place(HOME, tenant.slug) == "here"


async def test_a_write_about_to_commit_when_the_tenant_departs_is_refused(
    two_cells: TwoCells, agent: Agent, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    async with mover(two_cells) as source:
        async with source.transaction():
            await store.lock_writes(source, tenant.id)
            held_until = await store.hold(source, tenant.id, MINUTE)
            assert held_until is not None
            writing = asyncio.create_task(agent.create("Babbage"))
            await eventually(lambda: somebody_waits(owner))
            assert await depart_locked(source, tenant, held_until)
        with pytest.raises(TenantMoving):
            await writing
    assert await names_in(two_cells, HOME, tenant) == {"Ada", "Grace"}


async def somebody_waits(owner: asyncpg.Connection) -> bool:
    waiting = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
    return bool(await owner.fetchval(waiting))


async def test_after_an_expired_hold_operators_can_change_the_tenant_and_workers_see_it(
    two_cells: TwoCells, agent: Agent, tenant: Tenant, operator: Operator, owner: asyncpg.Connection
) -> None:
    staying = "SELECT EXISTS (SELECT FROM tenants_staying WHERE id = $1)"
    async with mover(two_cells) as source:
        await store.hold(source, tenant.id, MINUTE)
        assert not await owner.fetchval(staying, tenant.id)
        await let_time_pass(two_cells, tenant)
        assert await owner.fetchval(staying, tenant.id)
        assert (await tenants.suspend_tenant(operator, tenant.slug)).status == "suspended"
        assert await two_cells.place(HOME, tenant.slug) == "here"


async def test_a_suspension_waits_for_a_switch_without_deadlock(
    two_cells: TwoCells, agent: Agent, tenant: Tenant, operator: Operator, owner: asyncpg.Connection
) -> None:
    async with mover(two_cells) as source:
        held_until = await store.hold(source, tenant.id, MINUTE)
        assert held_until is not None
        async with source.transaction():
            await store.lock_writes(source, tenant.id)
            suspending = asyncio.create_task(tenants.suspend_tenant(operator, tenant.slug))
            await eventually(lambda: somebody_waits(owner))
            assert await depart_locked(source, tenant, held_until)
        with pytest.raises(NotFound):
            await suspending


async def test_a_write_that_ends_a_hold_does_not_deadlock_with_a_suspension(
    two_cells: TwoCells, agent: Agent, tenant: Tenant, operator: Operator, owner: asyncpg.Connection
) -> None:
    async with mover(two_cells) as source:
        await store.hold(source, tenant.id, MINUTE)
    await let_time_pass(two_cells, tenant)
    async with owner.transaction():
        await owner.execute("SELECT set_config('recollect.tenant_id', $1, true)", str(tenant.id))
        await owner.execute("UPDATE graphs SET metadata = metadata WHERE tenant_id = $1", tenant.id)
        await owner.execute("SELECT lock_writes($1, false)", tenant.id)
        suspending = asyncio.create_task(tenants.suspend_tenant(operator, tenant.slug))
        await eventually(lambda: somebody_waits(owner))
        await owner.execute("SELECT require_here(true, true)")
    assert (await suspending).status == "suspended"


async def test_a_tenants_change_of_its_own_row_does_not_deadlock_with_a_suspension(
    agent: Agent, tenant: Tenant, operator: Operator, owner: asyncpg.Connection
) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        await tenants.change_own_tenant(tx, TenantPatch(name="Another"))
        suspending = asyncio.create_task(tenants.suspend_tenant(operator, tenant.slug))
        await eventually(lambda: somebody_waits(owner))
    assert ((await suspending).status, (await suspending).name) == ("suspended", "Another")


async def test_a_failed_switch_lets_writes_continue(
    two_cells: TwoCells, agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: Any, **__: Any) -> bool:
        raise Unavailable("Another one is at work.")

    with monkeypatch.context() as patch:
        patch.setattr(store, "depart", fails)
        with pytest.raises(Unavailable, match="Another one"):
            await two_cells.move(tenant.slug)
    assert await agent.create("Babbage") == ["Babbage"]
    assert await two_cells.step(tenant.slug) == "copy"
    await two_cells.go_on(tenant.slug)
    assert await names_in(two_cells, AWAY, tenant) == {"Ada", "Grace", "Babbage"}


@pytest.mark.parametrize("noted", ["copy", "hold", "check"])
async def test_a_departed_tenant_arrives_whatever_step_was_noted(
    two_cells: TwoCells, agent: Agent, tenant: Tenant, noted: str
) -> None:
    """As after home was restored to an earlier state."""
    async with killed_after("depart", 1):
        await two_cells.move(tenant.slug)
    async with two_cells.bare(HOME) as connection:
        await connection.execute("UPDATE tenant_moves SET step = $1 WHERE id = $2", noted, tenant.id)
    await two_cells.go_on(tenant.slug)
    assert await two_cells.place(AWAY, tenant.slug) == "here"
    assert await names_in(two_cells, AWAY, tenant) == {"Ada", "Grace"}
