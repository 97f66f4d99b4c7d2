"""Wake-ups: after a commit, notify a worker that a tenant has work. Best effort, by way of arq.

Nothing depends on a wake-up's arrival: the work itself is in PostgreSQL and the worker's sweep finds
it. A wake-up only makes that sooner.

Why none is lost to debouncing: time is cut into buckets of 100 ms, equal wake-ups of one bucket share
one job id, and that job starts at the bucket's *end*. Every commit that asked for it was made inside
the bucket, so the job sees them all. A commit after the start falls into a later bucket and gets a
job of its own. (Where two machines' clocks differ by more than that, the sweep makes up for it.)
arq refuses an id while its job or its result exists, hence also `keep_result=0` in the worker.
"""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import structlog
from arq.connections import ArqRedis
from redis.asyncio import Redis
from redis.exceptions import RedisError

from recollect.settings.cells import HOME
from recollect.telemetry.tracing import inject_context, sending_span

QUEUE_NAME = "recollect:wakeups"


def queue_of(cell: str) -> str:
    """The queue of wake-ups for the workers of a cell."""
    return QUEUE_NAME if cell == HOME else f"{QUEUE_NAME}:{cell}"


_BUCKET_MS = 100
_MOST_PENDING = 256
EXPIRES_SECONDS = 600
"""A wake-up that no worker took by then is void: sweeps have done its work."""

log = structlog.get_logger(__name__)


def encode_job(job: dict[str, Any]) -> bytes:
    """arq's job as MessagePack, never pickle: who can write to Redis must not run code here.

    What has no MessagePack form is only ever the exception in a failed job's result; its repr goes.
    """
    return msgspec.msgpack.encode(job, enc_hook=repr)


def decode_job(payload: bytes) -> dict[str, Any]:
    """The other way; raises msgspec.MsgspecError, which arq logs before it drops the job."""
    return msgspec.msgpack.decode(payload, type=dict[str, Any])


def arq_redis(redis: Redis, queue: str = QUEUE_NAME) -> ArqRedis:
    """arq's client on the connections of `redis`, which stays the one to close."""
    return ArqRedis(
        redis.connection_pool,
        job_serializer=encode_job,
        job_deserializer=decode_job,
        default_queue_name=queue,
    )


class Wakeups:
    """Sends wake-ups to the workers of a cell in the background, so that no commit waits for Redis."""

    def __init__(self, redis: Redis, cell: str = HOME) -> None:
        self._arq = arq_redis(redis, queue_of(cell))
        self._pending: dict[str, asyncio.Task[None]] = {}

    def notify(self, tenant_id: UUID, jobs: frozenset[str]) -> None:
        """Wake `jobs` for the tenant: returns at once and never raises.

        Call it after the commit. A wake-up is dropped, with a debug line, when Redis is unreachable or too
        many still wait for it.
        """
        bucket = time.time_ns() // 1_000_000 // _BUCKET_MS
        for job in jobs:
            job_id = f"{job}:{tenant_id}:{bucket}"
            if job_id in self._pending:
                continue
            if len(self._pending) >= _MOST_PENDING:
                log.debug("wake-up dropped", job=job, tenant=str(tenant_id), reason="too many pending")
                continue
            enqueuing = self._enqueue(job, tenant_id, job_id, (bucket + 1) * _BUCKET_MS)
            self._pending[job_id] = asyncio.create_task(enqueuing)

    async def aclose(self) -> None:
        """Wait for the pending ones, each of which Redis's timeouts bound."""
        await asyncio.gather(*self._pending.values(), return_exceptions=True)

    async def _enqueue(self, job: str, tenant_id: UUID, job_id: str, due_ms: int) -> None:
        try:
            with sending_span(job, system="arq") as span:
                span.set_attribute("recollect.tenant.id", str(tenant_id))
                await self._arq.enqueue_job(
                    job,
                    str(tenant_id),
                    inject_context(),
                    _job_id=job_id,
                    _defer_until=datetime.fromtimestamp(due_ms / 1000, UTC),
                    _expires=EXPIRES_SECONDS,
                )
        except (RedisError, OSError) as error:
            log.debug("wake-up dropped", job=job, tenant=str(tenant_id), reason=str(error))
        finally:
            del self._pending[job_id]
