"""Streams of changes: after a commit, a tenant's capped stream is told which graph was written. Best effort.

Nothing depends on an entry's arrival: listeners read the graphs' logs, also when nothing tells them to. No commit waits
for Redis, and while Redis is away what would be told is dropped.
"""

import asyncio
from collections.abc import Mapping
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from recollect.platform import metrics

STREAM_LENGTH = 1_000
"""Entries that a tenant's stream keeps, about: a gateway that reads it is behind by a few at most."""

STREAM_SECONDS = 3_600
"""How long a stream is kept after its last entry."""

_PREFIX = "recollect:changes:"
_GRAPH = b"g"
_REVISION = b"r"

_MOST_WAITING = 1_000
"""Graphs of which something waits to be told, at most."""

_SECONDS = 2.0
"""How long Redis may take for what is told at once."""

log = structlog.get_logger(__name__)


def stream_of(tenant_id: UUID) -> str:
    """The key of a tenant's stream."""
    return f"{_PREFIX}{{{tenant_id}}}"


def entry_of(graph_id: UUID, revision: int) -> dict[bytes, bytes]:
    """The fields of an entry: which graph was written, and its newest revision."""
    return {_GRAPH: graph_id.bytes, _REVISION: str(revision).encode()}


def told_at(entry_id: bytes) -> float:
    """When Redis was told of an entry, in seconds since 1970: its clock begins the entry's id."""
    return int(entry_id.split(b"-")[0]) / 1000


def graph_of_entry(fields: Mapping[bytes, bytes]) -> UUID | None:
    """The graph that an entry tells of; None for what is not one of ours."""
    told = fields.get(_GRAPH, b"")
    return UUID(bytes=told) if len(told) == 16 else None


class ChangePublisher:
    """Tells streams in the background, one round trip at a time: what is written meanwhile is told together."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._waiting: dict[tuple[UUID, UUID], int] = {}
        self._telling: asyncio.Task[None] | None = None

    def publish(self, tenant_id: UUID, written: Mapping[UUID, int]) -> None:
        """Tell of graphs and their newest revisions: returns at once and never raises. Call it after the commit."""
        for graph_id, revision in written.items():
            if len(self._waiting) >= _MOST_WAITING:
                metrics.record_notifications("dropped", 1)
                return
            self._waiting[tenant_id, graph_id] = revision
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell())

    async def aclose(self) -> None:
        """Wait for what is on its way."""
        if self._telling is not None:
            await self._telling

    async def _tell(self) -> None:
        while self._waiting:
            told, self._waiting = self._waiting, {}
            try:
                async with asyncio.timeout(_SECONDS), self._redis.pipeline(transaction=False) as pipe:
                    for (tenant_id, graph_id), revision in told.items():
                        key = stream_of(tenant_id)
                        pipe.xadd(key, entry_of(graph_id, revision), maxlen=STREAM_LENGTH)  # type: ignore[arg-type]
                        pipe.expire(key, STREAM_SECONDS)
                    await pipe.execute()
                metrics.record_notifications("told", len(told))
            except (RedisError, OSError, TimeoutError) as error:
                metrics.record_notifications("dropped", len(told))
                log.debug("listeners not told", graphs=len(told), reason=type(error).__name__)
