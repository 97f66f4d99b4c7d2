"""HTTP/1.1 with bounds: what a client may send before anybody knows who it is, how slowly, and how often at once.

uvicorn's own protocol reads headers of any size and waits for them for ever. This one keeps its parser (httptools, in
C) and counts what the parser reports:

- Headers have a number and a size at most (431), trailers count as headers and are dropped, and requests that are sent
  ahead of their answers have a number at most.
- While something of a request is missing, one clock runs: for its headers from their first byte, for its body by
  windows, each of which must bring a share of it (408). It stands still while the gateway itself does not read.
- Whoever does not take its answer is cut off.
- Connections have a number at most, in all and by address (503).
- Whoever serves a request is told when its connection is lost, without listening.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from recollect.errors import ErrorCode
from recollect.settings import Settings
from recollect_gateway.addresses import TrustedProxies, site_of
from recollect_gateway.departures import DEPARTURE, Departure
from recollect_gateway.draining import Drain
from recollect_gateway.errors import MEDIA_TYPE, TITLES, Problem
from recollect_gateway.public_edge import plain_headers

BODY_SHARE = 64 * 1024
"""Bytes of a body, or its end, that must come in each window."""

MAX_AHEAD = 32
"""Requests that one connection may send ahead of their answers."""

REFUSAL_SECONDS = 1.0
"""How long a connection that was refused may take to read why."""

MAX_REFUSALS = 100
"""Connections that are told why they are refused, at once. More are cut off without a word."""

_FRAMING = 4
"""Bytes around a header: a colon, a space and the end of its line."""


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """What a connection may cost. `docs/limits.md` tells each."""

    connections: int
    connections_per_address: int
    headers: int
    header_bytes: int
    header_seconds: float
    body_seconds: float
    answer_seconds: float

    @classmethod
    def of(cls, settings: Settings) -> "ConnectionBounds":
        """As they are set."""
        return cls(
            settings.max_connections,
            settings.max_connections_per_address,
            settings.max_headers,
            settings.max_header_bytes,
            settings.header_seconds,
            settings.body_seconds,
            settings.answer_seconds,
        )


class ConnectionLimiter:
    """Counts connections. Those of trusted proxies, which bring many clients, are bounded in all only."""

    def __init__(self, bounds: ConnectionBounds, proxies: TrustedProxies) -> None:
        self._bounds = bounds
        self._proxies = proxies
        self._by_site: Counter[str] = Counter()
        self._inside = 0
        self.refusals = 0

    def admit(self, host: str | None) -> bool:
        """Count a connection and admit it, unless there are too many."""
        site = site_of(host)
        crowded = self._by_site[site] >= self._bounds.connections_per_address and host not in self._proxies
        if crowded or self._inside >= self._bounds.connections:
            return False
        self._by_site[site] += 1
        self._inside += 1
        return True

    def release(self, host: str | None) -> None:
        """One that was admitted is gone."""
        site = site_of(host)
        self._inside -= 1
        self._by_site[site] -= 1
        if not self._by_site[site]:
            del self._by_site[site]


class Awaited(Enum):
    """What a connection has yet to send."""

    NOTHING = auto()
    HEADERS = auto()
    BODY = auto()


class _RefusedError(Exception):
    """Ends the parser's work; the answer is prepared already."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection. A server makes a subclass with its own bounds and its own limiter: `bounded`."""

    bounds: ClassVar[ConnectionBounds]
    limiter: ClassVar[ConnectionLimiter]
    drain: ClassVar[Drain]

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._is_admitted = False
        self._host: str | None = None
        self._awaited = Awaited.HEADERS
        self._message = 0
        self._timed = (0, Awaited.NOTHING)
        self._clock: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._headers = self._header_bytes = 0
        self._body_bytes = 0
        self._reports = 0
        self._silent_bytes = 0
        self._refusal: bytes | None = None
        self._departure = Departure()

    # What asyncio calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        """Admit the connection, or tell it that there are too many."""
        super().connection_made(transport)
        self._host = self.client[0] if self.client else None
        self._is_admitted = self.limiter.admit(self._host)
        if self._is_admitted:
            self._set_clock()
            return
        if self.limiter.refusals >= MAX_REFUSALS:
            transport.abort()
            return
        self.limiter.refusals += 1
        transport.write(_answer(503, ErrorCode.TOO_MANY_CONNECTIONS, "There are too many connections. Try again."))
        self._clock = self.loop.call_later(REFUSAL_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back what the connection held."""
        super().connection_lost(exc)
        self._departure.happen()
        self._unset_keepalive_if_required()
        for timer in (self._clock, self._stalled):
            if timer is not None:
                timer.cancel()
        if self._is_admitted:
            self.limiter.release(self._host)
        elif self._clock is not None:
            self.limiter.refusals -= 1

    def data_received(self, data: bytes) -> None:
        """Parse what came, and see what is missing now."""
        if not self._is_admitted:
            self.transport.close()  # It has been told, and what it wanted is read: nothing is reset.
            return
        reports = self._reports
        super().data_received(data)
        if self.transport.is_closing():
            return
        self._silent_bytes = self._silent_bytes + len(data) if self._reports == reports else 0
        if self._silent_bytes > self.bounds.header_bytes:  # One header, or what no parser reports, without an end.
            self._refuse(*self._headers_too_large())
            return
        if self._awaited is Awaited.NOTHING and self._reports == reports:
            self._awaited = Awaited.HEADERS  # Empty lines before a request are no request.
        if (self._message, self._awaited) != self._timed:
            self._set_clock()

    def pause_writing(self) -> None:
        """The client is to take its answer within a time."""
        super().pause_writing()
        self._cut_off_later()

    def resume_writing(self) -> None:
        """It does."""
        super().resume_writing()
        if self._stalled is not None and not self.transport.is_closing():
            self._stalled.cancel()
            self._stalled = None

    # What the parser calls

    def on_message_begin(self) -> None:
        """A request's first byte."""
        self._report(Awaited.HEADERS)
        self._message += 1
        self._headers = self._header_bytes = self._body_bytes = 0
        super().on_message_begin()
        extensions: Any = {DEPARTURE: self._departure}
        self.scope["extensions"] = extensions

    def on_url(self, url: bytes) -> None:
        """A piece of the address, which counts as a header's bytes."""
        self._count_header(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; after the body, a trailer, which nobody here reads and none may take for a header."""
        self._headers += 1
        self._count_header(len(name) + len(value) + _FRAMING)
        if self._awaited is Awaited.HEADERS:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The request begins to be served."""
        self._report(Awaited.BODY)
        super().on_headers_complete()
        if self.drain.begun:
            self.cycle.keep_alive = False
        if len(self.pipeline) > MAX_AHEAD:
            self._refusal = b""
            raise _RefusedError

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._report(Awaited.BODY)
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._report(Awaited.NOTHING)
        super().on_message_complete()

    # What uvicorn calls

    def shutdown(self) -> None:
        """Close the connection, unless a request has begun to come: that one is answered first."""
        if self._awaited is not Awaited.HEADERS or self._message == 0:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """What the parser does not take, or what we stopped it for."""
        refusal = self._refusal
        self._close_with(_answer(400, ErrorCode.INVALID_INPUT, msg) if refusal is None else refusal)

    def on_response_complete(self) -> None:
        """A client may go on with its body for one window; where the connection ends, it takes the rest in time."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._cut_off_later()
        elif self._awaited is Awaited.BODY:
            self._set_clock()

    def timeout_keep_alive_handler(self) -> None:
        """Nothing more was asked."""
        super().timeout_keep_alive_handler()
        self._cut_off_later()

    # The clock

    def _report(self, awaited: Awaited) -> None:
        self._reports += 1
        self._awaited = awaited

    def _set_clock(self) -> None:
        """Begin to wait for what is missing now; for nothing, only uvicorn's keep-alive waits."""
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
        self._timed = (self._message, self._awaited)
        if self._awaited is Awaited.HEADERS:
            self._clock = self.loop.call_later(self.bounds.header_seconds, self._headers_overdue)
        elif self._awaited is Awaited.BODY:
            self._body_bytes = 0
            self._clock = self.loop.call_later(self.bounds.body_seconds, self._body_overdue)

    def _headers_overdue(self) -> None:
        if self._answering():  # These are of the next request. Its time begins anew with the answer to this one.
            self._set_clock()
        elif self._message == 0:
            self.transport.close()  # A connection that was opened ahead, perhaps: nothing was asked.
        else:
            self._refuse(408, ErrorCode.REQUEST_TIMEOUT, "The headers did not come in time.")

    def _body_overdue(self) -> None:
        if self.cycle.response_complete:
            self.transport.close()  # It was answered without its body, and has had time to stop.
        elif self.flow.read_paused or self._body_bytes >= BODY_SHARE:
            self._set_clock()
        else:
            self._refuse(408, ErrorCode.REQUEST_TIMEOUT, "The body did not come in time.")

    def _cut_off_later(self) -> None:
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.bounds.answer_seconds, self.transport.abort)

    # Refusals

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _count_header(self, size: int) -> None:
        self._reports += 1
        self._header_bytes += size
        if self._header_bytes > self.bounds.header_bytes or self._headers > self.bounds.headers:
            self._refusal = _answer(*self._headers_too_large())
            raise _RefusedError

    def _headers_too_large(self) -> tuple[int, ErrorCode, str]:
        bounds = self.bounds
        said = f"A request has {bounds.headers} headers of {bounds.header_bytes} bytes together at most."
        return 431, ErrorCode.HEADERS_TOO_LARGE, said

    def _refuse(self, status: int, code: ErrorCode, detail: str) -> None:
        self._close_with(_answer(status, code, detail))

    def _close_with(self, answer: bytes) -> None:
        """Say it and close, where nothing else is being said: then, close."""
        if not self._answering():
            self.transport.write(answer)
        elif not self.cycle.response_started and self._awaited is Awaited.BODY and not self.pipeline:
            self.cycle.disconnected = True  # What its handler may still say comes too late.
            self.cycle.message_event.set()
            self.transport.write(answer)
        self.transport.close()
        self._cut_off_later()


def bounded(settings: Settings, drain: Drain) -> type[BoundedProtocol]:
    """The protocol of one server: its bounds, and a limiter of its own. Once it drains, answers end connections."""
    bounds = ConnectionBounds.of(settings)
    limiter = ConnectionLimiter(bounds, TrustedProxies(settings.trusted_proxies))
    return type("ServerProtocol", (BoundedProtocol,), {"bounds": bounds, "limiter": limiter, "drain": drain})


def _answer(status: int, code: ErrorCode, detail: str) -> bytes:
    """A whole response, as problem details, after which the connection is closed."""
    body = msgspec.json.encode(Problem("about:blank", TITLES[status], status, detail, str(code)))
    retry = b"retry-after: 2\r\n" if status == 503 else b""
    lengths = b"content-type: %s\r\ncontent-length: %d\r\n" % (MEDIA_TYPE.encode(), len(body))
    return STATUS_LINE[status] + lengths + plain_headers() + retry + b"connection: close\r\n\r\n" + body
