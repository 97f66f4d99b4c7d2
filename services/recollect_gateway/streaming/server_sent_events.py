"""Server-sent events, as HTML defines them: what a browser's EventSource reads, and clients in any language."""

from typing import Any

import msgspec

MEDIA_TYPE = "text/event-stream"

HEADERS = {
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
    "X-Content-Type-Options": "nosniff",
}
"""Headers that keep proxies from holding events back, and from caching them."""

KEEP_ALIVE = b":\n\n"
"""A comment, which says that nothing happened and that the connection is there."""


def retry_after(milliseconds: int) -> bytes:
    """How long a client waits before it comes back, once its connection has ended."""
    return b"retry: %d\n\n" % milliseconds


def event(name: str, data: Any, *, event_id: str | None = None) -> bytes:
    """An event with JSON data in one line. `event_id`: a client that reconnects continues after it."""
    id_line = b"" if event_id is None else b"id: %s\n" % event_id.encode()
    return b"%sevent: %s\ndata: %s\n\n" % (id_line, name.encode(), msgspec.json.encode(data))


def id_only(event_id: str) -> bytes:
    """Only the id after which a client goes on, without an event: nothing up to there was for it."""
    return b"id: %s\n\n" % event_id.encode()
