"""The worker's composition root: settings in, a process that works until it gets a signal to stop."""

import asyncio
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack

import structlog
from opentelemetry.instrumentation.utils import suppress_instrumentation
from redis.asyncio import Redis

from recollect.embedding import create_embedder, create_previous_embedder
from recollect.errors import RecollectError, Unavailable
from recollect.event_loop import EventLoop
from recollect.fairness.presence import Presence
from recollect.jobs.model import SERVER_ERROR_CODES
from recollect.outbound.http_client import Outbound
from recollect.postgres.connections import APP_ROLE
from recollect.postgres.database import Database
from recollect.postgres.replicas import replica_of
from recollect.postgres.schema_version.service import SchemaCheck
from recollect.settings import Settings, read_settings
from recollect.telemetry.logs import configure_logging, warn_of_unknown_settings
from recollect.telemetry.metrics import begin_failed_jobs
from recollect.telemetry.tracing import configure_tracing
from recollect.valkey.caller_changes import caller_change_notifier
from recollect.valkey.change_channel import ChangePublisher
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import Wakeups
from recollect_workers.configuration import warn_of_missing_indexes, warn_of_other_secret
from recollect_workers.context import Kind, WorkerContext
from recollect_workers.kinds import known_kinds
from recollect_workers.pace import Pace
from recollect_workers.schedule import pause, repeat, scheduled_jobs
from recollect_workers.wakeup_listener import serve_wakeups

GRACE_SECONDS = 5.0
"""How long the current batch may still take after SIGTERM."""

SCHEMA_SECONDS = 1.0
"""How often a worker asks whether the database was migrated."""

log = structlog.get_logger(__name__)


def main(more: Mapping[str, Kind] = {}, *, cell: str | None = None) -> None:
    """Run a worker from the environment until SIGTERM or SIGINT. `more`: kinds of job in addition to its own.

    `cell`: the cell on which it works, instead of that of the environment.
    """
    signal.signal(signal.SIGTERM, _end)
    try:
        settings = read_settings() if cell is None else read_settings(cell=cell)
        configure_logging(settings)
        warn_of_unknown_settings()
        shutdown_tracing = configure_tracing(settings, "recollect-worker")
        try:
            with asyncio.Runner(loop_factory=EventLoop) as runner:
                runner.run(run_until_signal(settings, more))
        finally:
            shutdown_tracing()
    except RecollectError as error:
        raise SystemExit(f"recollect worker: {error}") from None


async def run_until_signal(settings: Settings, more: Mapping[str, Kind]) -> None:
    """Work until SIGTERM or SIGINT, then finish the current batch, for GRACE_SECONDS at most."""
    stopping = asyncio.Event()
    try:
        async with asyncio.timeout(None) as limit:
            _on_signal(stopping, limit)
            await run(settings, stopping, more)
    except TimeoutError:
        log.warning("work interrupted, will retry when its lease ends")
    log.info("worker stopped")


async def run(settings: Settings, stopping: asyncio.Event, more: Mapping[str, Kind] = {}) -> None:
    """Serve wake-ups and the schedule of the worker's cell until `stopping` is set.

    PostgreSQL and Redis may be unavailable at times.
    """
    settings = settings.of_cell(settings.cell)
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(connect_redis(settings))
        context = await _open(settings, redis, stopping, more, stack)
        log.info("worker started", embedder=context.embedder.model, cell=settings.cell)
        warn_of_missing_indexes(settings)
        await wait_for_schema(context)
        await warn_of_other_secret(settings)
        # Looking for work is not traced, only the work: jobs start spans of their own.
        with suppress_instrumentation():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(serve_wakeups(context, redis))
                for scheduled in scheduled_jobs(context):
                    tasks.create_task(repeat(context, scheduled))


async def _open(
    settings: Settings, redis: Redis, stopping: asyncio.Event, more: Mapping[str, Kind], stack: AsyncExitStack
) -> WorkerContext:
    """Open the parts of a worker, which the stack closes in reverse order."""
    wakeups = Wakeups(redis, settings.cell)
    stack.push_async_callback(wakeups.aclose)
    publisher = ChangePublisher(redis)
    stack.push_async_callback(publisher.aclose)
    database = await stack.enter_async_context(
        Database.connect(
            settings.database_url,
            role=APP_ROLE,
            settings=settings,
            on_commit=wakeups.notify,
            on_written=publisher.publish,
            on_callers_changed=caller_change_notifier(publisher),
            replica=await stack.enter_async_context(replica_of(settings)),
        )
    )
    embedder = create_embedder(settings)
    stack.push_async_callback(embedder.close)
    previous = create_previous_embedder(settings)
    if previous is not None:
        stack.push_async_callback(previous.close)
    outbound = Outbound(settings)
    stack.push_async_callback(outbound.close)
    kinds = {**known_kinds(settings), **more}
    begin_failed_jobs(kinds, SERVER_ERROR_CODES)
    pace = Pace(Presence(redis, settings.cell), settings.bulk_share_beside_calls, stopping)
    return WorkerContext(
        settings, database, embedder, wakeups, stopping, kinds, previous=previous, outbound=outbound, pace=pace
    )


async def wait_for_schema(context: WorkerContext) -> None:
    """Wait until the database is as new as this worker, or the worker must stop; each reason to wait is logged once."""
    schema, logged_reason = SchemaCheck(context.database), ""
    while not context.stopping.is_set():
        try:
            await schema.require_current()
            return
        except Unavailable as error:
            if str(error) != logged_reason:
                logged_reason = str(error)
                log.warning("waiting for the database", reason=logged_reason)
            await pause(context, SCHEMA_SECONDS)


def _end(*_: object) -> None:
    """End at once: until its event loop runs, a worker has nothing to finish."""
    raise SystemExit(0)


def _on_signal(stopping: asyncio.Event, limit: asyncio.Timeout) -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        stopping.set()
        limit.reschedule(loop.time() + GRACE_SECONDS)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
