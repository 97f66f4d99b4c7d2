"""Server-sent events, as HTML defines them: what a browser's EventSource reads, and clients in any language."""

from typing import Any

import msgspec

MEDIA_TYPE = "text/event-stream"

HEADERS = {
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
    "X-Content-Type-Options": "nosniff",
}
"""What keeps proxies from holding events back, and from keeping them."""

SILENCE = b":\n\n"
"""A comment: nothing happened, and the connection is there."""


def retry_after(milliseconds: int) -> bytes:
    """How long a client waits before it comes back, once its connection has ended."""
    return b"retry: %d\n\n" % milliseconds


def event(name: str, data: Any, *, place: str | None = None) -> bytes:
    """An event with JSON data, which never holds a line's end; `place`: its id, by which a client goes on after it."""
    where = b"" if place is None else b"id: %s\n" % place.encode()
    return b"%sevent: %s\ndata: %s\n\n" % (where, name.encode(), msgspec.json.encode(data))


def reached(place: str) -> bytes:
    """No event, and the id by which a client goes on: so far nothing was for it."""
    return b"id: %s\n\n" % place.encode()
