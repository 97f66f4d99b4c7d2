"""Sends answers in the form that a client accepts: JSON, server-sent events, or either.

Clients of MCP must accept both, and the SDK refuses any other with 406. Some accept one alone, or name nothing. So the
SDK is told that both are accepted, and its answer is put into the other form where the client accepts only that:

- JSON alone: the response of a stream becomes the body. Comments that keep the connection open become white space, and
  notifications, such as progress, are left out: nobody would read them. What is nothing but a stream
  (`subscriptions/listen`) has no JSON form, and is refused.
- Server-sent events alone: a successful JSON body becomes the one event of a stream. Errors of HTTP stay JSON.

A client that names no type, or accepts any, gets JSON: one that reads events says so.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, cast

import msgspec
from litestar.types import Message, Send

from recollect_gateway.streaming import server_sent_events

JSON = "application/json"
_BOTH = (b"accept", f"{JSON}, {server_sent_events.MEDIA_TYPE}".encode())
_START = b"event: message\ndata: "

HeaderList = list[tuple[bytes, bytes]]


class Form(Enum):
    """The forms of answers that a client accepts."""

    EITHER = "either"
    JSON = "json"
    EVENTS = "events"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The forms of answers that a client accepts; `streams`: whether it accepts an answer that can only be a stream."""

    form: Form
    streams: bool

    @classmethod
    def of(cls, headers: Iterable[tuple[bytes, bytes]]) -> "Accepted":
        """Read the `Accept` of a request (RFC 9110, 12.5.1); one that is missing or empty accepts anything."""
        values = b",".join(value for name, value in headers if name == b"accept").decode("latin-1")
        ranges = [part for part in map(str.strip, values.lower().split(",")) if part] or ["*/*"]
        refused = {_media_type(part) for part in ranges if _is_refused(part)}
        named = {_media_type(part) for part in ranges} - refused
        json = JSON not in refused and bool(named & {JSON, "application/*", "*/*"})
        events = server_sent_events.MEDIA_TYPE not in refused and bool(
            named & {server_sent_events.MEDIA_TYPE, "text/*"}
        )
        form = {(True, True): Form.EITHER, (True, False): Form.JSON, (False, True): Form.EVENTS}.get((json, events))
        return cls(form or Form.NONE, events or ("*/*" in named and server_sent_events.MEDIA_TYPE not in refused))

    def refusal(self, *, listens: bool) -> str | None:
        """The error message for a client that accepts no form of the answer; None if it accepts one."""
        if listens and not self.streams:
            return f"The answer is a stream without an end: accept {server_sent_events.MEDIA_TYPE}"
        if self.form is Form.NONE:
            return f"Answers are {JSON} or {server_sent_events.MEDIA_TYPE}: accept one of them, or both"
        return None

    def put(self, *sends: Send, listens: bool) -> Sequence[Send]:
        """Wrap functions that send parts of one answer, so that they send it in the form that the client accepts."""
        if listens or self.form is Form.EITHER:
            return sends
        answer = _JsonAnswer() if self.form is Form.JSON else _EventAnswer()
        return [answer.sent_by(send) for send in sends]


class _Response(msgspec.Struct):
    """A message of a stream, as far as it tells a response from a notification."""

    method: str | None = None


@dataclass(slots=True)
class _JsonAnswer:
    """An answer as JSON, even if it comes as a stream: `buffered` is the start of one until it is known to be long."""

    buffered: dict[str, Any] | None = None
    is_stream: bool = False
    line: bytearray = field(default_factory=bytearray)
    response: bytes = b""

    def sent_by(self, send: Send) -> Send:
        async def convert(message: Message) -> None:
            if message["type"] == "http.response.start" and _is(message, server_sent_events.MEDIA_TYPE):
                self.is_stream, self.buffered = True, _as_json(message)
            elif self.is_stream and message["type"] == "http.response.body":
                await self._read(send, message["body"], more=message.get("more_body", False))
            else:
                await send(message)

        return convert

    async def _read(self, send: Send, body: bytes, *, more: bool) -> None:
        *complete, rest = body.split(b"\n")
        for part in complete:
            self.line += part
            await self._read_line(send, bytes(self.line).rstrip(b"\r"))
            self.line.clear()
        self.line += rest
        if not more:
            await self._end(send)

    async def _read_line(self, send: Send, line: bytes) -> None:
        if line.startswith(b":"):
            await self._begin(send)
            await send(_body(b"\n", more=True))
        elif line.startswith(b"data: ") and _is_response(line[6:]):
            self.response = line[6:]

    async def _begin(self, send: Send) -> None:
        if self.buffered is not None:
            start, self.buffered = self.buffered, None
            await send(cast(Message, start))

    async def _end(self, send: Send) -> None:
        if self.buffered is not None:
            self.buffered["headers"].append((b"content-length", b"%d" % len(self.response)))
        await self._begin(send)
        await send(_body(self.response, more=False))


@dataclass(slots=True)
class _EventAnswer:
    """An answer as a stream, even if it comes as JSON."""

    is_json: bool = False
    has_begun: bool = False

    def sent_by(self, send: Send) -> Send:
        async def convert(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200 and _is(message, JSON):
                self.is_json, message = True, _as_events(message)
            elif self.is_json and message["type"] == "http.response.body":
                message = self._data(message["body"], more=message.get("more_body", False))
            await send(message)

        return convert

    def _data(self, body: bytes, *, more: bool) -> Message:
        """A part of the event's data without line breaks: these are white space in JSON, and would end the data."""
        begin, self.has_begun = b"" if self.has_begun else _START, True
        return _body(begin + body.replace(b"\n", b" ") + (b"" if more else b"\n\n"), more=more)


def accepting_both(headers: Iterable[tuple[bytes, bytes]]) -> HeaderList:
    """The headers of a request, changed to accept both forms of answers."""
    return [*((name, value) for name, value in headers if name != b"accept"), _BOTH]


def _media_type(media_range: str) -> str:
    return media_range.partition(";")[0].strip()


def _is_refused(media_range: str) -> bool:
    parameters = [part.strip().replace(" ", "") for part in media_range.split(";")[1:]]
    return any(part.startswith("q=") and not part[2:].strip("0.") for part in parameters)


def _is(start: Message, media_type: str) -> bool:
    headers = cast(Any, start)["headers"]
    return any(name == b"content-type" and value.startswith(media_type.encode()) for name, value in headers)


def _is_response(message: bytes) -> bool:
    return msgspec.json.decode(message, type=_Response).method is None


def _as_json(start: Message) -> dict[str, Any]:
    dropped = {b"content-type", b"content-length", *(name.lower().encode() for name in server_sent_events.HEADERS)}
    headers = [header for header in cast(Any, start)["headers"] if header[0].lower() not in dropped]
    return {**start, "headers": [*headers, (b"content-type", JSON.encode())]}


def _as_events(start: Message) -> Message:
    dropped = {b"content-type", b"content-length"}
    headers = [header for header in cast(Any, start)["headers"] if header[0].lower() not in dropped]
    event_headers = {"Content-Type": server_sent_events.MEDIA_TYPE, **server_sent_events.HEADERS}
    headers += [(name.lower().encode(), value.encode()) for name, value in event_headers.items()]
    return cast(Message, {**start, "headers": headers})


def _body(body: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}
