"""Running the work of a command, and the error where the database is unreachable."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from recollect.errors import ErrorCode, InvalidInput, RecollectError, Unavailable
from recollect.settings import Settings
from recollect.telemetry.logs import configure_logging

T = TypeVar("T")

_ADDRESSES = {"database_url", "owner_database_url"}


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work. Logs go to standard error, since programs may read the output of a command."""
    configure_logging(Settings())
    return asyncio.run(work)


def operator_settings() -> Settings:
    """The settings of an operator's command; where they name no database, those of the stack on this machine."""
    settings = Settings()
    if settings.model_fields_set & _ADDRESSES:
        return settings
    from recollect_local.running import settings_of_running  # Loads the client of Redis, which few commands need.

    return settings_of_running(settings) or settings


def without_database(message: str, code: ErrorCode) -> RecollectError:
    """The error of a command that could not use the database, for this reason; it names the settings to check."""
    if code is ErrorCode.BUSY:
        return Unavailable(message, code=code)
    if code is ErrorCode.DATABASE_UNAVAILABLE and not Settings().model_fields_set & _ADDRESSES:
        return InvalidInput(
            "This command needs the database: set RECOLLECT_OWNER_DATABASE_URL and RECOLLECT_DATABASE_URL, or start "
            "`recollect local`, whose database it finds. `keys` and `members` also work by a gateway: leave the "
            "tenant out, and set --url and --api-key"
        )
    if "RECOLLECT_" in message:  # The message names the setting itself.
        return Unavailable(message, code=code)
    return Unavailable(f"{message} Check RECOLLECT_DATABASE_URL and RECOLLECT_OWNER_DATABASE_URL.", code=code)
