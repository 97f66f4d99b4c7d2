"""The access log: one line for each request, however it was answered.

A line has the caller (tenant and credential, by their ids), the route's template or the tool, and the outcome. It never
holds what people chose: no path, no query, no header, no address, no text. The log stands around the whole gateway; the
parts of the gateway that learn more of a request note it (`note_caller`, `note_code`, …).
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
    """The line of one request. `credential` is the id of a key, a person, a grant or an issuer: never a secret."""

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
        """The fields that are known."""
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
        entry, began_at, code = AccessLogEntry(), time.perf_counter(), "cancelled"
        try:
            await self._app({**scope, _KEY: entry}, _counting_receive(receive, entry), _watched_send(send, entry))
            if entry.status is not None:  # Where the client has left, no answer is begun.
                code = "ok" if entry.status < 400 else "error"
        except Exception:
            code = str(ErrorCode.INTERNAL)
            raise
        finally:
            entry.code = entry.code or code
            method = scope["method"] if scope["method"] in _METHODS else "other"
            milliseconds = round((time.perf_counter() - began_at) * 1000, 1)
            log.info("request", method=method, duration_ms=milliseconds, **entry.line())


def _counting_receive(receive: Any, entry: AccessLogEntry) -> Any:
    async def counted() -> Any:
        message = await receive()
        entry.bytes_received += len(message.get("body", b""))
        return message

    return counted


def _watched_send(send: Any, entry: AccessLogEntry) -> Any:
    async def watched(message: Any) -> None:
        if message["type"] == "http.response.start":
            entry.status = int(message["status"])  # Some applications send an `HTTPStatus`.
        entry.bytes_sent += len(message.get("body", b""))
        await send(message)

    return watched


def note_caller(scope: Any, caller: Caller) -> None:
    """Note the caller of the request; its span gets the tenant, too."""
    trace.get_current_span().set_attribute("recollect.tenant.id", str(caller.tenant_id))
    entry: AccessLogEntry | None = scope.get(_KEY)
    if entry is not None:
        kind, _, rest = caller.subject.partition(":")
        entry.tenant = str(caller.tenant_id)
        # The name that an issuer gives a person follows the issuer's id.
        entry.credential = f"{kind}:{rest.partition(':')[0]}" if rest else kind


def note_operator(scope: Any, actor: str) -> None:
    """Note the operator of the request: its key by the id."""
    entry: AccessLogEntry | None = scope.get(_KEY)
    if entry is not None:
        entry.credential = actor


def note_code(scope: Any, code: str) -> None:
    """Note the code of the error that the request is answered with."""
    entry: AccessLogEntry | None = scope.get(_KEY)
    if entry is not None:
        entry.code = code


def note_tool(scope: Any, tool: str, code: str | None) -> None:
    """Note the tool that was called, by its name in the catalogue, and the code of its error, if any."""
    entry: AccessLogEntry | None = scope.get(_KEY)
    if entry is not None:
        entry.tool, entry.code = tool, code or entry.code


def note_trace(scope: Any, span: trace.Span) -> None:
    """Note the request's own span."""
    entry: AccessLogEntry | None = scope.get(_KEY)
    context = span.get_span_context()
    if entry is not None and context.is_valid:
        entry.trace_id, entry.span_id = trace.format_trace_id(context.trace_id), trace.format_span_id(context.span_id)


async def note_route(message: Any, scope: Any) -> None:
    """A hook before an answer is sent: note the route, which is known by then."""
    entry: AccessLogEntry | None = scope.get(_KEY)
    if entry is not None and message["type"] == "http.response.start":
        # The template of a mounted application lacks the mount, so the route of MCP comes from the whole path.
        entry.route = mcp_route(scope["raw_path"].decode("latin-1")) or scope.get("path_template")


def mcp_route(path: str) -> str | None:
    """The route of an MCP path, which ends with its mount; None for any other path."""
    return next((route for mount, route in _MCP_ROUTES.items() if path == mount or path.startswith(f"{mount}/")), None)
