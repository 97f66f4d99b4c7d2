"""Queries of the directory in the home cell, which names each tenant's cell; and of what a cell says of a tenant."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from recollect.cells.model import OpenSwitch, TenantDeparture
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session
from recollect.settings.cells import HOME

queries = Queries(__package__)


async def find_cell(session: Session, tenant_id: UUID) -> str:
    """The cell of a tenant: home where the directory does not name one."""
    rows = await _find_cells(session, tenants=[tenant_id])
    return rows[0]["cell"] if rows else HOME


async def find_cells(session: Session, slugs: Sequence[str]) -> list[str]:
    """The cells of the tenants of these slugs, each once; home for a tenant that the directory does not name."""
    cells = {row["slug"]: row["cell"] for row in await _find_cells(session, slugs=slugs)}
    return list(dict.fromkeys(cells.get(slug, HOME) for slug in slugs))


async def _find_cells(session: Session, *, tenants: Sequence[UUID] = (), slugs: Sequence[str] = ()) -> list[Any]:
    """The entries of the directory for these tenants."""
    return await session.fetch(queries.find_cells, tenants=list(tenants), slugs=list(slugs))


async def find_tenant_states(
    session: Session, *, tenants: Sequence[UUID] = (), slugs: Sequence[str] = (), hashes: Sequence[bytes] = ()
) -> list[str]:
    """The states that this cell has for these tenants, or for those with a credential of one of these hashes."""
    return await session.fetch_column(
        queries.find_tenant_states, "place", tenants=list(tenants), slugs=list(slugs), hashes=list(hashes)
    )


async def find_departures(
    session: Session, *, tenants: Sequence[UUID] = (), slugs: Sequence[str] = (), hashes: Sequence[bytes] = ()
) -> list[TenantDeparture]:
    """Of these tenants, given as for `find_tenant_states`, those that departed from here and should have arrived."""
    return await session.fetch_objects(
        queries.find_departures, TenantDeparture, tenants=list(tenants), slugs=list(slugs), hashes=list(hashes)
    )


async def end_switch(session: Session, departure: TenantDeparture) -> bool:
    """Begin to serve a tenant in this cell, to which it departed; False where this cell does not know the secret."""
    return await session.fetchval(queries.end_switch, moving=departure.tenant_id, secret=departure.secret)


async def follow_move(session: Session, departure: TenantDeparture) -> None:
    """Enter the cell to which a tenant moves in the directory."""
    await session.execute(queries.follow_move, moving=departure.tenant_id, target=departure.target)


async def list_open_switches(session: Session, *, most: int) -> list[OpenSwitch]:
    """Tenants whose moves were about to switch, the oldest first; the home cell has them."""
    return [OpenSwitch(**row) for row in await session.fetch(queries.list_open_switches, most=most)]
