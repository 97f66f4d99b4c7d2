"""The public edge: what holds for every request and every answer, whatever route they are for.

It stands around the whole application, so no route can forget it, and a request that it refuses is processed no
further. A route may set a header of its answer itself, such as `Cache-Control` or the policy of a page; the edge then
leaves that header alone.

- Methods and paths: only those that have one meaning to us and to any proxy in front.
- Bodies come as they are: a body with a `Content-Encoding` would be read as something else (415).
- `Host` must be one of our names (DNS rebinding), `Origin` one of our pages or an origin that the operator allowed. A
  request with a cookie must come from our own pages.
- CORS for those origins, and for every origin where documents are public. Credentials of browsers are never allowed: a
  token is sent on purpose, a cookie is not.
- Headers that keep browsers from guessing types, framing, embedding, sending referrers to others and caching.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

import anyio
import anyio.lowlevel
import msgspec

from recollect.errors import ErrorCode
from recollect.settings import Settings
from recollect_http.access_log import note_code
from recollect_http.problems import MEDIA_TYPE, TITLES, Problem
from recollect_http.server.hosts import HostNames, without_default_port

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

PUBLIC_PATHS = ("/.well-known/", "/oauth/jwks.json", "/oauth/register", "/oauth/token", "/oauth/revoke")
"""Addresses that OAuth clients call, from anybody's pages too: public documents, and endpoints that take no cookie."""

PROBE_PATH = "/health/"
"""Probes come by IP address, so their `Host` is none of our names."""

_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # With `no-referrer` the forms of our own pages would have no Origin.
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_DATA_POLICY = b"default-src 'none'; frame-ancestors 'none'"
_HSTS = (b"strict-transport-security", b"max-age=31536000")

_ODD_PATH = re.compile(
    rb"^(?!/)"  # `*`, or nothing
    rb"|//"
    rb"|/(?:\.|%2e){1,2}(?:/|$)"
    rb"|%(?![0-9a-f]{2})"
    rb"|%2f|%5c|\\"
    rb"|%[01][0-9a-f]|%7f|[^\x21-\x7e]",
    re.IGNORECASE,
)

HeaderList = list[tuple[bytes, bytes]]


def page_policy(*, form_targets: Sequence[str] = ()) -> str:
    """The content security policy of a page: its own scripts, styles and images, nothing inline, and no frame.

    `form_targets`: further origins to which a form leads in the end; browsers apply this to redirects after it, too.
    """
    forms = " ".join(["'self'", *form_targets])
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        f"connect-src 'self'; form-action {forms}; base-uri 'none'; frame-ancestors 'none'"
    )


@dataclass(frozen=True, slots=True)
class EdgeRefusal:
    """Why a request goes no further."""

    status: int
    code: ErrorCode
    detail: str

    def body(self) -> bytes:
        """As problem details."""
        return msgspec.json.encode(Problem("about:blank", TITLES[self.status], self.status, self.detail, self.code))


@dataclass(frozen=True, slots=True)
class _Request:
    """The parts of a request that the edge checks; a header that came several times has several values."""

    method: str
    path: str
    raw_path: bytes
    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    is_preflight: bool
    has_cookie: bool
    encodings: tuple[str, ...]

    @classmethod
    def of(cls, scope: dict[str, Any]) -> "_Request":
        hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
        asks_for_method = bool(_values(scope, b"access-control-request-method"))
        is_preflight = scope["method"] == "OPTIONS" and bool(origins) and asks_for_method
        has_cookie = bool(_values(scope, b"cookie"))
        encodings = _values(scope, b"content-encoding")
        return cls(
            scope["method"], scope["path"], scope["raw_path"], hosts, origins, is_preflight, has_cookie, encodings
        )

    @property
    def host(self) -> str:
        return self.hosts[0] if self.hosts else ""

    @property
    def origin(self) -> str:
        return self.origins[0] if self.origins else ""


class PublicEdge:
    """The application behind the edge; each gateway has one."""

    def __init__(self, app: Any, settings: Settings) -> None:
        self._app = app
        self._hosts = _Hosts(settings)
        self._origins = _Origins(settings)
        self._headers = (*_HEADERS, _HSTS) if settings.base_url.startswith("https://") else _HEADERS

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Refuse a request, answer its preflight, or let it through; the answer gets its headers either way."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = _Request.of(scope)
        sending = self._adding_headers(send, self._origins.headers_for(request))
        refusal = _odd_method(request) or _odd_path(request) or self._hosts.refuse(request)
        refusal = refusal or self._origins.refuse(request) or _encoded_body(request)
        if refusal is not None:
            note_code(scope, str(refusal.code))
            await _answer(sending, refusal.status, _refusal_headers(refusal), refusal.body())
        elif request.is_preflight:
            await _answer(sending, 204, [], b"")
        elif request.method == "HEAD":
            await _answer_head(self._app, scope, receive, sending)
        else:
            await self._app(scope, receive, sending)

    def _adding_headers(self, send: Any, cors: HeaderList) -> Any:
        async def send_with_headers(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                message = {**message, "headers": [*headers, *self._missing_headers(headers), *cors]}
            await send(message)

        return send_with_headers

    def _missing_headers(self, headers: Iterable[tuple[bytes, bytes]]) -> HeaderList:
        """The edge's headers that an answer does not set itself."""
        values = {name.lower(): value for name, value in headers}
        is_page = values.get(b"content-type", b"").startswith(b"text/html")
        policy = page_policy().encode() if is_page else _DATA_POLICY
        defaults = [*self._headers, (b"content-security-policy", policy)]
        return [header for header in defaults if header[0] not in values]


def plain_headers() -> bytes:
    """The edge's headers as lines, for an answer that the HTTP server gives without the application."""
    headers = [*_HEADERS, (b"content-security-policy", _DATA_POLICY)]
    return b"".join(b"%s: %s\r\n" % header for header in headers)


class _Hosts:
    """The hosts under which the gateway is served."""

    def __init__(self, settings: Settings) -> None:
        served = [*settings.allowed_hosts, settings.base_url]
        self._names = HostNames.of([entry.rpartition("://")[2] for entry in served])

    def refuse(self, request: _Request) -> EdgeRefusal | None:
        if len(request.hosts) != 1:
            return EdgeRefusal(400, ErrorCode.INVALID_INPUT, "A request must have one Host header")
        if request.path.startswith(PROBE_PATH) or self._names.has(request.host):
            return None
        return EdgeRefusal(421, ErrorCode.HOST_NOT_ALLOWED, "This host is not served here (RECOLLECT_ALLOWED_HOSTS)")


class _Origins:
    """The pages that may send requests from a browser: our own, and those of the origins that the operator allowed."""

    def __init__(self, settings: Settings) -> None:
        self._own = settings.base_url
        self._secure = settings.base_url.startswith("https://")
        self._allowed = frozenset(settings.allowed_origins)

    def refuse(self, request: _Request) -> EdgeRefusal | None:
        if not request.origins:
            return None
        is_own = len(request.origins) == 1 and self._is_own(request)
        if is_own or (self._may_read(request) and not request.has_cookie):
            return None
        return EdgeRefusal(
            403, ErrorCode.ORIGIN_NOT_ALLOWED, "This origin may not send requests here (RECOLLECT_ALLOWED_ORIGINS)"
        )

    def headers_for(self, request: _Request) -> HeaderList:
        """The CORS headers of the answer to this request."""
        vary = [(b"vary", b"Origin")] if self._allowed else []
        if not self._may_read(request):
            return vary
        allows_any = request.path.startswith(PUBLIC_PATHS) or "*" in self._allowed
        headers = [
            *vary,
            (b"access-control-allow-origin", b"*" if allows_any else request.origin.encode("latin-1")),
            (b"access-control-expose-headers", b"*"),  # A page that may read the answer may read all its headers.
        ]
        if request.is_preflight:
            headers += [
                (b"access-control-allow-methods", ", ".join(METHODS).encode()),
                (b"access-control-allow-headers", b"Authorization, *"),  # The wildcard leaves this one out.
                (b"access-control-max-age", b"3600"),
            ]
        return headers

    def _may_read(self, request: _Request) -> bool:
        if len(request.origins) != 1:
            return False
        return request.path.startswith(PUBLIC_PATHS) or "*" in self._allowed or request.origin in self._allowed

    def _is_own(self, request: _Request) -> bool:
        """Whether the page comes from the host that it calls, one of this server's; over TLS where we have TLS."""
        scheme, _, host = request.origin.partition("://")
        if scheme not in ("http", "https") or (self._secure and scheme != "https"):
            return False
        return request.origin == self._own or host == without_default_port(request.host)


def _odd_method(request: _Request) -> EdgeRefusal | None:
    if request.method in METHODS:
        return None
    return EdgeRefusal(405, ErrorCode.METHOD_NOT_ALLOWED, "This method is not served anywhere")


def _encoded_body(request: _Request) -> EdgeRefusal | None:
    if set(request.encodings) <= {"", "identity"}:
        return None
    return EdgeRefusal(415, ErrorCode.INVALID_INPUT, "Send the body as it is: no Content-Encoding is accepted")


def _odd_path(request: _Request) -> EdgeRefusal | None:
    if not _ODD_PATH.search(request.raw_path) and _is_text(request.raw_path):
        return None
    detail = "A path may have no empty or dotted parts, no encoded slashes and no control characters"
    return EdgeRefusal(400, ErrorCode.INVALID_INPUT, detail)


def _is_text(raw_path: bytes) -> bool:
    if b"%" not in raw_path:
        return True
    try:
        unquote_to_bytes(raw_path).decode()
    except UnicodeDecodeError:
        return False
    return True


def _values(scope: dict[str, Any], name: bytes) -> tuple[str, ...]:
    return tuple(value.decode("latin-1").strip().lower() for header, value in scope["headers"] if header == name)


def _refusal_headers(refusal: EdgeRefusal) -> HeaderList:
    headers = [(b"content-type", MEDIA_TYPE.encode())]
    if refusal.status == 405:
        headers.append((b"allow", ", ".join(METHODS).encode()))
    if refusal.status == 415:
        headers.append((b"accept-encoding", b"identity"))
    return headers


async def _answer_head(app: Any, scope: Any, receive: Any, send: Any) -> None:
    """Answer as to GET; the server leaves out the body.

    An answer without a Content-Length may have no end, such as a stream of changes, so it is ended after its headers.
    """
    with anyio.CancelScope() as answering:

        async def send_head(message: dict[str, Any]) -> None:
            await send(message)
            is_start = message["type"] == "http.response.start"
            if is_start and not any(name.lower() == b"content-length" for name, _ in message["headers"]):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                answering.cancel()
                await anyio.lowlevel.checkpoint()

        await app({**scope, "method": "GET"}, receive, send_head)


async def _answer(send: Any, status: int, headers: HeaderList, body: bytes) -> None:
    length = [] if status == 204 else [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
    await send({"type": "http.response.body", "body": body, "more_body": False})
