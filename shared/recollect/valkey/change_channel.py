"""Channels of changes: after a commit, the written graph is published on its tenant's channel in Redis. Best effort.

Nothing depends on a message's arrival: listeners also read the graphs' logs without one. No commit waits for Redis, and
messages are dropped while Redis is unreachable.

A tenant has one channel, and not one for each graph: most listeners also wait for graphs that do not exist yet. So a
change is published once, and reaches only gateways that have listeners of its tenant.
"""

import asyncio
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from recollect.telemetry import metrics

_PREFIX = "recollect:changes:"

_MESSAGE = struct.Struct("!16sQ")
"""The id of a graph, and when it was published, in milliseconds since 1970."""

_MOST_WAITING = 1_000
"""The most graphs that wait to be published."""

_SECONDS = 2.0
"""How long Redis may take for one batch of messages."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PublishedChange:
    """A graph that was written. `published_at`: seconds since 1970, by the clock of the process that wrote it."""

    graph_id: UUID
    published_at: float


def channel_of(tenant_id: UUID) -> str:
    """The channel of a tenant's changes."""
    return f"{_PREFIX}{tenant_id}"


def tenant_of(channel: bytes) -> UUID:
    """The tenant whose channel this is."""
    return UUID(channel.decode().removeprefix(_PREFIX))


def encode_change(change: PublishedChange) -> bytes:
    """The message about a written graph, which says no more than where to look."""
    return _MESSAGE.pack(change.graph_id.bytes, round(change.published_at * 1000))


def decode_change(message: bytes) -> PublishedChange | None:
    """The change that a message reports; None for a message that is not one of this server's."""
    if len(message) != _MESSAGE.size:
        return None
    graph_id, milliseconds = _MESSAGE.unpack(message)
    return PublishedChange(UUID(bytes=graph_id), milliseconds / 1000)


class ChangePublisher:
    """Publishes in the background, one round trip at a time, which carries all that has collected."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._waiting: set[tuple[UUID, UUID]] = set()
        self._sending: asyncio.Task[None] | None = None

    def publish(self, tenant_id: UUID, graph_ids: Iterable[UUID]) -> None:
        """Publish that graphs were written: returns at once and never raises. Call it after the commit."""
        for graph_id in graph_ids:
            if len(self._waiting) >= _MOST_WAITING:
                metrics.record_notifications("dropped", 1)
                return
            self._waiting.add((tenant_id, graph_id))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def aclose(self) -> None:
        """Wait for the messages that are on their way."""
        if self._sending is not None:
            await self._sending

    async def _send(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, set()
            try:
                async with asyncio.timeout(_SECONDS), self._redis.pipeline(transaction=False) as pipe:
                    now = time.time()
                    for tenant_id, graph_id in batch:
                        pipe.publish(channel_of(tenant_id), encode_change(PublishedChange(graph_id, now)))
                    await pipe.execute()
                metrics.record_notifications("told", len(batch))
            except (RedisError, OSError, TimeoutError) as error:
                metrics.record_notifications("dropped", len(batch))
                log.debug("change notifications dropped", graphs=len(batch), reason=type(error).__name__)
