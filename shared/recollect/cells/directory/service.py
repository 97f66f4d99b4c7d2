"""Use cases of the directory: the cell of a tenant, the owner of a slug, and the state of a cell."""

from uuid import UUID

from recollect.cells.directory import store
from recollect.cells.directory.model import CellSize, DirectoryEntry
from recollect.errors import Conflict, ErrorCode
from recollect.postgres.migrate import migrations
from recollect.postgres.operator_sessions import Operator
from recollect.settings.cells import HOME


async def find_cell(home: Operator, *, slug: str | None = None, tenant_id: UUID | None = None) -> str:
    """The cell of a tenant, for operators; calls of tenants find it by `recollect.cells.databases`."""
    entry = await store.find_entry(home, slug=slug, tenant_id=tenant_id)
    return HOME if entry is None else entry.cell


async def find_settled(home: Operator, slug: str) -> DirectoryEntry | None:
    """The directory's entry of a slug, unless it is new and its tenant perhaps not created yet."""
    entry = await store.find_entry(home, slug=slug)
    return None if entry is None or entry.is_new else entry


async def claim_slug(home: Operator, tenant_id: UUID, slug: str, cell: str) -> None:
    """Enter a new tenant before it is created. Raises Conflict where a tenant of any cell has the slug."""
    if not await store.claim_slug(home, tenant_id, slug, cell):
        raise Conflict(f"There is already a tenant {slug!r}.", code=ErrorCode.TENANT_EXISTS)


async def release_slug(home: Operator, tenant_id: UUID) -> None:
    """Remove the entry of a tenant that was not created, or has been erased."""
    await store.release_slug(home, tenant_id)


async def list_slugs(home: Operator, cell: str) -> list[str]:
    """The slugs of the tenants that the directory has in a cell, erased ones included."""
    return await store.list_slugs(home, cell)


async def forget_cell(home: Operator, cell: str) -> list[str]:
    """Remove the entries of a cell that no longer exists; return the slugs, which are free from then on."""
    return sorted(await store.forget_cell(home, cell))


async def has_tenant(operator: Operator, tenant_id: UUID) -> bool:
    """Whether a cell has a tenant's rows, whether or not it serves it."""
    return await store.has_tenant(operator, tenant_id)


async def measure_cell(operator: Operator) -> CellSize:
    """The size of a cell."""
    return await store.measure_cell(operator)


async def server_version(operator: Operator) -> str:
    """The version of PostgreSQL of a cell, such as "18.1"."""
    return await store.server_version(operator)


async def missing_migrations(operator: Operator) -> list[str]:
    """The migrations of this version that a cell lacks."""
    return await store.missing_migrations(operator, [migration.name for migration in migrations()])
