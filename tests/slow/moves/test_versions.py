"""A command does not move a tenant between cells of another version than its own, not even halfway."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from recollect.accounts.tenants.model import Tenant
from recollect.errors import ErrorCode, Unavailable
from recollect.moves import copying
from recollect.postgres.migrate import Migration, migrations
from recollect.settings.cells import HOME
from tests.support.memories import Agent
from tests.support.moves import AWAY, TwoCells, killed_after


@asynccontextmanager
async def refused(two_cells: TwoCells, tenant: Tenant, told: str) -> AsyncIterator[None]:
    """The act inside is refused and changes nothing: neither the step nor the place of the tenant."""

    async def seen() -> tuple[object, ...]:
        places = [await two_cells.place(cell, tenant.slug) for cell in (HOME, AWAY)]
        return await two_cells.step(tenant.slug), places, sorted(await two_cells.leftovers())

    before = await seen()
    with pytest.raises(Unavailable, match=told) as error:
        yield
    assert error.value.code is ErrorCode.SCHEMA_OUTDATED
    assert await seen() == before


async def test_a_newer_command_does_not_move_tenants_of_older_cells(
    two_cells: TwoCells, agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It neither begins, continues nor undoes a move, since both cells lack what it would need at the end."""
    lacks = "home lacks 9999_newer, .* Run `recollect migrate`"
    next_version = [*migrations(), Migration("9999_newer", "")]
    with monkeypatch.context() as patch:
        patch.setattr(copying, "migrations", lambda: next_version)
        async with refused(two_cells, tenant, lacks):
            await two_cells.move(tenant.slug)
    async with killed_after("put_tenant"):
        await two_cells.move(tenant.slug)
    with monkeypatch.context() as patch:
        patch.setattr(copying, "migrations", lambda: next_version)
        for act in (two_cells.go_on, two_cells.undo):
            async with refused(two_cells, tenant, lacks):
                await act(tenant.slug)
    assert await agent.create("Hopper") == ["Hopper"]
    await two_cells.undo(tenant.slug)


@pytest.mark.parametrize("cell", [HOME, AWAY])
async def test_an_older_command_does_not_move_tenants_of_newer_cells(
    two_cells: TwoCells, agent: Agent, tenant: Tenant, cell: str
) -> None:
    async with two_cells.bare(cell) as connection:
        await connection.execute("INSERT INTO schema_migrations (name, checksum) VALUES ('9999_newer', '')")
        try:
            async with refused(two_cells, tenant, f"{cell} has 9999_newer, which this command does not know"):
                await two_cells.move(tenant.slug)
        finally:
            await connection.execute("DELETE FROM schema_migrations WHERE name = '9999_newer'")
