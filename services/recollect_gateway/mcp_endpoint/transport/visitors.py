"""People who open an address of MCP in a browser: it has nothing to show them, and leads to the page that has."""

from typing import Any

from litestar import Request
from litestar.response.base import ASGIResponse

from recollect_gateway.streaming import server_sent_events

PAGE, JSON = "text/html", "application/json"


def is_visitor(request: Request[Any, Any, Any]) -> bool:
    """Whether a browser asks for a page: no client of MCP accepts one without what MCP answers, or without a key."""
    if request.method != "GET" or "authorization" in request.headers:
        return False
    ranges = ",".join(request.headers.getall("accept", [])).lower().split(",")
    accepted = {part.partition(";")[0].strip() for part in ranges}
    return PAGE in accepted and accepted.isdisjoint((JSON, server_sent_events.MEDIA_TYPE))


def to_home_page() -> ASGIResponse:
    """The answer that leads there."""
    headers = {"Location": "/", "Vary": "Accept"}
    return ASGIResponse(body=b"", status_code=303, headers=headers, media_type=PAGE)
