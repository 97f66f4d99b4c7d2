"""How a command's work is run."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from recollect.platform.telemetry import configure_logging
from recollect.settings import Settings

T = TypeVar("T")


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """What the work answers. Whatever is logged goes to standard error: what a command tells is read by others."""
    configure_logging(Settings())
    return asyncio.run(work)
