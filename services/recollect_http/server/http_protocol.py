"""HTTP/1.1 with bounds: how much an unknown client may send, how slowly, and over how many connections.

uvicorn's own protocol reads headers of any size and waits for them for ever. This one uses the same parser (httptools,
in C) and counts what the parser reports:

- Headers are bounded in number and size (431), trailers count as headers and are dropped, and the requests that a
  client sends ahead of their answers are bounded in number.
- A request has one meaning: HTTP/1.0 or 1.1 (505), no chunks in HTTP/1.0, and a target of the authority that `Host`
  names (400).
- While a part of a request is missing, one clock runs: for its headers from their first byte, for its body by windows,
  each of which must bring a share of it (408). The clock stands still while the gateway itself does not read.
- A client that does not take its answer is cut off.
- Connections are bounded in number, in all and by address (503). Where there is no more room, addresses with many
  connections give way to those with fewer: their connections on which nothing is being answered are closed.
- The application learns that a connection is lost without listening for it.
"""

import asyncio
import re
from enum import Enum, auto
from typing import Any, ClassVar

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from recollect.errors import ErrorCode
from recollect.settings import Settings
from recollect_http.client_addresses import TrustedProxies
from recollect_http.problems import MEDIA_TYPE, TITLES, Problem
from recollect_http.server.connection_limits import ConnectionBounds, ConnectionLimiter
from recollect_http.server.disconnects import DISCONNECT, ClientDisconnect
from recollect_http.server.draining import Drain
from recollect_http.server.public_edge import plain_headers

BODY_SHARE = 64 * 1024
"""Bytes of a body, or its end, that must come in each window."""

MAX_AHEAD = 32
"""Requests that one connection may send ahead of their answers."""


REFUSAL_SECONDS = 1.0
"""How long a refused connection may take to read the reason."""

MAX_REFUSALS = 100
"""Refused connections that are sent the reason, at once. More are cut off without an answer."""

_FRAMING = 4
"""Bytes around a header: a colon, a space and the end of its line."""


class Awaited(Enum):
    """What a connection has yet to send."""

    NOTHING = auto()
    HEADERS = auto()
    BODY = auto()


class _RefusedError(Exception):
    """Stops the parser; the answer is prepared already."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection. A server makes a subclass with its own bounds and its own limiter: `bounded`."""

    bounds: ClassVar[ConnectionBounds]
    limiter: ClassVar[ConnectionLimiter]
    drain: ClassVar[Drain]

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._is_admitted = self._is_evicted = False
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
        self._disconnect = ClientDisconnect()

    # What asyncio calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        """Admit the connection, or answer that there are too many."""
        super().connection_made(transport)
        self._host = self.client[0] if self.client else None
        self._is_admitted = self.limiter.admit(self._host)
        if self._is_admitted:
            self.limiter.note_waiting(self._host, self)
            self._set_clock()
            return
        if self.limiter.refusals >= MAX_REFUSALS:
            transport.abort()
            return
        self.limiter.refusals += 1
        transport.write(_answer(503, ErrorCode.TOO_MANY_CONNECTIONS, "There are too many connections. Try again."))
        self._clock = self.loop.call_later(REFUSAL_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release what the connection took."""
        super().connection_lost(exc)
        self._disconnect.note_lost()
        self._unset_keepalive_if_required()
        for timer in (self._clock, self._stalled):
            if timer is not None:
                timer.cancel()
        if self._is_admitted:
            self._release()
        elif self._clock is not None and not self._is_evicted:
            self.limiter.refusals -= 1

    def data_received(self, data: bytes) -> None:
        """Parse the data, and set the clock for what is missing now."""
        if self._is_evicted:
            return
        if not self._is_admitted:
            self.transport.close()  # The refusal is sent and the request is read, so the connection is not reset.
            return
        reports = self._reports
        super().data_received(data)
        if self.transport.is_closing():
            return
        self._silent_bytes = self._silent_bytes + len(data) if self._reports == reports else 0
        if self._silent_bytes > self.bounds.header_bytes:  # An endless header, or data that the parser never reports.
            self._refuse(*self._headers_too_large())
            return
        if self._awaited is Awaited.NOTHING and self._reports == reports:
            self._awaited = Awaited.HEADERS  # Empty lines before a request are no request.
        if (self._message, self._awaited) != self._timed:
            self._set_clock()

    def pause_writing(self) -> None:
        """Cut the client off unless it takes its answer in time."""
        super().pause_writing()
        self._cut_off_later()

    def resume_writing(self) -> None:
        """The client took what was sent."""
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
        extensions: Any = {DISCONNECT: self._disconnect}
        self.scope["extensions"] = extensions

    def on_url(self, url: bytes) -> None:
        """A piece of the address, which counts as a header's bytes."""
        self._count_header(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; after the body, a trailer, which is not read and must not be taken for a header."""
        self._headers += 1
        self._count_header(len(name) + len(value) + _FRAMING)
        if self._awaited is Awaited.HEADERS:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The request begins to be served."""
        self._report(Awaited.BODY)
        self._require_one_meaning()
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
        """The request is complete. Read on, so that the end of the connection is noticed while it is served."""
        self._report(Awaited.NOTHING)
        super().on_message_complete()
        if self._is_answering():  # Until now it waited for its client.
            self.limiter.note_at_work(self._host, self)
        if not self.pipeline:  # A large body has uvicorn stop reading until the application asks for more: it need not.
            self.flow.resume_reading()

    # What uvicorn calls

    def shutdown(self) -> None:
        """Close the connection, unless a request has begun to come, which is answered first."""
        if self._awaited is not Awaited.HEADERS or self._message == 0:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that the parser does not take, or for which we stopped it."""
        refusal = self._refusal
        self._close_with(_answer(400, ErrorCode.INVALID_INPUT, msg) if refusal is None else refusal)

    def on_response_complete(self) -> None:
        """Give a client one window to go on with its body; where the connection ends, a time to take the rest."""
        super().on_response_complete()
        if self._is_admitted and not self._is_answering():
            self.limiter.note_waiting(self._host, self)
        if self.transport.is_closing():
            self._cut_off_later()
        elif self._awaited is Awaited.BODY:
            self._set_clock()

    @property
    def is_closable(self) -> bool:
        """Whether nothing is being sent on the connection: an answer may begin before its request has come."""
        return not self._is_answering() or not self.cycle.response_started

    def make_room(self) -> None:
        """Close the connection, on which nothing is being answered, and count it no longer."""
        self._release()
        self._is_admitted, self._is_evicted = False, True
        if self.transport.get_write_buffer_size():  # The client does not read, and closing waits for it.
            self.transport.abort()
        else:
            self.transport.close()

    def timeout_keep_alive_handler(self) -> None:
        """No further request came."""
        super().timeout_keep_alive_handler()
        self._cut_off_later()

    # The clock

    def _report(self, awaited: Awaited) -> None:
        self._reports += 1
        self._awaited = awaited

    def _set_clock(self) -> None:
        """Start the clock for what is missing now. Where nothing is, only uvicorn's keep-alive runs."""
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
        if self._is_answering():  # These are headers of the next request, whose time begins with this one's answer.
            self._set_clock()
        elif self._message == 0:
            self.transport.close()  # Nothing was requested: perhaps the connection was opened in advance.
        else:
            self._refuse(408, ErrorCode.REQUEST_TIMEOUT, "The headers did not arrive in time.")

    def _body_overdue(self) -> None:
        if self.cycle.response_complete:
            self.transport.close()  # The request was answered without its body, and the client had time to stop.
        elif self.flow.read_paused or self._body_bytes >= BODY_SHARE:
            self._set_clock()
        else:
            self._refuse(408, ErrorCode.REQUEST_TIMEOUT, "The body did not arrive in time.")

    def _cut_off_later(self) -> None:
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.bounds.answer_seconds, self.transport.abort)

    # Refusals

    def _release(self) -> None:
        self.limiter.note_at_work(self._host, self)
        self.limiter.release(self._host)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _count_header(self, size: int) -> None:
        self._reports += 1
        self._header_bytes += size
        if self._header_bytes > self.bounds.header_bytes or self._headers > self.bounds.headers:
            self._refusal = _answer(*self._headers_too_large())
            raise _RefusedError

    def _require_one_meaning(self) -> None:
        """Stop at a request that we and a proxy in front could read in two ways (RFC 9112, 3.2.2 and 6.1)."""
        version = self.parser.get_http_version()
        if version not in ("1.0", "1.1"):
            self._stop(505, "This server speaks HTTP/1.1")
        if version == "1.0" and any(name == b"transfer-encoding" for name, _ in self.headers):
            self._stop(400, "A request of HTTP/1.0 has no Transfer-Encoding")
        authority = _authority_of(self.url)
        if authority is not None and [authority] != [value.lower() for name, value in self.headers if name == b"host"]:
            self._stop(400, "The target of a request and its Host header must name the same authority")

    def _stop(self, status: int, detail: str) -> None:
        self._refusal = _answer(status, ErrorCode.INVALID_INPUT, detail)
        raise _RefusedError

    def _headers_too_large(self) -> tuple[int, ErrorCode, str]:
        bounds = self.bounds
        detail = f"A request may have at most {bounds.headers} headers, of {bounds.header_bytes} bytes together."
        return 431, ErrorCode.HEADERS_TOO_LARGE, detail

    def _refuse(self, status: int, code: ErrorCode, detail: str) -> None:
        self._close_with(_answer(status, code, detail))

    def _close_with(self, answer: bytes) -> None:
        """Close the connection, and send this answer first unless another answer is being sent."""
        if not self._is_answering():
            self.transport.write(answer)
        elif not self.cycle.response_started and self._awaited is Awaited.BODY and not self.pipeline:
            self.cycle.disconnected = True  # Whatever its handler still sends is dropped.
            self.cycle.message_event.set()
            self.transport.write(answer)
        self.transport.close()
        self._cut_off_later()


def bounded(settings: Settings, drain: Drain) -> type[BoundedProtocol]:
    """The protocol of one server, with its bounds and a limiter of its own. Once it drains, answers end connections."""
    bounds = ConnectionBounds.of(settings)
    limiter = ConnectionLimiter(bounds, TrustedProxies(settings.trusted_proxies))
    return type("ServerProtocol", (BoundedProtocol,), {"bounds": bounds, "limiter": limiter, "drain": drain})


def _authority_of(target: bytes) -> bytes | None:
    """The authority of a target in absolute form, in lower case; None for a target that is a path."""
    _, separator, rest = target.partition(b"://")
    if target.startswith(b"/") or not separator:
        return None
    return re.split(rb"[/?#]", rest, maxsplit=1)[0].lower()


def _answer(status: int, code: ErrorCode, detail: str) -> bytes:
    """A whole response, as problem details, after which the connection is closed."""
    body = msgspec.json.encode(Problem("about:blank", TITLES[status], status, detail, str(code)))
    retry = b"retry-after: 2\r\n" if status == 503 else b""
    lengths = b"content-type: %s\r\ncontent-length: %d\r\n" % (MEDIA_TYPE.encode(), len(body))
    return STATUS_LINE[status] + lengths + plain_headers() + retry + b"connection: close\r\n\r\n" + body
