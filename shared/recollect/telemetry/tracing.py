"""Traces.

Without `RECOLLECT_OTLP_ENDPOINT` nothing is installed: no provider, no instrumentation, and only
OpenTelemetry's own no-op spans remain. Stored text never reaches a span: the asyncpg and Redis
instrumentations record statements with placeholders and no parameters, and `otlp.TextFreeExporter` takes
away what exceptions say, since PostgreSQL quotes stored values in its errors.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from recollect.settings import Settings

Shutdown = Callable[[], None]

_W3C = TraceContextTextMapPropagator()  # Not the global one, which carries a client's baggage along as well.


def configure_tracing(settings: Settings, service_name: str) -> Shutdown:
    """Export traces, those of SQL and Redis included, and metrics; call the returned function at the end.

    Does nothing where neither `otlp_endpoint` nor `metrics_port` is set. Shutting down waits at most about three
    seconds for a collector that does not answer. Raises InvalidInput where the port cannot be listened on.
    """
    if not settings.exports_metrics:
        return lambda: None
    from recollect.telemetry.otlp import install_exporters  # Takes long to load, and most processes need none.

    return install_exporters(settings, service_name)


def inject_context() -> dict[str, str]:
    """The current trace as W3C headers (`traceparent`, `tracestate`), to be carried along; empty outside one."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier)
    return carrier


def extracted_context(carrier: Mapping[str, str]) -> Context:
    """The trace that `inject_context` wrote down, as the parent to start spans under; empty if there is none."""
    return _W3C.extract(carrier, context=Context())


@contextmanager
def continued_span(name: str, carrier: Mapping[str, str], *, system: str = "postgresql") -> Iterator[trace.Span]:
    """A span for work taken from a queue: it continues the carried trace, whatever surrounds it here.

    Its name and attributes are those of OpenTelemetry's conventions for messaging. `system`: what holds the queue.
    """
    token = context.attach(extracted_context(carrier))
    attributes = queue_attributes(name, system, "process")
    try:
        tracer = trace.get_tracer(__name__)
        with tracer.start_as_current_span(
            f"process {name}", kind=trace.SpanKind.CONSUMER, attributes=attributes
        ) as span:
            yield span
    finally:
        context.detach(token)


@contextmanager
def sending_span(name: str, *, system: str) -> Iterator[trace.Span]:
    """A span for a message to a queue of that name; the context injected inside makes it the parent."""
    attributes = queue_attributes(name, system, "send")
    tracer = trace.get_tracer(__name__)
    with tracer.start_as_current_span(f"send {name}", kind=trace.SpanKind.PRODUCER, attributes=attributes) as span:
        yield span


def queue_attributes(name: str, system: str, operation: str) -> dict[str, str]:
    """The attributes that the conventions for messaging give to an operation on a queue."""
    return {
        "messaging.system": system,
        "messaging.destination.name": name,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }


@contextmanager
def step_span(name: str, **attributes: str | int) -> Iterator[trace.Span]:
    """A span for a step of this process's work; attributes get the prefix `recollect.`, and dots in place of `_`."""
    prefixed = {f"recollect.{key.replace('_', '.')}": value for key, value in attributes.items()}
    with trace.get_tracer(__name__).start_as_current_span(name, attributes=prefixed) as span:
        yield span


def current_trace_id() -> str | None:
    """The id of the current trace, 32 hexadecimal digits; None outside one."""
    span = trace.get_current_span().get_span_context()
    return trace.format_trace_id(span.trace_id) if span.is_valid else None
