"""The access log: one line for each request, however it was answered.

It tells who asked (tenant and credential, by their ids), for what (a route's template or a tool), and what came of it.
Never what people chose: no path, no query, no header, no address, no text. It stands around the whole gateway; what
knows more of a request on the way notes it.
"""

import time
from dataclasses import dataclass
from typing import Any

import structlog
from opentelemetry import trace

from recollect.caller import Caller
from recollect.errors import ErrorCode

_KEY = "recollect.access"
_PROBES = "/health/"
_MCP_ROUTES = {"/t": "/t/{tenant}/mcp", "/mcp": "/mcp"}
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

log = structlog.get_logger("recollect.access")


@dataclass(slots=True)
class AccessLogEntry:
    """What is known of one request. `credential` is the id of a key, a person, a grant or an issuer: never a secret."""

    route: str | None = None
    tenant: str | None = None
    credential: str | None = None
    tool: str | None = None
    code: str | None = None
    status: int | None = None
    bytes_received: int = 0
    bytes_sent: int = 0
    trace_id: str | None = None
    span_id: str | None = None

    def line(self) -> dict[str, Any]:
        """What is known."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}


class AccessLog:
    """The gateway with its access log."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request, then write its line. Probes have none."""
        if scope["type"] != "http" or scope["path"].startswith(_PROBES):
            await self._app(scope, receive, send)
            return
        record, began, code = AccessLogEntry(), time.perf_counter(), "cancelled"
        try:
            await self._app({**scope, _KEY: record}, _counted(receive, record), _watched(send, record))
            if record.status is not None:  # Where nobody waits for an answer any more, none is begun.
                code = "ok" if record.status < 400 else "error"
        except Exception:
            code = str(ErrorCode.INTERNAL)
            raise
        finally:
            record.code = record.code or code
            method = scope["method"] if scope["method"] in _METHODS else "other"
            milliseconds = round((time.perf_counter() - began) * 1000, 1)
            log.info("request", method=method, duration_ms=milliseconds, **record.line())


def _counted(receive: Any, record: AccessLogEntry) -> Any:
    async def counted() -> Any:
        message = await receive()
        record.bytes_received += len(message.get("body", b""))
        return message

    return counted


def _watched(send: Any, record: AccessLogEntry) -> Any:
    async def watched(message: Any) -> None:
        if message["type"] == "http.response.start":
            record.status = message["status"]
        record.bytes_sent += len(message.get("body", b""))
        await send(message)

    return watched


def note_caller(scope: Any, caller: Caller) -> None:
    """It is known who asks. Spans are told the tenant, too."""
    trace.get_current_span().set_attribute("recollect.tenant.id", str(caller.tenant_id))
    record: AccessLogEntry | None = scope.get(_KEY)
    if record is not None:
        kind, _, rest = caller.subject.partition(":")
        record.tenant = str(caller.tenant_id)
        # What comes after the id of an issuer is its name for somebody.
        record.credential = f"{kind}:{rest.partition(':')[0]}" if rest else kind


def note_code(scope: Any, code: str) -> None:
    """The request is answered by an error of this code."""
    record: AccessLogEntry | None = scope.get(_KEY)
    if record is not None:
        record.code = code


def note_tool(scope: Any, tool: str, code: str | None) -> None:
    """A tool was called, a name of the catalogue, and answered with this error, if any."""
    record: AccessLogEntry | None = scope.get(_KEY)
    if record is not None:
        record.tool, record.code = tool, code or record.code


def note_trace(scope: Any, span: trace.Span) -> None:
    """The request's own span."""
    record: AccessLogEntry | None = scope.get(_KEY)
    context = span.get_span_context()
    if record is not None and context.is_valid:
        record.trace_id, record.span_id = trace.format_trace_id(context.trace_id), trace.format_span_id(context.span_id)


async def note_route(message: Any, scope: Any) -> None:
    """A hook before an answer is sent: by then it is known which route it is of."""
    record: AccessLogEntry | None = scope.get(_KEY)
    if record is not None and message["type"] == "http.response.start":
        # Of what is mounted the path is what is left of it.
        record.route = mcp_route(scope["raw_path"].decode("latin-1")) or scope.get("path_template")


def mcp_route(path: str) -> str | None:
    """The route of a path of MCP, which ends with its mount; None of any other."""
    return next((route for mount, route in _MCP_ROUTES.items() if path == mount or path.startswith(f"{mount}/")), None)
