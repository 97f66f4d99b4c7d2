"""Streams: answers of either transport that stay open and report changes.

A stream waits most of the time. While it waits, it has no permit among its tenant's calls and no turn; it takes a turn
for each poll of the database. Streams that poll for the same, for callers who may see the same, share what one of them
reads (`shared_reads.py`). Before each poll the credential is looked up anew, so that a stream whose credential no
longer holds is told nothing. Nothing is queued for a client that reads slowly: its stream polls again when the client
has taken what it was sent, and the connection of a client that takes nothing is cut off (`http_protocol.py`).
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from recollect.caller import Caller
from recollect.errors import ErrorCode, RecollectError, TooManyRequests, Unavailable
from recollect.settings import Settings
from recollect.telemetry import metrics
from recollect.valkey.change_bus import ChangeBus, Listener
from recollect_gateway.callers.admission import Admission
from recollect_gateway.streaming.shared_reads import SharedReads

T = TypeVar("T")

DRAINING = "draining"
"""Why a stream ends whose client did nothing wrong: this process stops. Another one serves clients that come back."""

OPEN_STREAM = "recollect.stream"
"""Key in a request's state: its answer is a stream, which ends when its client leaves and has not failed then."""

RETRY_SECONDS = 1.0
"""How long a stream waits before it polls again, where the database was unreachable or busy."""

Renew = Callable[[], Awaitable[Caller]]
"""Looks the caller of a stream up anew; raises Unauthenticated, Forbidden, or Unavailable."""


@dataclass(slots=True)
class PollResult(Generic[T]):
    """The result of one poll of the database; `found` None: nothing to send. `has_more`: poll again at once."""

    found: T | None
    has_more: bool = False


@dataclass(slots=True)
class Stream:
    """One open stream. `ended`: why we ended it, once we did. `requested_at`: when its next poll became due."""

    streams: "Streams"
    caller: Caller
    renew: Renew
    listener: Listener
    ended: str | None = field(default=None, init=False)
    requested_at: int = field(default=0, init=False)

    async def follow(self, poll: Callable[[Caller], Awaitable[PollResult[T]]]) -> AsyncIterator[T | None]:
        """What each poll finds, and None where nothing was found for as long as a connection may be silent.

        It polls at once, then after each write, and every so often. It ends with the credential, where a poll raises,
        and when this process stops; `ended` says why.
        """
        self.requested_at = self.streams.reads.now()
        try:
            while not self.streams.is_draining:
                result = await self._poll(poll)
                if result is not None and result.found is not None:
                    yield result.found
                if result is None or not result.has_more:
                    async for silence in self._wait(RETRY_SECONDS if result is None else None):
                        yield silence
                    self.requested_at = self.streams.reads.now()
            self.ended = DRAINING
        except RecollectError as error:
            self.ended = str(error.code)
        metrics.record_ended_stream(self.ended)

    async def shared(self, query: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """The result of `read`, which depends on the tenant, the graphs that the caller may use, and `query` alone.

        Streams that have all of these in common, and whose polls are due together, share one read.
        """
        key = (self.caller.tenant_id, self.caller.graphs, query)
        return await self.streams.reads.read(key, self.requested_at, read)

    async def _poll(self, poll: Callable[[Caller], Awaitable[PollResult[T]]]) -> PollResult[T] | None:
        """The result of a poll; None where the database is unreachable or busy now."""
        try:
            async with self.streams.admission.take_slot(self.caller):
                self.caller = await self.renew()
                return await poll(self.caller)
        except (Unavailable, TooManyRequests):
            return None

    async def _wait(self, seconds: float | None) -> AsyncIterator[None]:
        """Wait for a write, for `seconds` at most (None: until the next check is due); yield None for each silence."""
        settings = self.streams.settings
        left = settings.stream_check_seconds if seconds is None else seconds
        while left > 0:
            silence = min(left, settings.stream_keep_alive_seconds)
            if await self.listener.woken(silence) or self.streams.is_draining:
                return
            left -= silence
            yield None


class Streams:
    """The open streams of this process, bounded for each credential, for each tenant and in all."""

    def __init__(self, bus: ChangeBus, admission: Admission, settings: Settings) -> None:
        self.bus, self.admission, self.settings = bus, admission, settings
        self.reads = SharedReads()
        self.is_draining = False
        self._open: Counter[object] = Counter()

    @contextmanager
    def opened(self, caller: Caller, renew: Renew, transport: str) -> Iterator[Stream]:
        """A stream for a caller, while the block lasts; raises TooManyRequests, or Unavailable while draining."""
        if self.is_draining:
            raise Unavailable("This gateway is stopping. Try again: another one will answer.", code=ErrorCode.DRAINING)
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
        """End every stream, and refuse new ones."""
        self.is_draining = True
        self.bus.wake_all()

    def __len__(self) -> int:
        """How many are open."""
        return self._open[None]

    def _require_room(self, keys: tuple[object, ...]) -> None:
        settings = self.settings
        limits = (settings.streams, settings.streams_per_tenant, settings.streams_per_key)
        subjects = ("This gateway has", "This tenant has", "This credential has")
        for key, limit, subject in zip(keys, limits, subjects, strict=True):
            if self._open[key] >= limit:
                metrics.record_refused_request("streams")
                raise TooManyRequests(
                    f"{subject} {limit} streams open at this gateway, and may not have more. Listen to several things "
                    "on one stream, or end another.",
                    code=ErrorCode.TOO_MANY_STREAMS,
                )
