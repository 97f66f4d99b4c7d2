"""Parts of an answer that are encoded once, where it does not hold the event loop: the SDK handles stand-ins for them.

The SDK validates, copies and encodes a result on the event loop, more than once: 2 MB of small values took 90 ms there.
It is handed a short text or object in place of each part, and the part is put back where the answer leaves as bytes.
"""

import re
import secrets
from typing import Any

from litestar.types import Message, Send

_KEY = "encoded"

_STAND_IN = re.compile(rb'\{"encoded":"([0-9a-f]{32})"\}|"encoded:([0-9a-f]{32})"')
"""A stand-in as each of the SDK's encoders writes it. Nobody can guess the digits of one, and so write it elsewhere."""


class EncodedParts:
    """The parts of what one request is answered, from when they are encoded until they are sent."""

    def __init__(self) -> None:
        self._parts: dict[bytes, bytes] = {}

    def text(self, encoded: bytes) -> str:
        """What stands in for a text, given as JSON."""
        return f"{_KEY}:{self._keep(encoded)}"

    def object(self, encoded: bytes) -> dict[str, str]:
        """What stands in for an object, given as JSON."""
        return {_KEY: self._keep(encoded)}

    def put_back_in(self, send: Send) -> Send:
        """A way of the answer that puts the parts back into each of its bodies, and then forgets them."""
        held: list[dict[str, Any]] = []

        async def filled(message: Message) -> None:
            if message["type"] == "http.response.start" and _has_length(message):
                held.append(dict(message))  # Until its body is there, which has another length than what stands in.
                return
            if message["type"] == "http.response.body":
                body = self._fill(message["body"])
                for start in held:
                    await send(_of_length(start, len(body)))  # type: ignore[arg-type]
                held.clear()
                message = {**message, "body": body}
            await send(message)

        return filled

    def _keep(self, encoded: bytes) -> str:
        key = secrets.token_hex(16)
        self._parts[key.encode()] = encoded
        return key

    def _fill(self, body: bytes) -> bytes:
        if not self._parts:
            return body
        return _STAND_IN.sub(lambda found: self._parts.pop(found[1] or found[2], found[0]), body)


def _has_length(start: Any) -> bool:
    return any(name == b"content-length" for name, _ in start["headers"])


def _of_length(start: dict[str, Any], length: int) -> dict[str, Any]:
    others = [header for header in start["headers"] if header[0] != b"content-length"]
    return {**start, "headers": [*others, (b"content-length", b"%d" % length)]}
