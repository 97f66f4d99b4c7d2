"""The bus of one process: wakes listeners when any process has written a graph of their tenant.

One connection is subscribed to the channels of all tenants that have listeners. A message only says which graph to look
at, and a listener that was woken and has not looked yet need not be woken again: so nothing is ever queued for a
listener. All listeners of a tenant are woken when Redis confirms the subscription to its channel, for the first time or
after Redis was unreachable: messages before that were missed.
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
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from recollect.telemetry import metrics
from recollect.valkey.change_messages import ChangeMessage, channel_of, tenant_of_channel

SILENCE_SECONDS = 5.0
"""How long Redis may send nothing before it is asked whether it is there, and then until it answers."""

RETRY_SECONDS = 0.5
"""How long the bus waits before it asks Redis again after it was unreachable."""

_FAILURES = (RedisError, OSError, TimeoutError, RuntimeError)
"""Errors of a lost connection; RuntimeError is uvloop's where the connection is closed already."""

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
    """The listeners of this process. `redis` needs one connection."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._listeners: dict[UUID, set[Listener]] = {}
        self._followed: set[UUID] = set()
        self._is_wanted = asyncio.Event()
        self._pubsub: PubSub | None = None
        self._subscribing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Receive messages inside."""
        receiving = asyncio.create_task(self._receive(), name="changes")
        try:
            yield
        finally:
            receiving.cancel()
            with suppress(asyncio.CancelledError):
                await receiving

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
        self._renew_subscriptions()
        try:
            yield
        finally:
            remaining = self._listeners[tenant_id]
            remaining.discard(listener)
            if not remaining:
                del self._listeners[tenant_id]
                self._followed.discard(tenant_id)
                self._renew_subscriptions()

    def is_following(self, tenant_id: UUID) -> bool:
        """Whether the tenant's messages are received; False while Redis is unreachable, and until it has confirmed."""
        return tenant_id in self._followed

    def wake_all(self) -> None:
        """Wake every listener."""
        self._wake(self._listeners)

    def _wake(self, tenants: Iterable[UUID]) -> None:
        for tenant_id in list(tenants):
            for listener in self._listeners.get(tenant_id, ()):
                listener.wake()

    async def _receive(self) -> None:
        with suppress_instrumentation():
            while True:
                await self._is_wanted.wait()
                try:
                    async with self._redis.pubsub() as pubsub:
                        await self._follow(pubsub)
                except _FAILURES as error:
                    log.debug("changes not received, will retry", reason=type(error).__name__)
                    await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self, pubsub: PubSub) -> None:
        """Receive messages as long as there are listeners; raises the errors of Redis."""
        await pubsub.connect()  # type: ignore[no-untyped-call]
        self._pubsub = pubsub
        try:
            await self._take_messages(pubsub)
        finally:
            self._pubsub = None
            self._followed.clear()
            await self._stop_subscribing()  # Before the connection is closed.

    async def _take_messages(self, pubsub: PubSub) -> None:
        is_asked = False
        while self._listeners:
            self._renew_subscriptions()
            message = await pubsub.get_message(timeout=SILENCE_SECONDS)
            if message is not None:
                self._take(message)
            elif is_asked:
                raise TimeoutError
            else:
                await pubsub.ping()
            is_asked = message is None
        self._is_wanted.clear()

    def _take(self, message: dict[str, Any]) -> None:
        """Wake the listeners that a message concerns."""
        tenant_id = tenant_of_channel(message["channel"] or b"")
        if tenant_id is None or tenant_id not in self._listeners:
            return
        if message["type"] == "subscribe":
            self._followed.add(tenant_id)
            self._wake([tenant_id])
        elif message["type"] == "message" and (change := ChangeMessage.decode(message["data"])) is not None:
            metrics.record_notification_lag(max(0.0, time.time() - change.sent_at))
            for listener in self._listeners[tenant_id]:
                listener.wake(change.graph_id)

    def _renew_subscriptions(self) -> None:
        """Follow the tenants that have listeners, and no others, where Redis is connected."""
        if self._pubsub is not None and (self._subscribing is None or self._subscribing.done()):
            self._subscribing = asyncio.create_task(self._subscribe(self._pubsub))

    async def _stop_subscribing(self) -> None:
        if self._subscribing is not None:
            self._subscribing.cancel()
            with suppress(asyncio.CancelledError):
                await self._subscribing

    async def _subscribe(self, pubsub: PubSub) -> None:
        with suppress_instrumentation(), suppress(*_FAILURES):  # A broken connection is noticed by who reads it.
            while pubsub is self._pubsub:
                wanted = {channel_of(tenant_id) for tenant_id in self._listeners}
                subscribed = set(pubsub.channels) - set(pubsub.pending_unsubscribe_channels)
                if added := wanted - subscribed:
                    await pubsub.subscribe(*added)
                elif removed := subscribed - wanted:
                    await pubsub.unsubscribe(*removed)
                else:
                    return
