"""/assets: the one style sheet of our pages."""

from functools import cache
from importlib.resources import files

from litestar import Response, get


@get("/assets/recollect.css", include_in_schema=False, sync_to_thread=False)
def style_sheet() -> Response[str]:
    """The style of every page."""
    return Response(
        _style(),
        media_type="text/css",
        headers={"Cache-Control": "public, max-age=3600"},
    )


@cache
def _style() -> str:
    return files(__package__).joinpath("assets", "recollect.css").read_text(encoding="utf-8")
