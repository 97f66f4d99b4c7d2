"""Logs and traces.

Without `RECOLLECT_OTLP_ENDPOINT` nothing is installed: no provider, no instrumentation, and only
OpenTelemetry's own no-op spans remain. Stored text never reaches a span: the asyncpg and Redis
instrumentations record statements with placeholders and no parameters, and `otlp.TextFreeExporter` takes
away what exceptions say, since PostgreSQL quotes stored values in its errors.
"""

import logging.config
import os
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from io import StringIO
from typing import Any, TextIO

import structlog
from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from structlog.typing import ExcInfo

from recollect.settings import Settings
from recollect.settings.unknown import unknown_settings
from recollect.text.control_characters import printable

Shutdown = Callable[[], None]

log = structlog.get_logger(__name__)

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


def warn_of_unknown_settings() -> None:
    """Log each variable of the environment that looks like a setting and is none."""
    for unknown in unknown_settings(Settings.model_fields, os.environ):
        log.warning("unknown setting", name=unknown.name, nearest=unknown.nearest)


def configure_tracing(settings: Settings, service_name: str) -> Shutdown:
    """Export traces, those of SQL and Redis included, and metrics; call the returned function at the end.

    Does nothing where neither `otlp_endpoint` nor `metrics_port` is set. Shutting down waits at most about three
    seconds for a collector that does not answer. Raises InvalidInput where the port cannot be listened on.
    """
    if not settings.tells_metrics:
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


def _add_trace(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog processor: adds the trace and the span in which the line was written."""
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
    """structlog processor: removes control characters, so that logged text steers no terminal. (JSON escapes them.)"""
    return {name: printable(value) if isinstance(value, str) else value for name, value in event.items()}


def _traceback(target: TextIO, error: ExcInfo) -> None:
    buffer = StringIO()
    structlog.dev.plain_traceback(buffer, error)
    target.write(printable(buffer.getvalue(), lines=True))
