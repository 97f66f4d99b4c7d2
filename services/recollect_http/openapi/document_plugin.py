"""Serves an OpenAPI document that is completed with what the framework does not know."""

from collections.abc import Callable
from typing import Any

from litestar import Litestar
from litestar.openapi.plugins import JsonRenderPlugin

from recollect_http.openapi.names import name_generic_schemas
from recollect_http.requests import AnyRequest


class DocumentPlugin(JsonRenderPlugin):
    """Serves the document that `complete` makes of the framework's; it is rendered once."""

    def __init__(self, complete: Callable[[dict[str, Any], Litestar], dict[str, Any]]) -> None:
        # Below its path the framework would serve the document as it was before.
        super().__init__(path=["/", "/openapi.json"])
        self._complete = complete
        self._rendered: bytes | None = None

    def render(self, request: AnyRequest, openapi_schema: dict[str, Any]) -> bytes:
        """The document as JSON."""
        if self._rendered is None:
            rendered = self.render_json(request, self._complete(openapi_schema, request.app))
            self._rendered = name_generic_schemas(rendered)
        return self._rendered
