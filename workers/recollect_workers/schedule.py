"""The worker's regular jobs, and the loop that runs them.

They run by a timer of the worker itself, from PostgreSQL alone, and not as arq's cron jobs: they find the
work when Redis is unreachable. Several workers may sweep at once; claims keep them from doing the same work.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from recollect.errors import RecollectError
from recollect.settings.cells import HOME
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import (
    backlog,
    cleanup,
    compaction,
    duplicates,
    embedding,
    expiry,
    linking,
    switches,
    tenant_erasure,
    vector_indexes,
    webhooks,
    words,
)

PURGE_SECONDS = 600.0
"""Nobody sees expired rows, so their deletion is not urgent."""

CHECK_SECONDS = 600.0
"""The compaction of rows that nobody can read any more is not urgent either: a graph's turn comes once a day."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """A job that runs at the start, and again `seconds` after each end, or as soon as `due` is set."""

    name: str
    job: Callable[[WorkerContext], Awaitable[None]]
    seconds: float
    due: asyncio.Event | None = None


def scheduled_jobs(context: WorkerContext) -> list[ScheduledJob]:
    """All regular jobs of a worker."""
    settings = context.settings
    sending = ScheduledJob("send webhooks", webhooks.send, settings.sweep_seconds, context.webhooks_due)
    ending = ScheduledJob("complete interrupted moves", switches.end, settings.sweep_seconds)
    return [
        ScheduledJob("sweep passages", embedding.sweep, settings.sweep_seconds, context.backoff.due),
        ScheduledJob("analyse words of before", words.rebuild, settings.sweep_seconds),
        ScheduledJob("relate facts", linking.sweep, settings.sweep_seconds, context.links_due),
        ScheduledJob("sweep jobs", job_loop.sweep, settings.sweep_seconds, context.jobs_due),
        ScheduledJob("archive expired memories", expiry.archive, settings.sweep_seconds),
        ScheduledJob("delete expired memories", expiry.purge, PURGE_SECONDS),
        ScheduledJob("delete old usage", cleanup.delete_old_usage, PURGE_SECONDS),
        ScheduledJob("delete old audit entries", cleanup.delete_old_audit_entries, PURGE_SECONDS),
        ScheduledJob("delete expired idempotency keys", cleanup.delete_expired_idempotency_keys, PURGE_SECONDS),
        ScheduledJob("delete tenants by request", tenant_erasure.delete_requested, settings.sweep_seconds),
        ScheduledJob("erase deleted tenants", tenant_erasure.erase, settings.sweep_seconds),
        ScheduledJob("schedule compaction", compaction.schedule, CHECK_SECONDS),
        ScheduledJob("schedule search for duplicates", duplicates.schedule, settings.sweep_seconds),
        ScheduledJob("collect webhook events", webhooks.collect, settings.sweep_seconds),
        ScheduledJob("delete old deliveries", cleanup.delete_old_deliveries, PURGE_SECONDS),
        *([sending] if context.outbound else []),
        *([ending] if settings.cells and settings.cell == HOME else []),
        *(
            [ScheduledJob("measure backlog", backlog.measure, settings.sweep_seconds)]
            if settings.exports_metrics
            else []
        ),
        ScheduledJob("maintain vector indexes", vector_indexes.maintain_indexes, settings.index_care_seconds),
    ]


async def repeat(context: WorkerContext, scheduled: ScheduledJob) -> None:
    """Run the job again and again until the worker stops; a failure is logged and the next round comes."""
    while not context.stopping.is_set():
        try:
            await scheduled.job(context)
        except RecollectError as error:
            log.warning(f"{scheduled.name} failed, will retry", reason=str(error))
        except Exception:
            log.exception(f"{scheduled.name} failed, will retry")
        await pause(context, scheduled.seconds, due=scheduled.due)


async def pause(context: WorkerContext, seconds: float, *, due: asyncio.Event | None = None) -> None:
    """Sleep, but wake up when the worker must stop, or when `due` is set."""
    events = [context.stopping] if due is None else [context.stopping, due]
    waiters = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiters, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waiters:
            waiter.cancel()
