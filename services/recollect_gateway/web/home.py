"""/: what a gateway is, for people who open its address, or an address of MCP, in a browser."""

from litestar import Response, get

from recollect_gateway.callers.rate_limits import by_address
from recollect_gateway.web.local_owner import PATH, local_owner
from recollect_gateway.web.pages import page, plain_page
from recollect_http.requests import AnyRequest
from recollect_http.server.hosts import Origins


@get(
    "/",
    include_in_schema=False,
    sync_to_thread=False,
    guards=[by_address("home-page", lambda settings: settings.public_requests_per_minute)],
)
def home_page(request: AnyRequest) -> Response[str]:
    """Where to connect a client, to sign in and to read about the API: the same for everybody, without a cookie.

    On a machine with a demo tenant, a form signs its owner in, and has the cookie of forms.
    """
    origins: Origins = request.app.state.resources.origins
    mcp_address = f"{origins.asked_at(request.headers.get('host', ''))}/mcp"
    if local_owner(request) is not None:
        return page(request, "home.html", local_sign_in=PATH, mcp_address=mcp_address)
    return plain_page("home.html", local_sign_in=None, mcp_address=mcp_address)
