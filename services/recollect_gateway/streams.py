"""Streams: answers that stay open and tell what changes, of either transport.

A stream waits most of the time. While it does, it has no place among its tenant's calls and no turn; it takes a turn
for each look at the database. Streams that look for the same, as callers who may see the same, share what one of them
reads (`shared_reads.py`). Before each look its credential is asked for anew, so that nothing is told to one that no
longer holds. Nothing is queued for a client that reads slowly: its stream looks again when what it was sent is taken,
and the connection of one that takes nothing is cut off (`http_protocol.py`).
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from recollect.caller import Caller
from recollect.errors import ErrorCode, RecollectError, TooManyRequests, Unavailable
from recollect.platform import metrics
from recollect.platform.change_bus import ChangeBus, Listener
from recollect.settings import Settings
from recollect_gateway.admission import Admission
from recollect_gateway.shared_reads import SharedReads

T = TypeVar("T")

DRAINING = "draining"
"""Why streams end that have done nothing wrong: this process stops. Another one serves whoever comes back."""

OPEN_STREAM = "recollect.stream"
"""Of a request's scope: its answer is a stream, which ends when its client leaves and has not failed then."""

AGAIN_SECONDS = 1.0
"""How long a stream waits before it looks again, where the database was away or busy."""

Renew = Callable[[], Awaitable[Caller]]
"""Who a stream is for, asked anew; raises Unauthenticated, Forbidden, or Unavailable."""


@dataclass(slots=True)
class Look(Generic[T]):
    """What one look found: None, nothing to tell. `more`: there is more to find at once."""

    found: T | None
    more: bool = False


@dataclass(slots=True)
class Stream:
    """One open stream. `ended`: why it was ended by us, once it was. `wanted`: when its look became due."""

    streams: "Streams"
    caller: Caller
    renew: Renew
    listener: Listener
    ended: str | None = field(default=None, init=False)
    wanted: int = field(default=0, init=False)

    async def follow(self, look: Callable[[Caller], Awaitable[Look[T]]]) -> AsyncIterator[T | None]:
        """What each look finds, and None where nothing was found for as long as a connection may be silent.

        Looks at first, then when something was written, and every so often. Ends where the credential does, where a
        look raises, and when this process stops; `ended` says why.
        """
        self.wanted = self.streams.reads.now()
        try:
            while not self.streams.is_draining:
                looked = await self._look(look)
                if looked is not None and looked.found is not None:
                    yield looked.found
                if looked is None or not looked.more:
                    async for silence in self._wait(AGAIN_SECONDS if looked is None else None):
                        yield silence
                    self.wanted = self.streams.reads.now()
            self.ended = DRAINING
        except RecollectError as error:
            self.ended = str(error.code)
        metrics.record_ended_stream(self.ended)

    async def shared(self, asked: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """What a look reads that depends on the tenant, on the graphs that the caller may use, and on `asked` alone.

        Streams of which all that is the same, and whose looks are due together, share one read.
        """
        key = (self.caller.tenant_id, self.caller.graphs, asked)
        return await self.streams.reads.read(key, self.wanted, read)

    async def _look(self, look: Callable[[Caller], Awaitable[Look[T]]]) -> Look[T] | None:
        """What there is; None where that cannot be found out now."""
        try:
            async with self.streams.admission.at_work(self.caller):
                self.caller = await self.renew()
                return await look(self.caller)
        except (Unavailable, TooManyRequests):
            return None

    async def _wait(self, seconds: float | None) -> AsyncIterator[None]:
        """Wait for news, or so long (None: until the next check is due); tell of each silence."""
        settings = self.streams.settings
        left = settings.stream_check_seconds if seconds is None else seconds
        while left > 0:
            silence = min(left, settings.stream_keep_alive_seconds)
            if await self.listener.woken(silence) or self.streams.is_draining:
                return
            left -= silence
            yield None


class Streams:
    """The open streams of this process: few of each key, of each tenant and in all."""

    def __init__(self, bus: ChangeBus, admission: Admission, settings: Settings) -> None:
        self.bus, self.admission, self.settings = bus, admission, settings
        self.reads = SharedReads()
        self.is_draining = False
        self._open: Counter[object] = Counter()

    @contextmanager
    def opened(self, caller: Caller, renew: Renew, transport: str) -> Iterator[Stream]:
        """A stream for a caller, while the block lasts; raises TooManyRequests, or Unavailable while draining."""
        if self.is_draining:
            raise Unavailable("This gateway stops. Ask again: another one answers.", code=ErrorCode.DRAINING)
        keys = (None, caller.tenant_id, (caller.tenant_id, caller.subject))
        self._require_room(keys)
        self._open.update(keys)
        try:
            with metrics.open_stream(transport), self.bus.listening(caller.tenant_id) as listener:
                yield Stream(self, caller, renew, listener)
        finally:
            self._open.subtract(keys)
            for key in keys:
                if not self._open[key]:
                    del self._open[key]

    def drain(self) -> None:
        """End every stream, and open none any more."""
        self.is_draining = True
        self.bus.wake_all()

    def __len__(self) -> int:
        """How many are open."""
        return self._open[None]

    def _require_room(self, keys: tuple[object, ...]) -> None:
        settings = self.settings
        mosts = (settings.streams, settings.streams_per_tenant, settings.streams_per_key)
        whose = ("This gateway has", "This tenant has", "This credential has")
        for key, most, who in zip(keys, mosts, whose, strict=True):
            if self._open[key] >= most:
                metrics.record_refused_request("streams")
                raise TooManyRequests(
                    f"{who} {most} streams open at this gateway, and may not have more. Listen to several things on "
                    "one stream, or end another.",
                    code=ErrorCode.TOO_MANY_STREAMS,
                )
