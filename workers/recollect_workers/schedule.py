"""What the worker does regularly, and the loop that does it.

These run by a timer of the worker's own, straight from PostgreSQL, and not as arq's cron jobs: they are
what finds the work when Redis is away. Several workers may sweep at once; claims keep them apart.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from recollect.errors import RecollectError
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Regular:
    """A job to run at the start and then `seconds` after each time it has ended."""

    name: str
    job: Callable[[WorkerContext], Awaitable[None]]
    seconds: float


def regulars(context: WorkerContext) -> list[Regular]:
    """Everything that runs regularly."""
    return [Regular("sweep passages", embedding.sweep, context.settings.sweep_seconds)]


async def repeat(context: WorkerContext, regular: Regular) -> None:
    """Run the job again and again until the worker stops; a failure is logged and the next round comes."""
    while not context.stopping.is_set():
        try:
            await regular.job(context)
        except RecollectError as error:
            log.warning(f"{regular.name} failed, will be tried again", reason=str(error))
        except Exception:
            log.exception(f"{regular.name} failed, will be tried again")
        await pause(context, regular.seconds)


async def pause(context: WorkerContext, seconds: float) -> None:
    """Sleep, but wake up when the worker is to stop."""
    with suppress(TimeoutError):
        await asyncio.wait_for(context.stopping.wait(), seconds)
