"""/assets: the style sheets, scripts and icons of pages. Each has its own route, and its address names its version."""

import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from recollect_http.requests import AnyRequest

PACKAGE = "recollect_http.web"
"""The package of the templates and assets that all pages share."""

ASSETS = ("tokens.css", "components.css", "recollect.css", "frame.css", "elements.js", "icon.svg", "icons.svg")
"""The style sheets and scripts that pages of all processes share, as they are in this package."""

MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "txt": "text/plain"}
VERSION = "v"
_LASTING = "public, max-age=31536000, immutable"
_BRIEF = "public, max-age=3600"
_VERSION_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as browsers get it. It holds nothing secret, so that it may be compressed."""

    body: bytes
    compressed: bytes
    media_type: str
    version: str


def shared_asset_routes() -> list[HTTPRouteHandler]:
    """The routes of the files that all pages share."""
    return asset_routes(PACKAGE, ASSETS)


def asset_routes(package: str, names: Iterable[str], *, under: str = "") -> list[HTTPRouteHandler]:
    """A route for each of these files of a package's folder `assets`, at `/assets/{under}{name}`."""
    return [_route(package, name, f"/assets/{under}{name}") for name in names]


def asset_address(package: str, name: str, *, under: str = "") -> str:
    """The address of a file in its present version."""
    return f"/assets/{under}{name}?{VERSION}={load_asset(package, name).version}"


@cache
def load_asset(package: str, name: str) -> Asset:
    """A file of a package's folder `assets`."""
    body = files(package).joinpath("assets", *name.split("/")).read_bytes()
    media_type = MEDIA_TYPES[name.rpartition(".")[2]]
    return Asset(body, gzip.compress(body, mtime=0), media_type, sha256(body).hexdigest()[:_VERSION_LENGTH])


def _route(package: str, name: str, path: str) -> HTTPRouteHandler:
    @get(path, include_in_schema=False, sync_to_thread=False)
    def serve(request: AnyRequest) -> Response[bytes]:
        """The file: for good at the address of its version, else for an hour."""
        asset = load_asset(package, name)
        is_compressed = "gzip" in request.headers.get("accept-encoding", "")
        headers = {
            "Cache-Control": _LASTING if request.query_params.get(VERSION) == asset.version else _BRIEF,
            "Vary": "Accept-Encoding",
            **({"Content-Encoding": "gzip"} if is_compressed else {}),
        }
        body = asset.compressed if is_compressed else asset.body
        return Response(body, media_type=f"{asset.media_type}; charset=utf-8", headers=headers)

    return serve
