"""/assets: the one style sheet of our pages, their one script, and their icon."""

from functools import cache
from importlib.resources import files

from litestar import Response, get


@get("/assets/recollect.css", include_in_schema=False, sync_to_thread=False)
def style_sheet() -> Response[str]:
    """The style of every page."""
    return Response(
        _asset("recollect.css"),
        media_type="text/css",
        headers={"Cache-Control": "public, max-age=3600"},
    )


@get("/assets/passkeys.js", include_in_schema=False, sync_to_thread=False)
def passkey_script() -> Response[str]:
    """The script that asks a browser for passkeys: our pages have no other, and inline scripts do not run."""
    return Response(
        _asset("passkeys.js"),
        media_type="text/javascript",
        headers={"Cache-Control": "public, max-age=3600"},
    )


@get("/assets/icon.svg", include_in_schema=False, sync_to_thread=False)
def icon() -> Response[str]:
    """The icon beside the title. Pages name it, since browsers would otherwise request `/favicon.ico` and complain."""
    return Response(
        _asset("icon.svg"),
        media_type="image/svg+xml",
        headers={"Cache-Control": "public, max-age=3600"},
    )


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
