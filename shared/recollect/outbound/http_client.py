"""Requests to addresses that others chose: a client's metadata, an issuer's keys, the target of a webhook.

An address must not give access through us to hosts that its author cannot reach (server-side request forgery). So the
URL is parsed once, its host is looked up once, *each* address found must belong to the public internet, and the
connection goes to one of those: there is no second look-up that could answer differently. TLS is verified against the
name. Nothing is followed, sent along or kept: no redirect, proxy, cookie, credential or connection. Time, size and
number are bounded, and every failure looks the same from outside; the log tells operators which it was and who asked,
and never the address, which would stay there after its author was erased.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

import httpx2
import structlog

from recollect.errors import InvalidInput
from recollect.fairness.shares import Shares
from recollect.fairness.slots import released_slot
from recollect.outbound.failure_reasons import reason_of
from recollect.outbound.private_addresses import PrivateAddress, PublicNetworks, is_loopback
from recollect.settings import Settings

MAX_BODY_BYTES = 64 * 1024
"""Longest body that is read, unless a caller asks for less or more."""

MAX_URL_LENGTH = 2048

MAX_PORT = 65535

AT_ONCE = 100
"""Requests of a process that are under way at once."""

AT_ONCE_EACH = 4
"""Requests at once on behalf of one caller."""

AT_ONCE_OF_A_CROWD = 50
"""Requests at once on behalf of a whole crowd: callers of whom anybody may make any number, such as people. However
large a crowd is, the requests of others go on, such as those by which organisations have their people sign in."""

LOOK_UPS = 16
"""Names that a process looks up at once, each in a thread: the system's resolver blocks."""

LOOK_UPS_EACH = 2
"""Look-ups at once on behalf of one caller. One that nobody waits for any more counts until it ends."""

LOOK_UPS_OF_A_CROWD = 8
"""Look-ups at once on behalf of a whole crowd, counted in the same way."""

ADDRESSES = 2
"""Addresses of one name that are tried, each for an equal part of the time."""

_ONE_CONNECTION = httpx2.Limits(max_connections=1, max_keepalive_connections=0)
_MAX_AGE = re.compile(r'(?:^|[\s,])max-age="?(\d{1,9})"?(?=$|[\s,])', re.IGNORECASE)
_NO_STORE = re.compile(r"(?:^|[\s,])(?:no-store|no-cache)(?=$|[\s,=])", re.IGNORECASE)

log = structlog.get_logger(__name__)


class OutboundFailed(Exception):
    """An address gave no answer. The message never says why: that would reveal our network."""

    def __init__(self) -> None:
        super().__init__("There was no usable answer from this address")


@dataclass(frozen=True, slots=True)
class OutboundResponse:
    """The answer of an address, with any status: a redirect is an answer, too."""

    status: int
    headers: httpx2.Headers
    body: bytes

    @property
    def media_type(self) -> str:
        """The type of the body in lower case, without parameters; empty where the header is missing."""
        content_type: str = self.headers.get("content-type", "")
        return content_type.split(";", 1)[0].strip().lower()

    @property
    def max_age(self) -> int | None:
        """For how many seconds it may be kept, by `Cache-Control` (RFC 9111); None where that does not say."""
        cache_control = self.headers.get("cache-control", "")
        if _NO_STORE.search(cache_control):
            return 0
        found = _MAX_AGE.search(cache_control)
        return int(found[1]) if found else None


class Outbound:
    """Sends such requests. A process has one: its limits hold for all requests of the process."""

    def __init__(self, settings: Settings, *, tls: ssl.SSLContext | None = None) -> None:
        self._networks = PublicNetworks(allowed=settings.outbound_networks, refused=settings.outbound_refused_networks)
        self._ports = frozenset(settings.outbound_ports)
        self._seconds = settings.outbound_seconds
        self._tls = tls or httpx2.create_ssl_context()
        self._requests, self._requests_each = Shares(AT_ONCE), Shares(AT_ONCE_EACH)
        self._requests_of_crowds = Shares(AT_ONCE_OF_A_CROWD)
        self._names = _Names()

    async def get(
        self,
        url: str,
        *,
        on_behalf_of: Hashable,
        crowd: str | None = None,
        accept: str = "application/json",
        headers: Mapping[str, str] | None = None,
        max_bytes: int = MAX_BODY_BYTES,
    ) -> OutboundResponse:
        """Send GET and return the answer. `on_behalf_of`: the caller, such as a tenant, whose share it counts in.

        `crowd`: the name of a group of askers of whom anybody may make any number, such as people: the group as a whole
        has a share, too.

        Raises OutboundFailed for any failure, an address that may not be reached included. The caller checks status and
        type of the answer.
        """
        headers = {**(headers or {}), "Accept": accept}
        return await self._request("GET", url, _Asker(on_behalf_of, crowd), headers, None, max_bytes)

    async def post(
        self,
        url: str,
        content: bytes,
        *,
        on_behalf_of: Hashable,
        headers: Mapping[str, str],
        max_bytes: int = MAX_BODY_BYTES,
        seconds: float | None = None,
    ) -> OutboundResponse:
        """Send POST with a body, whose type is in `headers`, once at most; otherwise as `get`.

        `seconds`: for the whole answer, for an address that thinks for longer than others may.
        """
        return await self._request("POST", url, _Asker(on_behalf_of), headers, content, max_bytes, seconds)

    def require_address(self, url: str, *, path: str) -> None:
        """Raise InvalidInput at `path` for a URL whose form we do not accept, without looking its host up."""
        self._parse(url, path)

    async def close(self) -> None:
        """End the threads that look names up."""
        self._names.close()

    async def _request(
        self,
        method: Literal["GET", "POST"],
        url: str,
        asker: "_Asker",
        headers: Mapping[str, str],
        content: bytes | None,
        max_bytes: int,
        seconds: float | None = None,
    ) -> OutboundResponse:
        wait, seconds = self._seconds, seconds or self._seconds
        try:
            async with (
                released_slot(),
                asyncio.timeout(seconds),
                self._requests_each.acquire(asker.name, wait_seconds=wait),
                asker.within(self._requests_of_crowds, wait_seconds=wait),
                self._requests.acquire(None, wait_seconds=wait),
            ):
                target = self._parse(url, "url")
                addresses = await self._addresses(target, asker)
                request = httpx2.Request(method, target, headers=_own_headers(headers), content=content)
                return await self._send(request, addresses, max_bytes, seconds)
        except (InvalidInput, PrivateAddress, _Refused) as error:
            raise asker.failed(f"{type(error).__name__}: {error}") from None  # Our own words.
        except (httpx2.HTTPError, OSError, UnicodeError) as error:
            raise asker.failed(reason_of(error)) from None
        except ExceptionGroup as errors:  # Of the transport, which connects in tasks, for an error it did not foresee.
            raise asker.failed(reason_of(errors.exceptions[0])) from None

    def _parse(self, url: str, path: str) -> httpx2.URL:
        try:
            parsed = httpx2.URL(url)
        except (httpx2.InvalidURL, ValueError):
            raise InvalidInput("This is not an address", path=path) from None
        if len(url) > MAX_URL_LENGTH or not parsed.host or parsed.userinfo or parsed.fragment:
            raise InvalidInput(
                f"An address must have a host, no user, no fragment, and at most {MAX_URL_LENGTH} characters", path=path
            )
        if "%" in parsed.host:
            raise InvalidInput("A host has no zone (%), which means something on one machine only", path=path)
        if parsed.port is not None and not 1 <= parsed.port <= MAX_PORT:
            raise InvalidInput(f"A port is a number from 1 to {MAX_PORT}", path=path)
        if not self._networks.loopback_allowed:
            self._require_https(parsed, path)
        elif parsed.scheme not in ("https", "http"):
            raise InvalidInput("An address must begin with https://, or with http:// on this machine", path=path)
        return parsed

    def _require_https(self, url: httpx2.URL, path: str) -> None:
        port = url.port or 443
        if url.scheme != "https" or port not in self._ports:
            ports = ", ".join(map(str, sorted(self._ports)))
            raise InvalidInput(f"An address must begin with https:// and name no port but {ports}", path=path)

    async def _addresses(self, url: httpx2.URL, asker: "_Asker") -> list[str]:
        """The addresses of a host; raises PrivateAddress if any of them may not be reached."""
        found = await self._names.addresses(url.host, asker, wait_seconds=self._seconds)
        self._networks.require_all(found)
        if not all(map(is_loopback, found)):
            self._require_https(url, "url")
        return found

    async def _send(
        self, request: httpx2.Request, addresses: list[str], max_bytes: int, seconds: float
    ) -> OutboundResponse:
        """Send the request to the first of these addresses to which a connection is made."""
        candidates = addresses[:ADDRESSES]
        for address in candidates[:-1]:
            try:
                return await self._exchange(request, address, max_bytes, seconds, self._seconds / len(candidates))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue  # Nothing was sent yet.
        return await self._exchange(request, candidates[-1], max_bytes, seconds, self._seconds)

    async def _exchange(
        self, request: httpx2.Request, address: str, max_bytes: int, seconds: float, connect_seconds: float
    ) -> OutboundResponse:
        """Send one request on a connection of its own to this address, with TLS for the name."""
        host = request.url.host
        pinned = httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            content=request.content,
            extensions={
                "sni_hostname": host,
                "timeout": httpx2.Timeout(seconds, connect=connect_seconds).as_dict(),
            },
        )
        async with httpx2.AsyncHTTPTransport(self._tls, trust_env=False, limits=_ONE_CONNECTION) as transport:
            response = await transport.handle_async_request(pinned)
            try:
                return OutboundResponse(response.status_code, response.headers, await _body(response, max_bytes))
            finally:
                await response.aclose()


class _Refused(Exception):
    """Why a request was not sent, or its answer not accepted; for the log."""


@dataclass(frozen=True, slots=True)
class _Asker:
    """On whose behalf a request is sent, and the crowd to which they belong, if any."""

    name: Hashable
    crowd: str | None = None

    def within(self, shares: Shares, *, wait_seconds: float) -> AbstractAsyncContextManager[None]:
        """A permit of the crowd's share; nothing is needed without a crowd."""
        return nullcontext() if self.crowd is None else shares.acquire(self.crowd, wait_seconds=wait_seconds)

    def failed(self, reason: str) -> OutboundFailed:
        """The error to raise, after the reason is logged: with who asked, and not with the host, which they chose."""
        log.info("outbound request failed", on_behalf_of=str(self.name), reason=reason)
        return OutboundFailed()


class _Names:
    """Looks host names up, a few at a time."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(LOOK_UPS, thread_name_prefix="resolver")
        self._each, self._of_crowds = Shares(LOOK_UPS_EACH), Shares(LOOK_UPS_OF_A_CROWD)
        self._in_progress: set[asyncio.Task[list[str]]] = set()

    async def addresses(self, host: str, asker: _Asker, *, wait_seconds: float) -> list[str]:
        """All addresses of a host, in the order in which to try them.

        When the caller stops waiting, the look-up goes on, since a thread cannot be ended, and still takes its share.
        """
        task = asyncio.create_task(self._look_up(host, asker, wait_seconds))
        self._in_progress.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _look_up(self, host: str, asker: _Asker, wait_seconds: float) -> list[str]:
        async with (
            self._each.acquire(asker.name, wait_seconds=wait_seconds),
            asker.within(self._of_crowds, wait_seconds=wait_seconds),
        ):
            return await asyncio.get_running_loop().run_in_executor(self._threads, _system_addresses, host)

    def _forget(self, task: asyncio.Task[list[str]]) -> None:
        self._in_progress.discard(task)
        if not task.cancelled():
            task.exception()  # Retrieved, so that asyncio does not log it where the caller has left.


def _system_addresses(host: str) -> list[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _own_headers(headers: Mapping[str, str]) -> dict[str, str]:
    # No compression: a body that may expand is never read, whatever its expanded size.
    return {**headers, "User-Agent": "Recollect", "Accept-Encoding": "identity"}


async def _body(response: httpx2.Response, max_bytes: int) -> bytes:
    """The body, read up to `max_bytes`; raises _Refused for a longer or an encoded one."""
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise _Refused("its answer is encoded, though none was asked for")
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > max_bytes:
            raise _Refused(f"its answer is longer than {max_bytes} bytes")
    return bytes(body)
