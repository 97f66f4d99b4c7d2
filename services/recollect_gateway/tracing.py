"""HTTP spans: they continue the trace of a client's `traceparent` header.

The SDK's span of each MCP message stands below, and prefers a `traceparent` in `_meta` as MCP says.
"""

from typing import Any

from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.trace import Span

from recollect.settings import Settings

_QUERY_ATTRIBUTES = ("url.query", "http.url", "http.target")


def traced(app: Any, settings: Settings) -> Any:
    """The ASGI application with HTTP spans, if telemetry is exported; else the application itself."""
    if settings.otlp_endpoint is None:
        return app
    return OpenTelemetryMiddleware(
        app, excluded_urls="/health", exclude_spans=["receive", "send"], server_request_hook=_without_query
    )


def _without_query(span: Span, scope: dict[str, Any]) -> None:
    """Query strings may hold names of a tenant's graphs: the path is enough."""
    for attribute in _QUERY_ATTRIBUTES:
        if attribute in getattr(span, "attributes", {}):
            span.set_attribute(attribute, "" if attribute == "url.query" else scope["path"])
