"""Messages about changes: after a commit, the tenant's channel in Redis says which graph was written. Best effort.

Nothing depends on a message's arrival: listeners also read the graphs' logs without one. No commit waits for Redis, and
messages are dropped while Redis is unreachable.
"""

import asyncio
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from recollect.telemetry import metrics

_PREFIX = b"recollect:changes:"

_MESSAGE = struct.Struct(">16sQ")

_MOST_WAITING = 1_000
"""The most graphs whose messages wait to be sent."""

_SECONDS = 2.0
"""How long Redis may take for one batch of messages."""

log = structlog.get_logger(__name__)


def channel_of(tenant_id: UUID) -> bytes:
    """The channel of a tenant's messages."""
    return _PREFIX + str(tenant_id).encode()


def tenant_of_channel(channel: bytes) -> UUID | None:
    """The tenant whose channel this is; None for another channel."""
    if not channel.startswith(_PREFIX):
        return None
    return UUID(channel.removeprefix(_PREFIX).decode())


@dataclass(frozen=True, slots=True)
class ChangeMessage:
    """Which graph was written, and when this was published, in seconds since 1970 by the publisher's clock."""

    graph_id: UUID
    sent_at: float

    def encode(self) -> bytes:
        """The message as it is published."""
        return _MESSAGE.pack(self.graph_id.bytes, round(self.sent_at * 1000))

    @classmethod
    def decode(cls, data: bytes) -> "ChangeMessage | None":
        """A published message; None for one that is not of a process of this kind."""
        if len(data) != _MESSAGE.size:
            return None
        graph_id, milliseconds = _MESSAGE.unpack(data)
        return cls(UUID(bytes=graph_id), milliseconds / 1000)


class ChangePublisher:
    """Publishes messages in the background, one round trip at a time, which carries all that have collected."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._waiting: set[tuple[UUID, UUID]] = set()
        self._sending: asyncio.Task[None] | None = None

    def publish(self, tenant_id: UUID, written: Mapping[UUID, int]) -> None:
        """Publish graphs that were written: returns at once and never raises. Call it after the commit."""
        for graph_id in written:
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
                    for tenant_id, graph_id in batch:
                        pipe.publish(channel_of(tenant_id), ChangeMessage(graph_id, time.time()).encode())
                    await pipe.execute()
                metrics.record_notifications("told", len(batch))
            except (RedisError, OSError, TimeoutError) as error:
                metrics.record_notifications("dropped", len(batch))
                log.debug("change notifications dropped", graphs=len(batch), reason=type(error).__name__)
