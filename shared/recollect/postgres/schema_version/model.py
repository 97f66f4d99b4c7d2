"""The error for a database that is older than this version."""

import structlog

from recollect.errors import ErrorCode, Unavailable

log = structlog.get_logger(__name__)


def outdated(migration: str) -> Unavailable:
    """The error for a database that lacks this migration, which is logged."""
    log.error("database schema is outdated: run `recollect migrate`", lacking=migration)
    return Unavailable(
        "The database is older than this version of Recollect. Its operator runs `recollect migrate`.",
        code=ErrorCode.SCHEMA_OUTDATED,
    )
