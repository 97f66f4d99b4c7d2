"""Logs: every line of one form, on standard error, with the trace in which it was written."""

import logging.config
import os
import sys
from collections.abc import MutableMapping
from io import StringIO
from typing import Any, TextIO

import structlog
from opentelemetry import trace
from structlog.typing import ExcInfo

from recollect.settings import Settings
from recollect.settings.unknown import unknown_settings
from recollect.text.control_characters import printable

log = structlog.get_logger(__name__)


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
