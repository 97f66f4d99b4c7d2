"""/v1/docs: documentation of the API for people, rendered by Scalar, whose script is served from here.

The script comes from a wheel (`star-openapi-scalar`) of which nothing else is used or imported. Its version and hash
are locked like those of every dependency.
"""

import gzip
from functools import cache
from importlib import metadata
from importlib.resources import files
from pathlib import Path

from litestar import Response, Router, get

from recollect_gateway.callers.rate_limits import by_address
from recollect_http.requests import AnyRequest
from recollect_http.server.fresh_router import FreshRouter

DISTRIBUTION = "star-openapi-scalar"
SCRIPT = "star_openapi_scalar/templates/scalar/js/scalar.standalone.js"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""Scripts come from this server and are never inline; no other host is contacted. Scalar writes its styles into the
page."""

_CACHED = {"Cache-Control": "public, max-age=3600"}


@get("/docs", sync_to_thread=False)
def documentation() -> Response[bytes]:
    """The page of the documentation."""
    return Response(_asset("docs.html"), media_type="text/html", headers={"Content-Security-Policy": POLICY})


@get("/docs/begin.js", sync_to_thread=False)
def start_script() -> Response[bytes]:
    """The script that starts Scalar with our document, and keeps it from contacting other hosts."""
    return Response(_asset("begin.js"), media_type="text/javascript", headers=_CACHED)


@get("/docs/scalar.js", sync_to_thread=True)
def scalar_script(request: AnyRequest) -> Response[bytes]:
    """Scalar itself: 1.4 MB, compressed once."""
    headers = _CACHED | {"Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return Response(_compressed(), media_type="text/javascript", headers=headers | {"Content-Encoding": "gzip"})
    return Response(_script(), media_type="text/javascript", headers=headers)


def documentation_router() -> Router:
    """The page and its scripts, open to everybody, with the rate limit of the document itself."""
    return FreshRouter(
        "/v1",
        route_handlers=[documentation, start_script, scalar_script],
        include_in_schema=False,
        guards=[by_address("openapi", lambda settings: settings.public_requests_per_minute)],
    )


@cache
def _asset(name: str) -> bytes:
    return files(__package__).joinpath("assets", name).read_bytes()


@cache
def _compressed() -> bytes:
    return gzip.compress(_script(), mtime=0)


def _script() -> bytes:
    return Path(str(metadata.distribution(DISTRIBUTION).locate_file(SCRIPT))).read_bytes()
