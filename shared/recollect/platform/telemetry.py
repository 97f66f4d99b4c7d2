"""Logs and traces.

Without `RECOLLECT_OTLP_ENDPOINT` nothing is installed: no provider, no instrumentation, and only
OpenTelemetry's own no-op spans remain. Stored text never reaches a span: the asyncpg and Redis
instrumentations record statements with placeholders and no parameters, and `TextFreeExporter` takes
away what exceptions say, since PostgreSQL quotes stored values in its errors.
"""

import logging.config
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from io import StringIO
from typing import Any, TextIO

import structlog
from opentelemetry import context, metrics, trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.asyncpg import AsyncPGInstrumentor
from opentelemetry.instrumentation.redis import RedisInstrumentor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from structlog.typing import ExcInfo

from recollect.printable import printable
from recollect.settings import Settings

Shutdown = Callable[[], None]

_EXPORT_SECONDS = 10.0  # OTLP's own default: a collector that is busy loses nothing
_SHUTDOWN_SECONDS = 3.0
_W3C = TraceContextTextMapPropagator()  # Not the global one, which carries a client's baggage along as well.


def configure_logging(settings: Settings) -> None:
    """Send structlog's and the standard library's records, all of one form, to standard error.

    Each line inside a span carries its `trace_id` and `span_id`. Local variables are never printed with a
    traceback: they hold what people stored.
    """
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *_BEFORE, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    chatty = settings.log_level if settings.log_level in ("DEBUG", "ERROR") else "WARNING"
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "line": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": _BEFORE,
                    "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderer(settings)],
                }
            },
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
            "root": {"handlers": ["stderr"], "level": settings.log_level},
            "loggers": {name: {"handlers": [], "propagate": True} for name in _ADOPTED}
            | {name: {"level": chatty} for name in _CHATTY},
        }
    )


def configure_tracing(settings: Settings, service_name: str) -> Shutdown:
    """Export traces and metrics over OTLP/HTTP, SQL and Redis spans included; call what comes back at the end.

    Does nothing when `otlp_endpoint` is unset. Shutting down waits at most about three seconds for a
    collector that does not answer.
    """
    if settings.otlp_endpoint is None:
        return lambda: None
    endpoint = settings.otlp_endpoint.rstrip("/")
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


def inject_context() -> dict[str, str]:
    """The current trace as W3C headers (`traceparent`, `tracestate`), to be carried along; empty outside one."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier)
    return carrier


def extracted_context(carrier: Mapping[str, str]) -> Context:
    """The trace that `inject_context` wrote down, as the parent to start spans under; empty if there is none."""
    return _W3C.extract(carrier, context=Context())


@contextmanager
def continued_span(name: str, carrier: Mapping[str, str]) -> Iterator[trace.Span]:
    """A span for work taken from a queue: it continues the carried trace, whatever surrounds it here."""
    token = context.attach(extracted_context(carrier))
    try:
        with trace.get_tracer(__name__).start_as_current_span(name, kind=trace.SpanKind.CONSUMER) as span:
            yield span
    finally:
        context.detach(token)


def current_trace_id() -> str | None:
    """The id of the trace that this is part of, 32 hexadecimal digits; None outside one."""
    span = trace.get_current_span().get_span_context()
    return trace.format_trace_id(span.trace_id) if span.is_valid else None


def _add_trace(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog processor: where in which trace the line was written."""
    span = trace.get_current_span().get_span_context()
    if span.is_valid:
        event["trace_id"] = trace.format_trace_id(span.trace_id)
        event["span_id"] = trace.format_span_id(span.span_id)
    return event


_BEFORE: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    _add_trace,
]
# Libraries that may have put handlers of their own in place, and those that log every request or job at INFO.
_ADOPTED = ("uvicorn", "uvicorn.access", "uvicorn.error", "litestar")
_CHATTY = ("arq", "mcp", "httpx2", "wordllama")


def _renderer(settings: Settings) -> list[structlog.typing.Processor]:
    if settings.log_format == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    return [
        _without_controls,
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=_traceback),
    ]


def _without_controls(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog processor: what was logged steers no terminal. (JSON escapes it anyway.)"""
    return {name: printable(value) if isinstance(value, str) else value for name, value in event.items()}


def _traceback(target: TextIO, error: ExcInfo) -> None:
    told = StringIO()
    structlog.dev.plain_traceback(told, error)
    target.write(printable(told.getvalue(), lines=True))


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
