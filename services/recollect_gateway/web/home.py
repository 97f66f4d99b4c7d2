"""/: what a gateway is, for people who open its address, or an address of MCP, in a browser."""

from typing import Any

from litestar import Request, Response, get

from recollect_gateway.callers.admission import by_address
from recollect_gateway.web.pages import plain_page
from recollect_http.server.hosts import Origins

AnyRequest = Request[Any, Any, Any]


@get(
    "/",
    include_in_schema=False,
    sync_to_thread=False,
    guards=[by_address("home-page", lambda settings: settings.public_requests_per_minute)],
)
def home_page(request: AnyRequest) -> Response[str]:
    """Where to connect a client, to sign in and to read about the API: the same for everybody, without a cookie."""
    origins: Origins = request.app.state.resources.origins
    return plain_page("home.html", mcp_address=f"{origins.asked_at(request.headers.get('host', ''))}/mcp")
