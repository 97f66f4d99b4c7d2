"""Exporters of traces and metrics. Only `telemetry.configure_tracing` imports this, and only if one is configured.

Loading exporters and instrumentations takes a third as long as loading everything else that most commands need.
"""

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.asyncpg import AsyncPGInstrumentor
from opentelemetry.instrumentation.redis import RedisInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from recollect import __version__
from recollect.settings import Settings
from recollect.telemetry.metric_readers import EXPORT_SECONDS as _EXPORT_SECONDS
from recollect.telemetry.metric_readers import install_metrics
from recollect.telemetry.sampling import KeepErrorsAndSlow
from recollect.telemetry.span_names import QueryNames

_SHUTDOWN_SECONDS = 3.0


def install_exporters(settings: Settings, service_name: str) -> Callable[[], None]:
    """Export the spans and metrics of this process, those of SQL and Redis too; call the returned function at the end.

    Shutting down waits at most about three seconds for a collector that does not answer. Raises InvalidInput where the
    port of metrics cannot be listened on.
    """
    os.environ.setdefault("OTEL_SEMCONV_STABILITY_OPT_IN", "http,database")  # The names that are stable, not the old.
    resource = Resource.create({"service.name": service_name, "service.version": __version__})
    shutdowns = [install_metrics(settings, resource)] if settings.exports_metrics else []
    instrumentors: tuple[Any, ...] = ()
    if settings.otlp_endpoint is not None:
        tracing = _tracer_provider(settings, f"{settings.otlp_endpoint.rstrip('/')}/v1/traces", resource)
        trace.set_tracer_provider(tracing)
        shutdowns.append(tracing.shutdown)
        instrumentors = (AsyncPGInstrumentor(), RedisInstrumentor())  # type: ignore[no-untyped-call]
    for instrumentor in instrumentors:
        instrumentor.instrument()

    def shutdown() -> None:
        for instrumentor in instrumentors:
            instrumentor.uninstrument()
        _run_at_most(_SHUTDOWN_SECONDS, *shutdowns)

    return shutdown


def _tracer_provider(settings: Settings, endpoint: str, resource: Resource) -> TracerProvider:
    # Everything is recorded: a client's sampling flag must not hide that its call failed.
    provider = TracerProvider(resource=resource, sampler=ALWAYS_ON, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=_EXPORT_SECONDS)
    processor: SpanProcessor = BatchSpanProcessor(TextFreeExporter(exporter))
    if settings.trace_ratio < 1:
        processor = KeepErrorsAndSlow(processor, ratio=settings.trace_ratio, slow_seconds=settings.trace_slow_seconds)
    provider.add_span_processor(QueryNames())
    provider.add_span_processor(processor)
    return provider


class TextFreeExporter(SpanExporter):
    """Hands spans on without the messages and stacks of exceptions; their types stay."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """See SpanExporter."""
        return self._exporter.export([_text_free(span) for span in spans])

    def shutdown(self) -> None:
        """See SpanExporter."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """See SpanExporter."""
        return self._exporter.force_flush(timeout_millis)


def _text_free(span: ReadableSpan) -> ReadableSpan:
    if not span.events and span.status.description is None:
        return span
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=span.attributes,
        events=[_text_free_event(event) for event in span.events],
        links=span.links,
        kind=span.kind,
        status=trace.Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _text_free_event(event: Event) -> Event:
    attributes = {key: value for key, value in (event.attributes or {}).items() if key not in _TEXT_ATTRIBUTES}
    return Event(event.name, attributes, event.timestamp)


_TEXT_ATTRIBUTES = frozenset({"exception.message", "exception.stacktrace"})


def _run_at_most(seconds: float, *calls: Callable[[], object]) -> None:
    """Run the calls side by side and abandon those that take longer (their threads are daemons)."""
    threads = [threading.Thread(target=call, daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
