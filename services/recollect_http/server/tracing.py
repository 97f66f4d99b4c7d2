"""HTTP spans: they continue the trace of a client's `traceparent` header.

The SDK's span of each MCP message is a child, and prefers a `traceparent` in `_meta` as MCP says. Spans hold routes,
and no names that people chose: paths and queries hold names of graphs, and user agents identify clients.
"""

import re
from collections.abc import Iterable
from typing import Any

from litestar import Litestar
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.trace import Span, get_current_span

from recollect.settings import Settings
from recollect_http.access_log import mcp_route, note_trace

UNKNOWN = "unknown"
"""Stands for a path that no route has, and for a tool that does not exist."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_PATH_ATTRIBUTES = ("url.path", "http.url", "http.target", "http.route")
_FREE_ATTRIBUTES = ("url.query", "user_agent.original", "http.user_agent")
_PARAMETER = re.compile(r"\\{[^/]+\\}")


class Routes:
    """The routes of an application, by the paths that they take."""

    def __init__(self, templates: Iterable[str]) -> None:
        # Templates with fewer parameters go first, so that `/v1/jobs/{job_id}` takes no path of a more exact one.
        ordered = sorted(templates, key=lambda template: (template.count("{"), -len(template)))
        self._routes = [(re.compile(_PARAMETER.sub("[^/]+", re.escape(template))), template) for template in ordered]

    def of(self, path: str) -> str:
        """The route of a path, with the names of its parameters; UNKNOWN for none. MCP's route ends with its mount."""
        mount = mcp_route(path)
        if mount is not None:
            return mount
        return next((template for route, template in self._routes if route.fullmatch(path)), UNKNOWN)


def traced(app: Litestar, settings: Settings) -> Any:
    """The ASGI application with HTTP spans and metrics, if telemetry is exported; else the application itself."""
    if not settings.exports_metrics:
        return app
    routes = Routes(route.path_format for route in app.routes)

    def span_details(scope: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        method = scope.get("method", "")
        route = routes.of(scope["path"])
        return f"{method if method in _METHODS else 'HTTP'} {route}", {"http.route": route}

    def remove_names(span: Span, scope: dict[str, Any]) -> None:
        note_trace(scope, span)
        attributes = getattr(span, "attributes", {})
        for attribute in _PATH_ATTRIBUTES:
            if attribute in attributes:
                span.set_attribute(attribute, routes.of(scope["path"]))
        for attribute in _FREE_ATTRIBUTES:
            if attribute in attributes:
                span.set_attribute(attribute, "")

    return OpenTelemetryMiddleware(
        app,
        excluded_urls="/health",
        exclude_spans=["receive", "send"],
        default_span_details=span_details,
        server_request_hook=remove_names,
    )


def forget_tool_name() -> None:
    """Remove the name of a tool that does not exist from the SDK's span: the caller may have written anything."""
    span = get_current_span()
    span.update_name("tools/call")
    span.set_attribute("gen_ai.tool.name", UNKNOWN)
