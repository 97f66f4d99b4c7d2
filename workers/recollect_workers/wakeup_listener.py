"""Receive the wake-ups that `recollect.valkey.wakeups` sends, by arq, for as long as Redis answers.

arq's worker ends with an error when Redis goes away. Our worker does not end: the schedule goes on
without wake-ups, and a new arq worker starts when Redis is back.
"""

import asyncio
import time
from typing import Any
from uuid import UUID

import structlog
from arq.connections import ArqRedis
from arq.worker import Worker, func
from redis.asyncio import Redis
from redis.exceptions import RedisError

from recollect.jobs.model import EMBED_PASSAGES, RUN_JOBS
from recollect.valkey.wakeups import EXPIRES_SECONDS, arq_redis, decode_job, encode_job, queue_of
from recollect.webhooks.deliveries.model import SEND_WEBHOOKS
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding
from recollect_workers.schedule import pause

POLL_SECONDS = 0.2
RETRY_SECONDS = 1.0
MAX_JOBS = 4
JOB_SECONDS = 600

log = structlog.get_logger(__name__)


async def serve_wakeups(context: WorkerContext, redis: Redis) -> None:
    """Run the jobs of wake-ups until the worker stops. Each loss and each return of Redis is logged once."""
    arq = arq_redis(redis, queue_of(context.settings.cell))
    is_unreachable = False
    while not context.stopping.is_set():
        try:
            await drop_expired(arq)
            log.info("listening for wake-ups")
            is_unreachable = False
            await run_until_stopping(context, arq_worker(context, arq))
        except (RedisError, OSError) as error:
            if not is_unreachable:
                log.warning("cannot connect to Redis, sweeping without wake-ups", reason=str(error))
            is_unreachable = True
            await pause(context, RETRY_SECONDS)


async def drop_expired(arq: ArqRedis) -> None:
    """Forget wake-ups that nobody served in time: their payload has expired, and sweeps have done their work."""
    await arq.zremrangebyscore(arq.default_queue_name, "-inf", (time.time() - EXPIRES_SECONDS) * 1000)


def arq_worker(context: WorkerContext, arq: ArqRedis) -> Worker:
    """arq's worker for the jobs that wake-ups may name. No result is kept: it would block the job's id."""
    return Worker(
        [
            func(_embed_passages, name=EMBED_PASSAGES),
            func(_run_jobs, name=RUN_JOBS),
            func(_send_webhooks, name=SEND_WEBHOOKS),
        ],
        queue_name=arq.default_queue_name,
        redis_pool=arq,
        ctx={"context": context},
        job_serializer=encode_job,
        job_deserializer=decode_job,
        keep_result=0,
        max_jobs=MAX_JOBS,
        job_timeout=JOB_SECONDS,
        poll_delay=POLL_SECONDS,
        handle_signals=False,
    )


async def run_until_stopping(context: WorkerContext, worker: Worker) -> None:
    """Run the arq worker; at the end, take no more jobs and wait for the running ones. Raises the error that ended it.

    Not `Worker.run` or `close`: those cancel the running jobs and need Redis to end.
    """
    polling = asyncio.create_task(worker.main())
    stopping = asyncio.create_task(context.stopping.wait())
    try:
        await asyncio.wait({polling, stopping}, return_when=asyncio.FIRST_COMPLETED)
        # In burst mode with no jobs left to do, it ends by itself. It is not cancelled: before Python 3.12, a
        # cancellation that comes together with a result is lost in `asyncio.wait_for` (python/cpython#86296), by which
        # redis-py sends every command.
        worker.burst, worker.max_burst_jobs = True, 0
        await polling
    except asyncio.CancelledError:
        await _end(polling, *worker.tasks.values())
        raise
    finally:
        stopping.cancel()
        await asyncio.gather(*worker.tasks.values(), return_exceptions=True)


async def _end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks repeatedly until they have ended: a single cancellation may be lost."""
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=POLL_SECONDS)


async def _embed_passages(ctx: dict[Any, Any], tenant_id: str, carrier: dict[str, str]) -> None:
    await embedding.woken(ctx["context"], UUID(tenant_id), carrier)


async def _run_jobs(ctx: dict[Any, Any], _tenant_id: str, _carrier: dict[str, str]) -> None:
    # This only starts a sweep: a job of minutes must not take a slot for which wake-ups of other tenants wait.
    ctx["context"].jobs_due.set()


async def _send_webhooks(ctx: dict[Any, Any], _tenant_id: str, _carrier: dict[str, str]) -> None:
    # This only starts a sweep, too: a webhook may take long to answer.
    ctx["context"].webhooks_due.set()
