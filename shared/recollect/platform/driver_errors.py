"""What the driver's errors mean to a caller."""

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
"""By these a row refers to a person, whose account may be deleted in the moment in which it is written."""

DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)

OUT_OF_ROOM = (asyncpg.DiskFullError, asyncpg.OutOfMemoryError)
"""Of the server's disk or memory. What it said is logged: it is for whoever runs it, and callers are told less."""

log = structlog.get_logger(__name__)


@asynccontextmanager
async def translated_errors() -> AsyncIterator[None]:
    """Turn the driver's errors into the ones that callers know; anything unforeseen passes through."""
    try:
        yield
    except (TimeoutError, *DRIVER_ERRORS) as error:
        translated = translate(error)
        if translated is None:
            raise
        if isinstance(error, OUT_OF_ROOM):
            log.warning("PostgreSQL is out of room", reason=str(error))
        raise translated from error


def translate(error: BaseException) -> RecollectError | None:
    """What a driver error means to a caller; None where it is a fault of ours."""
    match error:
        case asyncpg.PostgresError(sqlstate="RC003"):
            return TenantMoving()
        case asyncpg.ForeignKeyViolationError() if error.constraint_name in _OF_ACCOUNTS:
            return Unauthenticated("There is no such account any more.")
        case asyncpg.LockNotAvailableError() | asyncpg.DeadlockDetectedError() | asyncpg.SerializationError():
            return Unavailable("Another write holds this graph. Try again.", code=ErrorCode.BUSY)
        case asyncpg.QueryCanceledError() | asyncpg.TooManyConnectionsError() | asyncio.TimeoutError():
            return Unavailable("The database is busy. Try again in a moment.", code=ErrorCode.BUSY)
        case asyncpg.DiskFullError():
            return Unavailable("The database has no room left on its disk: nothing was written. Try again later.")
        case asyncpg.OutOfMemoryError():
            return Unavailable(
                "The database is out of memory, or of room for locks (max_locks_per_transaction). Try again later."
            )
        case asyncpg.PostgresConnectionError() | asyncpg.OperatorInterventionError() | OSError():
            return Unavailable("The database is away. Try again in a moment.")
        case asyncpg.TargetServerAttributeNotMatched():
            # Of several servers that the address names, each that answers is a standby: until one is promoted.
            return Unavailable("The database takes no writes yet. Try again in a moment.")
        case asyncpg.CharacterNotInRepertoireError() | asyncpg.UntranslatableCharacterError():
            return InvalidInput("Text cannot hold the character U+0000")
        case asyncpg.ProgramLimitExceededError(sqlstate="54000"):  # Such as a megabyte of words of one row's tags.
            return TooLarge(
                "One item holds more than the database can index. Give it fewer or shorter tags and names.",
                code=ErrorCode.REQUEST_TOO_LARGE,
            )
        case asyncpg.InternalClientError() if "another operation (2)" in str(error):
            # asyncpg's word for a session that the server ended between two statements (state 2: reading its farewell).
            return Unavailable("The database is away. Try again in a moment.")
        case asyncpg.InterfaceError() if "clos" in str(error) or "released back to the pool" in str(error):
            # The pool takes back a connection that is lost, while a transaction still has it.
            return Unavailable("The database is away. Try again in a moment.")
    return None


@contextmanager
def translated_writes() -> Iterator[None]:
    """For statements that may write: where PostgreSQL takes no writes, the service is read-only."""
    try:
        yield
    except asyncpg.ReadOnlySQLTransactionError as error:
        raise_service_read_only(error)


def raise_service_read_only(error: BaseException) -> None:
    """Raise Unavailable where a write met a server that takes none: its operator's doing, or a standby."""
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        raise Unavailable(
            "This service is read-only for the moment: nothing was written. Reading goes on. Try again later.",
            code=ErrorCode.SERVICE_READ_ONLY,
        ) from error
