"""Queries of the schema's version."""

from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session

queries = Queries(__package__)


async def missing_migrations(session: Session, *, required: list[str]) -> list[str]:
    """Names of the required migrations that the database lacks."""
    return [row["name"] for row in await session.fetch(queries.missing_migrations, wanted=required)]
