"""How a command's work is run."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from recollect.errors import ErrorCode, InvalidInput, RecollectError, Unavailable
from recollect.platform.telemetry import configure_logging
from recollect.settings import Settings

T = TypeVar("T")

_ADDRESSES = {"database_url", "owner_database_url"}


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """What the work answers. Whatever is logged goes to standard error: what a command tells is read by others."""
    configure_logging(Settings())
    return asyncio.run(work)


def without_database(message: str, code: ErrorCode) -> RecollectError:
    """What a command raises that could not use the database, for this reason; it says which settings lead there."""
    if code is ErrorCode.BUSY:
        return Unavailable(message, code=code)
    if code is ErrorCode.DATABASE_UNAVAILABLE and not Settings().model_fields_set & _ADDRESSES:
        return InvalidInput(
            "This command needs the database: set RECOLLECT_OWNER_DATABASE_URL and RECOLLECT_DATABASE_URL. That of "
            "`recollect local` is its gateway's alone, whose API makes keys (POST /v1/keys) and invites members"
        )
    if "RECOLLECT_" in message:  # It says itself which setting.
        return Unavailable(message, code=code)
    return Unavailable(f"{message} RECOLLECT_DATABASE_URL and RECOLLECT_OWNER_DATABASE_URL say where it is.", code=code)
