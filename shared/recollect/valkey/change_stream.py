"""Streams of changes: after a commit, the written graph is added to the tenant's capped stream. Best effort.

Nothing depends on an entry's arrival: listeners also read the graphs' logs without one. No commit waits for Redis, and
entries are dropped while Redis is unreachable.
"""

import asyncio
from collections.abc import Mapping
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from recollect.telemetry import metrics

STREAM_LENGTH = 1_000
"""About how many entries a tenant's stream keeps: a gateway that reads it is behind by a few at most."""

STREAM_SECONDS = 3_600
"""How long a stream is kept after its last entry."""

_PREFIX = "recollect:changes:"
_GRAPH = b"g"
_REVISION = b"r"

_MOST_WAITING = 1_000
"""The most graphs whose entries wait to be sent."""

_SECONDS = 2.0
"""How long Redis may take for one batch of entries."""

log = structlog.get_logger(__name__)


def stream_of(tenant_id: UUID) -> str:
    """The key of a tenant's stream."""
    return f"{_PREFIX}{{{tenant_id}}}"


def entry_of(graph_id: UUID, revision: int) -> dict[bytes, bytes]:
    """The fields of an entry: which graph was written, and its newest revision."""
    return {_GRAPH: graph_id.bytes, _REVISION: str(revision).encode()}


def time_of_entry(entry_id: bytes) -> float:
    """When Redis received an entry, in seconds since 1970: the entry's id begins with that time."""
    return int(entry_id.split(b"-")[0]) / 1000


def graph_of_entry(fields: Mapping[bytes, bytes]) -> UUID | None:
    """The graph that an entry names; None for an entry that is not one of this server's."""
    graph_id = fields.get(_GRAPH, b"")
    return UUID(bytes=graph_id) if len(graph_id) == 16 else None


class ChangePublisher:
    """Adds entries to streams in the background, one round trip at a time, which carries all that have collected."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._waiting: dict[tuple[UUID, UUID], int] = {}
        self._sending: asyncio.Task[None] | None = None

    def publish(self, tenant_id: UUID, written: Mapping[UUID, int]) -> None:
        """Publish graphs with their newest revisions: returns at once and never raises. Call it after the commit."""
        for graph_id, revision in written.items():
            if len(self._waiting) >= _MOST_WAITING:
                metrics.record_notifications("dropped", 1)
                return
            self._waiting[tenant_id, graph_id] = revision
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def aclose(self) -> None:
        """Wait for the entries that are on their way."""
        if self._sending is not None:
            await self._sending

    async def _send(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, {}
            try:
                async with asyncio.timeout(_SECONDS), self._redis.pipeline(transaction=False) as pipe:
                    for (tenant_id, graph_id), revision in batch.items():
                        key = stream_of(tenant_id)
                        pipe.xadd(key, entry_of(graph_id, revision), maxlen=STREAM_LENGTH)  # type: ignore[arg-type]
                        pipe.expire(key, STREAM_SECONDS)
                    await pipe.execute()
                metrics.record_notifications("told", len(batch))
            except (RedisError, OSError, TimeoutError) as error:
                metrics.record_notifications("dropped", len(batch))
                log.debug("change notifications dropped", graphs=len(batch), reason=type(error).__name__)
