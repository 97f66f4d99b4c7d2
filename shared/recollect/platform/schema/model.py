"""What is told where the database is older than this version."""

import structlog

from recollect.errors import ErrorCode, Unavailable

log = structlog.get_logger(__name__)


def outdated(lacking: str) -> Unavailable:
    """The error of whoever is newer than the database, which lacks that migration: the log names it."""
    log.error("the database is older than this version: run `recollect migrate`", lacking=lacking)
    return Unavailable(
        "The database is older than this version of Recollect. Its operator runs `recollect migrate`.",
        code=ErrorCode.SCHEMA_OUTDATED,
    )
