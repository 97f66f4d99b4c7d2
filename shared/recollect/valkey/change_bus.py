"""The bus of one process: wakes listeners when any process has written a graph of their tenant.

One connection reads the streams of all tenants that have listeners. An entry only says which graph to look at, and a
listener that was woken and has not looked yet need not be woken again: so nothing is ever queued for a listener. After
Redis was unreachable, or when a stream is read for the first time, all listeners of the tenants concerned are woken:
entries may have been missed.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any
from uuid import UUID

import structlog
from opentelemetry.instrumentation.utils import suppress_instrumentation
from redis.asyncio import Redis
from redis.exceptions import RedisError

from recollect.telemetry import metrics
from recollect.valkey.change_stream import graph_of_entry, stream_of, time_of_entry

BLOCK_SECONDS = 5.0
"""How long one read waits for entries."""

RETRY_SECONDS = 0.5
"""How long the bus waits before it asks Redis again after it was unreachable."""

_HURRY_SECONDS = 0.05
_AT_ONCE = 500
_BEGINNING = b"0-0"
_FAILURES = (RedisError, OSError, TimeoutError)

log = structlog.get_logger(__name__)


class Listener:
    """A listener to graphs of a tenant; `graphs` None: to all of them."""

    __slots__ = ("_news", "graphs", "tenant_id")

    def __init__(self, tenant_id: UUID, graphs: frozenset[UUID] | None) -> None:
        self.tenant_id, self.graphs = tenant_id, graphs
        self._news = asyncio.Event()

    def wake(self, graph_id: UUID | None = None) -> None:
        """Note that a graph may have been written; None: any graph."""
        if graph_id is None or self.graphs is None or graph_id in self.graphs:
            self._news.set()

    async def woken(self, seconds: float) -> bool:
        """Wait to be woken; whether that happened within `seconds`. Later changes wake it again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        was_woken = self._news.is_set()
        self._news.clear()
        return was_woken


class ChangeBus:
    """The listeners of this process. `redis` must wait for answers longer than BLOCK_SECONDS, on two connections."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._listeners: dict[UUID, set[Listener]] = {}
        self._positions: dict[UUID, bytes] = {}
        self._is_wanted = asyncio.Event()
        self._client_id: int | None = None
        self._hurrying: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read streams inside."""
        reading = asyncio.create_task(self._read(), name="changes")
        try:
            yield
        finally:
            for task in (reading, self._hurrying):
                if task is not None:
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task

    @contextmanager
    def listening(self, tenant_id: UUID, graphs: frozenset[UUID] | None = None) -> Iterator[Listener]:
        """A listener while the block lasts. It is woken for every change after the beginning of the block."""
        listener = Listener(tenant_id, graphs)
        with self.subscribed(listener):
            yield listener

    @contextmanager
    def subscribed(self, listener: Listener) -> Iterator[None]:
        """Wake this listener on changes while the block lasts."""
        tenant_id = listener.tenant_id
        self._listeners.setdefault(tenant_id, set()).add(listener)
        self._is_wanted.set()
        self._hurry()
        try:
            yield
        finally:
            remaining = self._listeners[tenant_id]
            remaining.discard(listener)
            if not remaining:
                del self._listeners[tenant_id]
                self._positions.pop(tenant_id, None)

    def is_following(self, tenant_id: UUID) -> bool:
        """Whether the tenant's stream is being read; False while Redis is unreachable and before the first read."""
        return tenant_id in self._positions

    def wake_all(self) -> None:
        """Wake every listener."""
        self._wake(self._listeners)

    def _wake(self, tenants: Iterable[UUID]) -> None:
        for tenant_id in list(tenants):
            for listener in self._listeners.get(tenant_id, ()):
                listener.wake()

    def _unread(self) -> list[UUID]:
        return [tenant_id for tenant_id in self._listeners if tenant_id not in self._positions]

    async def _read(self) -> None:
        with suppress_instrumentation():
            while True:
                await self._is_wanted.wait()
                try:
                    async with self._redis.client() as connection:
                        self._client_id = await connection.client_id()
                        await self._follow(connection)
                except _FAILURES as error:
                    log.debug("change stream not read, will retry", reason=type(error).__name__)
                    self._client_id = None
                    self._positions.clear()
                    await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self, connection: Redis) -> None:
        """Read as long as there are listeners; raises the errors of Redis."""
        while self._listeners:
            await self._begin(connection)
            streams: dict[Any, Any] = {stream_of(tenant_id): last_id for tenant_id, last_id in self._positions.items()}
            tenants = {stream_of(tenant_id).encode(): tenant_id for tenant_id in self._positions}
            if not streams:  # The last listener left meanwhile.
                continue
            found = await connection.xread(streams, count=_AT_ONCE, block=round(BLOCK_SECONDS * 1000))
            for key, entries in found or ():
                self._wake_by_entries(tenants.get(key), entries)
        self._is_wanted.clear()
        self._client_id = None

    async def _begin(self, connection: Redis) -> None:
        """Begin to read new streams at their ends, and wake their listeners for the entries before that."""
        unread = self._unread()
        if not unread:
            return
        async with connection.pipeline(transaction=False) as pipe:
            for tenant_id in unread:
                pipe.xrevrange(stream_of(tenant_id), count=1)
            for tenant_id, last in zip(unread, await pipe.execute(), strict=True):
                if tenant_id in self._listeners:
                    self._positions[tenant_id] = last[0][0] if last else _BEGINNING
        self._wake(unread)

    def _wake_by_entries(self, tenant_id: UUID | None, entries: list[tuple[bytes, dict[bytes, bytes]]]) -> None:
        if tenant_id is None or tenant_id not in self._listeners or not entries:
            return
        self._positions[tenant_id] = entries[-1][0]
        metrics.record_notification_lag(max(0.0, time.time() - time_of_entry(entries[0][0])))
        for graph_id in {graph_of_entry(fields) for _, fields in entries}:
            for listener in self._listeners[tenant_id]:
                if graph_id is not None:
                    listener.wake(graph_id)

    def _hurry(self) -> None:
        """Interrupt the waiting read, where it leaves out the stream of a tenant that has listeners."""
        if self._unread() and (self._hurrying is None or self._hurrying.done()):
            self._hurrying = asyncio.create_task(self._unblock())

    async def _unblock(self) -> None:
        # Repeatedly: it has no effect on a read that has not begun to wait.
        with suppress_instrumentation(), suppress(*_FAILURES):
            while self._unread() and self._client_id is not None:
                await self._redis.client_unblock(self._client_id)
                await asyncio.sleep(_HURRY_SECONDS)
