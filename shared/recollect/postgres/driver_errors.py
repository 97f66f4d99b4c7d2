"""Translation of the driver's errors into errors for callers."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import asyncpg
import structlog

from recollect.errors import (
    ErrorCode,
    InvalidInput,
    RecollectError,
    TenantMoving,
    TooLarge,
    Unauthenticated,
    Unavailable,
)

_OF_ACCOUNTS = frozenset(
    f"{table}_person_id_fkey" for table in ("members", "sessions", "password_resets", "passkeys", "passkey_challenges")
)
"""Foreign keys to a person, whose account may be deleted just when the row is written."""

DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)

OUT_OF_ROOM = (asyncpg.DiskFullError, asyncpg.OutOfMemoryError)
"""The server's disk or memory is full. Its message is logged for operators; callers get a shorter one."""

log = structlog.get_logger(__name__)


@asynccontextmanager
async def translated_errors() -> AsyncIterator[None]:
    """Turn the driver's errors into errors for callers; unforeseen ones pass through."""
    try:
        yield
    except (TimeoutError, *DRIVER_ERRORS) as error:
        translated = translate(error)
        if translated is None:
            raise
        if isinstance(error, OUT_OF_ROOM):
            log.warning("PostgreSQL is out of disk space or memory", reason=str(error))
        raise translated from error


def translate(error: BaseException) -> RecollectError | None:
    """The error for callers that a driver error stands for; None for a fault of the service itself."""
    match error:
        case asyncpg.PostgresError(sqlstate="RC003"):
            return TenantMoving()
        case asyncpg.ForeignKeyViolationError() if error.constraint_name in _OF_ACCOUNTS:
            return Unauthenticated("This account no longer exists.")
        case asyncpg.LockNotAvailableError() | asyncpg.DeadlockDetectedError() | asyncpg.SerializationError():
            return Unavailable("Another write is changing this graph. Try again.", code=ErrorCode.BUSY)
        case asyncpg.QueryCanceledError() | asyncpg.TooManyConnectionsError() | asyncio.TimeoutError():
            return Unavailable("The database is busy. Try again in a moment.", code=ErrorCode.BUSY)
        case asyncpg.DiskFullError():
            return Unavailable("The disk of the database is full: nothing was written. Try again later.")
        case asyncpg.OutOfMemoryError():
            return Unavailable(
                "The database is out of memory, or of space for locks (max_locks_per_transaction). Try again later."
            )
        case asyncpg.PostgresConnectionError() | asyncpg.OperatorInterventionError() | OSError():
            return Unavailable("The database is unavailable. Try again in a moment.")
        case asyncpg.TargetServerAttributeNotMatched():
            # The address names several servers, and all that answer are standbys, until one is promoted.
            return Unavailable("The database does not accept writes yet. Try again in a moment.")
        case asyncpg.CharacterNotInRepertoireError() | asyncpg.UntranslatableCharacterError():
            return InvalidInput("Text cannot hold the character U+0000")
        case asyncpg.ProgramLimitExceededError(sqlstate="54000"):  # Such as a megabyte of words of one row's tags.
            return TooLarge(
                "One item is larger than the database can index. Give it fewer or shorter tags and names.",
                code=ErrorCode.REQUEST_TOO_LARGE,
            )
        case asyncpg.InternalClientError() if "another operation (2)" in str(error):
            # asyncpg's message for a session that the server ended between two statements (state 2: reading the end).
            return Unavailable("The database is unavailable. Try again in a moment.")
        case asyncpg.InterfaceError() if "clos" in str(error) or "released back to the pool" in str(error):
            # The pool takes back a lost connection while a transaction still has it.
            return Unavailable("The database is unavailable. Try again in a moment.")
    return None


@contextmanager
def translated_writes() -> Iterator[None]:
    """For statements that may write: report the service as read-only where PostgreSQL takes no writes."""
    try:
        yield
    except asyncpg.ReadOnlySQLTransactionError as error:
        raise_service_read_only(error)


def raise_service_read_only(error: BaseException) -> None:
    """Raise Unavailable for a write on a server that takes none: set so by its operator, or a standby."""
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        raise Unavailable(
            "This service is read-only at the moment: nothing was written. Reading still works. Try again later.",
            code=ErrorCode.SERVICE_READ_ONLY,
        ) from error
