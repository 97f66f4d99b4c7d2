"""Encodes the parts of an answer once, large ones beside the event loop, and gives the SDK stand-ins for them.

The SDK validates, copies and encodes a result on the event loop, more than once: 2 MB of small values took 90 ms there.
It is handed a short text or object in place of each part, and the part is put back where the answer leaves as bytes.
"""

import re
import secrets
from typing import Any

from litestar.types import Message, Send

_KEY = "encoded"

_STAND_IN = re.compile(rb'\{"encoded":"([0-9a-f]{32})"\}|"encoded:([0-9a-f]{32})"')
"""A stand-in as each of the SDK's encoders writes it. Its digits are random, so that no stored text can imitate one."""


class EncodedParts:
    """The encoded parts of one request's answer, which wait here until they are sent."""

    def __init__(self) -> None:
        self._parts: dict[bytes, bytes] = {}

    def text(self, encoded: bytes) -> str:
        """Store a text, encoded as JSON, and return its stand-in."""
        return f"{_KEY}:{self._add(encoded)}"

    def object(self, encoded: bytes) -> dict[str, str]:
        """Store an object, encoded as JSON, and return its stand-in."""
        return {_KEY: self._add(encoded)}

    def put_back_in(self, send: Send) -> Send:
        """An ASGI `send` that replaces the stand-ins in an answer's body by their parts, and then forgets these."""
        delayed_starts: list[dict[str, Any]] = []

        async def send_filled(message: Message) -> None:
            if message["type"] == "http.response.start" and _has_length(message):
                delayed_starts.append(dict(message))  # Its content-length is known once its body is filled.
                return
            if message["type"] == "http.response.body":
                body = self._fill(message["body"])
                for start in delayed_starts:
                    await send(_with_length(start, len(body)))  # type: ignore[arg-type]
                delayed_starts.clear()
                message = {**message, "body": body}
            await send(message)

        return send_filled

    def _add(self, encoded: bytes) -> str:
        key = secrets.token_hex(16)
        self._parts[key.encode()] = encoded
        return key

    def _fill(self, body: bytes) -> bytes:
        if not self._parts:
            return body
        return _STAND_IN.sub(lambda match: self._parts.pop(match[1] or match[2], match[0]), body)


def _has_length(start: Any) -> bool:
    return any(name == b"content-length" for name, _ in start["headers"])


def _with_length(start: dict[str, Any], length: int) -> dict[str, Any]:
    headers = [header for header in start["headers"] if header[0] != b"content-length"]
    return {**start, "headers": [*headers, (b"content-length", b"%d" % length)]}
