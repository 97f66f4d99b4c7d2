"""Queries of the directory, which is at home: in which cell a tenant is."""

from collections.abc import Sequence
from uuid import UUID

from recollect.platform.sql import Queries
from recollect.platform.transactions import Session
from recollect.settings.cells import HOME

queries = Queries(__package__)


async def find_cell(session: Session, tenant_id: UUID) -> str:
    """The cell of a tenant: home where the directory does not name it."""
    row = await session.fetchrow(queries.find_cells, tenants=[tenant_id], slugs=[])
    return HOME if row is None else str(row["cell"])


async def find_cells(session: Session, slugs: Sequence[str]) -> list[str]:
    """The cells of the tenants of these slugs, each once; home's too where the directory does not name one."""
    rows = await session.fetch(queries.find_cells, tenants=[], slugs=list(slugs))
    named = {row["slug"]: row["cell"] for row in rows}
    return list(dict.fromkeys(named.get(slug, HOME) for slug in slugs))


async def find_places(
    session: Session, *, tenants: Sequence[UUID] = (), slugs: Sequence[str] = (), hashes: Sequence[bytes] = ()
) -> list[str]:
    """What this cell says of these tenants, or of those with a credential that has one of these hashes."""
    rows = await session.fetch(queries.find_places, tenants=list(tenants), slugs=list(slugs), hashes=list(hashes))
    return [row["place"] for row in rows]
