"""Queries of operators: the directory, which is in the home cell, and the state of a cell."""

from uuid import UUID

from recollect.cells.directory.model import CellSize, DirectoryEntry
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Queries

queries = Queries(__package__)


async def find_entry(
    operator: Operator, *, slug: str | None = None, tenant_id: UUID | None = None
) -> DirectoryEntry | None:
    """The directory's entry of a tenant, by its slug or its id; None where there is none."""
    return await operator.fetch_object(queries.find_entry, DirectoryEntry, slug=slug, id=tenant_id)


async def claim_slug(operator: Operator, tenant_id: UUID, slug: str, cell: str) -> bool:
    """Enter a tenant in the directory before it is created; False where another tenant has the slug."""
    return await operator.fetchval(queries.claim_slug, id=tenant_id, slug=slug, cell=cell) is not None


async def release_slug(operator: Operator, tenant_id: UUID) -> None:
    """Remove the entry of a tenant that was not created, or has been erased."""
    await operator.execute(queries.release_slug, id=tenant_id)


async def list_slugs(operator: Operator, cell: str) -> list[str]:
    """The slugs of the tenants that the directory has in a cell."""
    return [row["slug"] for row in await operator.fetch(queries.list_slugs, cell=cell)]


async def forget_cell(operator: Operator, cell: str) -> list[str]:
    """Remove the entries of all tenants of a cell; their slugs."""
    return [row["slug"] for row in await operator.fetch(queries.forget_cell, cell=cell)]


async def has_tenant(operator: Operator, tenant_id: UUID) -> bool:
    """Whether a cell has a tenant's rows, whether or not it serves it."""
    return bool(await operator.fetchval(queries.has_tenant, id=tenant_id))


async def measure_cell(operator: Operator) -> CellSize:
    """The size of a cell."""
    row = await operator.fetchrow(queries.measure_cell)
    assert row is not None
    return CellSize(**row)


async def missing_migrations(operator: Operator, wanted: list[str]) -> list[str]:
    """Of these migrations, those that a cell lacks."""
    return [row["name"] for row in await operator.fetch(queries.missing_migrations, wanted=wanted)]


async def server_version(operator: Operator) -> str:
    """The version of PostgreSQL."""
    version: str = await operator.fetchval(queries.server_version)
    return version
