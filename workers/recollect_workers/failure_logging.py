"""Logs the failure of one tenant's turn, so that it does not end the others. The next sweep tries again."""

from types import TracebackType
from uuid import UUID

import structlog

from recollect.errors import ErrorCode, NotFound, RecollectError

log = structlog.get_logger(__name__)


class FailureLogger:
    """A tenant's turn. An error in it is logged with the message `failed`, and a traceback if it was not expected."""

    def __init__(self, failed: str, tenant_id: UUID, **fields: str) -> None:
        self._message = f"{failed}, will retry"
        self._fields = {"tenant": str(tenant_id), **fields}

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """True if an error was handled. A cancellation is passed on."""
        match error:
            case NotFound(code=ErrorCode.TENANT_NOT_FOUND):  # A wake-up outlives an erasure and a move.
                log.info("tenant was erased or moved", **self._fields)
            case RecollectError():
                log.warning(self._message, **self._fields, reason=str(error))
            case Exception():
                log.error(self._message, **self._fields, exc_info=error)
            case _:
                return False
        return True
