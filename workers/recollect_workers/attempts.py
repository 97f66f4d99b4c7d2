"""Logs the failure of one tenant's turn, so that the other tenants have theirs. The next sweep tries again."""

from types import TracebackType
from uuid import UUID

import structlog

from recollect.errors import RecollectError

log = structlog.get_logger(__name__)


class Attempt:
    """A tenant's turn. An error in it is logged as `failed`, with a traceback if it was not expected."""

    def __init__(self, failed: str, tenant_id: UUID, **told: str) -> None:
        self._failed = f"{failed}, will be tried again"
        self._told = {"tenant": str(tenant_id), **told}

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Whether the turn failed and the error is handled. A cancellation is passed on."""
        match error:
            case RecollectError():
                log.warning(self._failed, **self._told, reason=str(error))
            case Exception():
                log.error(self._failed, **self._told, exc_info=error)
            case _:
                return False
        return True
