"""Redirects people who open an address of MCP in a browser to the home page."""

from litestar.response.base import ASGIResponse

from recollect_gateway.streaming import server_sent_events
from recollect_http.requests import AnyRequest

PAGE, JSON = "text/html", "application/json"


def is_visitor(request: AnyRequest) -> bool:
    """Whether a browser asks for a page, which no client of MCP does: it sends a key, or accepts answers of MCP."""
    if request.method != "GET" or "authorization" in request.headers:
        return False
    ranges = ",".join(request.headers.getall("accept", [])).lower().split(",")
    accepted = {part.partition(";")[0].strip() for part in ranges}
    return PAGE in accepted and accepted.isdisjoint((JSON, server_sent_events.MEDIA_TYPE))


def to_home_page() -> ASGIResponse:
    """The redirect to the home page."""
    headers = {"Location": "/", "Vary": "Accept"}
    return ASGIResponse(body=b"", status_code=303, headers=headers, media_type=PAGE)
