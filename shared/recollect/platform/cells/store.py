"""Queries of the directory, which is at home: in which cell a tenant is."""

from uuid import UUID

from recollect.platform.sql import Queries
from recollect.platform.transactions import Session
from recollect.settings.cells import HOME

queries = Queries(__package__)


async def find_cell(session: Session, tenant_id: UUID) -> str:
    """The cell of a tenant: home where the directory does not name it."""
    row = await session.fetchrow(queries.find_cells, tenants=[tenant_id], slugs=[])
    return HOME if row is None else str(row["cell"])


async def is_arriving(session: Session, secret_hash: bytes) -> bool:
    """Whether a credential with this hash is of a tenant that is arriving in this cell."""
    return bool(await session.fetchval(queries.is_arriving, hash=secret_hash))
