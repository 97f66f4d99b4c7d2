"""What is told where the database is older than this version."""

from recollect.errors import ErrorCode, Unavailable


def outdated(lacking: str) -> Unavailable:
    """The error that names a migration which the database lacks."""
    return Unavailable(
        f"The database is older than this version of Recollect: it lacks {lacking}. Run `recollect migrate`.",
        code=ErrorCode.SCHEMA_OUTDATED,
    )
