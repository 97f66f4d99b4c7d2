"""The bus of one process: wakes listeners when any process has written a graph of their tenant.

One connection is subscribed to the channels of all tenants that have listeners. A message only says which graph to look
at, and a listener that was woken and has not looked yet need not be woken again: so nothing is ever queued for a
listener. Redis confirms each subscription, also after it was unreachable. Then all listeners of the tenant are woken:
messages may have been missed until then, and none are from then on.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any
from uuid import UUID

import structlog
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from recollect.settings import Settings
from recollect.telemetry import metrics
from recollect.valkey.change_channel import channel_of, decode_change, tenant_of
from recollect.valkey.client import connect_redis

SILENCE_SECONDS = 5.0
"""How long Redis may send nothing before the bus asks whether it is there; and how long it may take to answer."""

RETRY_SECONDS = 0.5
"""How long the bus waits, on average, before it connects again. Gateways that were cut off together come one by one."""

_CANCEL_SECONDS = 0.1
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
    """The listeners of this process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._listeners: dict[UUID, set[Listener]] = {}
        self._followed: set[UUID] = set()
        self._is_outdated = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Receive messages inside."""
        running = asyncio.create_task(self._run(), name="changes")
        try:
            yield
        finally:
            await _end(running)

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
        self._is_outdated.set()
        try:
            yield
        finally:
            remaining = self._listeners[tenant_id]
            remaining.discard(listener)
            if not remaining:
                del self._listeners[tenant_id]
                self._is_outdated.set()

    def is_following(self, tenant_id: UUID) -> bool:
        """Whether the tenant's changes are received; False while Redis is unreachable or has not confirmed it."""
        return tenant_id in self._followed

    def wake_all(self) -> None:
        """Wake every listener."""
        for tenant_id in self._listeners:
            self._wake(tenant_id)

    def _wake(self, tenant_id: UUID, graph_id: UUID | None = None) -> None:
        for listener in self._listeners.get(tenant_id, ()):
            listener.wake(graph_id)

    async def _run(self) -> None:
        """Connect, and connect again whenever the connection is lost."""
        while True:
            try:
                async with connect_redis(self._settings) as redis, redis.pubsub() as channels:
                    await channels.connect()
                    await self._follow(channels)
            except _FAILURES as error:
                log.debug("changes not received, will retry", reason=type(error).__name__)
            finally:
                self._followed.clear()
            await asyncio.sleep(RETRY_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311 - spreads load, guards nothing

    async def _follow(self, channels: PubSub) -> None:
        """Keep the tenants that have listeners subscribed, and receive messages; raises the errors of Redis."""
        receiving = asyncio.create_task(self._receive(channels))
        receiving.add_done_callback(lambda _: self._is_outdated.set())
        requested: set[UUID] = set()
        try:
            while not receiving.done():
                self._is_outdated.clear()
                requested = await self._request(channels, requested)
                await self._is_outdated.wait()
        finally:
            await _end(receiving)

    async def _request(self, channels: PubSub, requested: set[UUID]) -> set[UUID]:
        """Change the subscriptions from those that were requested to those that are wanted now; returns the latter."""
        wanted = set(self._listeners)
        if missing := wanted - requested:
            await channels.subscribe(*map(channel_of, missing))
        if unwanted := requested - wanted:
            await channels.unsubscribe(*map(channel_of, unwanted))
        return wanted

    async def _receive(self, channels: PubSub) -> None:
        """Handle what Redis sends; raises its errors, and TimeoutError once it answers no more."""
        while True:
            message = await channels.get_message(timeout=SILENCE_SECONDS)
            if message is None:
                await channels.ping()
                message = await channels.get_message(timeout=SILENCE_SECONDS)
                if message is None:
                    raise TimeoutError
            self._handle(message)
            await asyncio.sleep(0)  # Messages that are here already are read without waiting: others go in between.

    def _handle(self, message: dict[str, Any]) -> None:
        """Wake whom a message, or the confirmation of a subscription, concerns."""
        kind = message["type"]
        if kind == "pong":
            return
        tenant_id = tenant_of(message["channel"])
        if kind == "subscribe":
            self._followed.add(tenant_id)
            self._wake(tenant_id)
        elif kind == "unsubscribe":
            self._followed.discard(tenant_id)
        elif (change := decode_change(message["data"])) is not None:
            metrics.record_notification_lag(max(0.0, time.time() - change.published_at))
            self._wake(tenant_id, change.graph_id)


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel a task, wait until it has ended, and raise what it raised.

    Repeatedly: a cancellation that comes just when something was sent is lost (`asyncio.wait_for` of Python 3.11).
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_CANCEL_SECONDS)
    with suppress(asyncio.CancelledError):
        task.result()
