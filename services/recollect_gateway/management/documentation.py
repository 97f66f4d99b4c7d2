"""/v1/docs: the API described for people, by Scalar, whose script is served from here.

The script comes with a wheel (`star-openapi-scalar`) of which nothing else is used, nor imported: its version and hash
are locked as those of every dependency are.
"""

import gzip
from functools import cache
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

from litestar import Request, Response, Router, get

from recollect_gateway.admission import by_address

DISTRIBUTION = "star-openapi-scalar"
SCRIPT = "star_openapi_scalar/templates/scalar/js/scalar.standalone.js"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""Scripts are ours and none is inline; nothing is asked of another host. Scalar writes its styles into the page."""

_KEPT = {"Cache-Control": "public, max-age=3600"}


@get("/docs", sync_to_thread=False)
def documentation() -> Response[bytes]:
    """The page."""
    return Response(_asset("docs.html"), media_type="text/html", headers={"Content-Security-Policy": POLICY})


@get("/docs/begin.js", sync_to_thread=False)
def beginning() -> Response[bytes]:
    """The few lines that tell Scalar where the document is, and to ask nothing of anybody else."""
    return Response(_asset("begin.js"), media_type="text/javascript", headers=_KEPT)


@get("/docs/scalar.js", sync_to_thread=True)
def scalar(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Scalar itself: 1.4 MB, compressed once."""
    headers = _KEPT | {"Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return Response(_compressed(), media_type="text/javascript", headers=headers | {"Content-Encoding": "gzip"})
    return Response(_script(), media_type="text/javascript", headers=headers)


def documentation_router() -> Router:
    """The page and its scripts, for everybody, as often as the document itself."""
    return Router(
        "/v1",
        route_handlers=[documentation, beginning, scalar],
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
