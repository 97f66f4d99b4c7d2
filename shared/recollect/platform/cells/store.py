"""Queries of the directory, which is at home: in which cell a tenant is. And what a cell itself says of it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from recollect.platform.cells.model import Departure, OpenSwitch
from recollect.platform.sql import Queries
from recollect.platform.transactions import Session
from recollect.settings.cells import HOME

queries = Queries(__package__)


async def find_cell(session: Session, tenant_id: UUID) -> str:
    """The cell of a tenant: home where the directory does not name it."""
    named = await _named(session, tenants=[tenant_id])
    return named[0]["cell"] if named else HOME


async def find_cells(session: Session, slugs: Sequence[str]) -> list[str]:
    """The cells of the tenants of these slugs, each once; home's too where the directory does not name one."""
    named = {row["slug"]: row["cell"] for row in await _named(session, slugs=slugs)}
    return list(dict.fromkeys(named.get(slug, HOME) for slug in slugs))


async def _named(session: Session, *, tenants: Sequence[UUID] = (), slugs: Sequence[str] = ()) -> list[Any]:
    """What the directory says of these tenants."""
    return await session.fetch(queries.find_cells, tenants=list(tenants), slugs=list(slugs))


async def find_places(
    session: Session, *, tenants: Sequence[UUID] = (), slugs: Sequence[str] = (), hashes: Sequence[bytes] = ()
) -> list[str]:
    """What this cell says of these tenants, or of those with a credential that has one of these hashes."""
    rows = await session.fetch(queries.find_places, tenants=list(tenants), slugs=list(slugs), hashes=list(hashes))
    return [row["place"] for row in rows]


async def find_departures(
    session: Session, *, tenants: Sequence[UUID] = (), slugs: Sequence[str] = (), hashes: Sequence[bytes] = ()
) -> list[Departure]:
    """Which of these tenants, named as for `find_places`, departed from this cell and should have arrived by now."""
    rows = await session.fetch(queries.find_departures, tenants=list(tenants), slugs=list(slugs), hashes=list(hashes))
    return [Departure(**row) for row in rows]


async def end_switch(session: Session, departure: Departure) -> bool:
    """Have a tenant be in this cell, to which it departed; False where this cell does not know that secret."""
    is_here: bool = await session.fetchval(queries.end_switch, moving=departure.tenant_id, secret=departure.secret)
    return is_here


async def follow_move(session: Session, departure: Departure) -> None:
    """Have the directory name the cell to which a tenant moves."""
    await session.execute(queries.follow_move, moving=departure.tenant_id, target=departure.target)


async def list_open_switches(session: Session, *, most: int) -> list[OpenSwitch]:
    """Whose moves were about to switch, the oldest first; home knows them."""
    return [OpenSwitch(**row) for row in await session.fetch(queries.list_open_switches, most=most)]
