"""Traces and metrics that are sent to a collector. Only `telemetry.configure_tracing` imports this, where there is one.

To load exporters and instrumentations takes a third as long as to load all that most commands need.
"""

import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.asyncpg import AsyncPGInstrumentor
from opentelemetry.instrumentation.redis import RedisInstrumentor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

_EXPORT_SECONDS = 10.0  # OTLP's own default: a collector that is busy loses nothing
_SHUTDOWN_SECONDS = 3.0


def install_exporters(otlp_endpoint: str, service_name: str) -> Callable[[], None]:
    """Send the spans and metrics of this process, those of SQL and Redis too; call what comes back at the end.

    Shutting down waits at most about three seconds for a collector that does not answer.
    """
    endpoint = otlp_endpoint.rstrip("/")
    resource = Resource.create({"service.name": service_name, "service.version": version("recollect")})
    tracing = _tracer_provider(f"{endpoint}/v1/traces", resource)
    metering = _meter_provider(f"{endpoint}/v1/metrics", resource)
    trace.set_tracer_provider(tracing)
    metrics.set_meter_provider(metering)
    instrumentors = (AsyncPGInstrumentor(), RedisInstrumentor())  # type: ignore[no-untyped-call]
    for instrumentor in instrumentors:
        instrumentor.instrument()

    def shutdown() -> None:
        for instrumentor in instrumentors:
            instrumentor.uninstrument()
        _run_at_most(_SHUTDOWN_SECONDS, tracing.shutdown, metering.shutdown)

    return shutdown


def _tracer_provider(endpoint: str, resource: Resource) -> TracerProvider:
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=_EXPORT_SECONDS)
    provider.add_span_processor(BatchSpanProcessor(TextFreeExporter(exporter)))
    return provider


def _meter_provider(endpoint: str, resource: Resource) -> MeterProvider:
    exporter = OTLPMetricExporter(endpoint=endpoint, timeout=_EXPORT_SECONDS)
    reader = PeriodicExportingMetricReader(exporter)
    return MeterProvider(metric_readers=[reader], resource=resource, shutdown_on_exit=False)


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
    attributes = {key: value for key, value in (event.attributes or {}).items() if key not in _TELLING}
    return Event(event.name, attributes, event.timestamp)


_TELLING = frozenset({"exception.message", "exception.stacktrace"})


def _run_at_most(seconds: float, *calls: Callable[[], object]) -> None:
    """Run the calls side by side and leave those behind that take longer (their threads are daemons)."""
    threads = [threading.Thread(target=call, daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
