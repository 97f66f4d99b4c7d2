"""Requests to addresses that somebody else chose, against malicious servers."""

import asyncio
import gzip
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from recollect.errors import InvalidInput
from recollect.outbound.http_client import (
    AT_ONCE,
    AT_ONCE_EACH,
    AT_ONCE_OF_A_CROWD,
    LOOK_UPS,
    LOOK_UPS_EACH,
    LOOK_UPS_OF_A_CROWD,
    MAX_BODY_BYTES,
    Outbound,
    OutboundFailed,
    OutboundResponse,
)
from recollect.settings import Settings
from tests.support.gateway import until
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.support.web_server import CertificateAuthority, WebServer, plain, web_server

NAME = "client.example"
HERE, THERE = "127.0.0.1", "127.0.0.2"
"""Two addresses of this machine. Most tests allow the first one, and treat the second as our own network."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def serving(authority: CertificateAuthority) -> ssl.SSLContext:
    return authority.serving(NAME)


def outbound(authority: CertificateAuthority, *allowed: str, **settings: Any) -> Outbound:
    told: dict[str, Any] = {"outbound_networks": list(allowed), "outbound_seconds": 60.0} | settings
    return Outbound(Settings(**told), tls=authority.trusting())


class Resolver:
    """Resolves names: each lookup returns the next addresses, and the last ones repeatedly. Literal addresses are
    parsed.
    """

    def __init__(self, **names: list[list[str]]) -> None:
        self.names = {name.replace("_", "."): answers for name, answers in names.items()}
        self.asked: list[str] = []
        self.slow: dict[str, threading.Event] = {}

    def getaddrinfo(self, host: str, port: Any, *_: Any, **__: Any) -> list[Any]:
        self.asked.append(host)
        if host in self.slow:
            self.slow[host].wait(MAX_WAIT_SECONDS)
        if host not in self.names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        answers = self.names[host]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port or 0)) for address in found]


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Resolver:
    resolver = Resolver(client_example=[[HERE]])
    monkeypatch.setattr(socket, "getaddrinfo", resolver.getaddrinfo)
    return resolver


async def get(
    outbound: Outbound, server: WebServer, path: str = "/", *, host: str = NAME, by: str = "a", crowd: str | None = None
) -> OutboundResponse:
    async with asyncio.timeout(MAX_WAIT_SECONDS):
        return await outbound.get(f"https://{host}:{server.port}{path}", on_behalf_of=by, crowd=crowd)


async def failed(outbound: Outbound, url: str) -> str:
    """The error of an address from which no answer can be had."""
    with pytest.raises(OutboundFailed) as error:
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            await outbound.get(url, on_behalf_of="a")
    assert error.value.__cause__ is None
    return str(error.value)


@contextmanager
def reason() -> Iterator[Callable[[], str]]:
    """The failure's reason in the log."""
    with capture_logs() as logs:
        yield lambda: str(logs[-1]["reason"])


async def test_an_answer_is_returned_whole(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver
) -> None:
    headers = ["Content-Type: Application/JSON; charset=utf-8", 'Cache-Control: public, max-age="60"', 'ETag: "1"']
    async with web_server(plain(b"{}", *headers), tls=serving) as server:
        answer = await get(outbound(authority, HERE), server, "/metadata?a=b")
    assert (answer.status, answer.body, answer.media_type, answer.max_age) == (200, b"{}", "application/json", 60)
    assert answer.headers["etag"] == '"1"'
    [head] = server.heads()
    assert head.startswith("get /metadata?a=b http/1.1\r\n")
    assert f"host: {NAME}:{server.port}\r\n" in head
    assert "user-agent: recollect\r\n" in head


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("no-store", 0),
        ("max-age=60, no-cache", 0),
        ("max-age=0", 0),
        ("s-maxage=60", None),
        ("private", None),
        ("max-age=x", None),
    ],
)
async def test_max_age_of_an_answer(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver, told: str, seconds: int | None
) -> None:
    async with web_server(plain(b"", f"Cache-Control: {told}"), tls=serving) as server:
        assert (await get(outbound(authority, HERE), server)).max_age == seconds


async def test_a_body_is_posted(authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver) -> None:
    async with web_server(plain(b"", status="204 No Content"), tls=serving) as server:
        answer = await outbound(authority, HERE).post(
            f"https://{NAME}:{server.port}/hook",
            b'{"a":1}',
            on_behalf_of="a",
            headers={"Content-Type": "application/json"},
        )
    assert answer.status == 204
    [(_, body)] = server.requests
    [head] = server.heads()
    assert body == b'{"a":1}'
    assert head.startswith("post /hook ")
    assert "content-type: application/json\r\n" in head


@pytest.mark.proves("security: public-addresses")
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "①②⑦.⓪.⓪.①",
        "0.0.0.0",
        "localhost",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::1]",
    ],
)
async def test_no_spelling_of_an_address_reaches_this_machine(authority: CertificateAuthority, host: str) -> None:
    tls = authority.serving("127.0.0.1", "localhost", "::1")
    async with (
        web_server(plain(b"secret"), tls=tls) as server,
        web_server(plain(b"secret"), host="::1", port=server.port, tls=tls) as six,
    ):
        guarded = outbound(authority, outbound_ports=[server.port])
        with reason() as why:
            await failed(guarded, f"https://{host}:{server.port}/")
        assert "public internet" in why() or "Name or service" in why() or "not an address" in why(), why()
    assert server.connections == six.connections == 0


@pytest.mark.proves("security: dns-rebinding")
async def test_a_name_is_resolved_once_for_each_request(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver
) -> None:
    resolver.names[NAME] = [[HERE], [THERE]]
    async with (
        web_server(plain(b"outside"), tls=serving) as server,
        web_server(plain(b"inside"), host=THERE, port=server.port, tls=serving) as inside,
    ):
        guarded = outbound(authority, HERE)
        assert (await get(guarded, server)).body == b"outside"
        assert resolver.asked == [NAME]
        await failed(guarded, f"https://{NAME}:{server.port}/")
    assert inside.connections == 0


@pytest.mark.proves("security: public-addresses")
async def test_a_name_with_one_internal_address_is_refused(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver
) -> None:
    async with web_server(plain(b""), tls=serving) as server:
        for addresses in ([HERE, THERE], [THERE, HERE], [HERE, "::ffff:127.0.0.1"], [HERE, "169.254.169.254"]):
            resolver.names[NAME] = [addresses]
            await failed(outbound(authority, HERE), f"https://{NAME}:{server.port}/")
    assert server.connections == 0


async def test_the_next_address_is_tried_if_the_first_does_not_listen(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver
) -> None:
    resolver.names[NAME] = [[THERE, HERE]]
    async with web_server(plain(b"here"), tls=serving) as server:
        assert (await get(outbound(authority, HERE, THERE), server)).body == b"here"


@pytest.mark.proves("security: plain-requests")
async def test_a_redirect_is_not_followed(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver
) -> None:
    async with web_server(plain(b"inside"), host=THERE, tls=serving) as inside:
        to = f"Location: https://{THERE}:{inside.port}/"
        async with web_server(plain(b"", to, status="302 Found"), tls=serving) as server:
            answer = await get(outbound(authority, HERE, THERE), server)
    assert answer.status == 302
    assert inside.connections == 0


@pytest.mark.proves("security: outbound-tls")
@pytest.mark.parametrize("names", [["other.example"], ["127.0.0.1"], ["*.client.example"]])
async def test_a_certificate_must_match_the_name(
    authority: CertificateAuthority, resolver: Resolver, names: list[str]
) -> None:
    async with web_server(plain(b""), tls=authority.serving(*names)) as server:
        await failed(outbound(authority, HERE), f"https://{NAME}:{server.port}/")
    assert not server.requests


@pytest.mark.proves("security: outbound-tls")
async def test_a_certificate_must_be_from_a_trusted_authority(
    authority: CertificateAuthority, resolver: Resolver, tmp_path: Path
) -> None:
    async with web_server(plain(b""), tls=CertificateAuthority(tmp_path).serving(NAME)) as server:
        await failed(outbound(authority, HERE), f"https://{NAME}:{server.port}/")
    assert not server.requests


async def test_a_certificate_for_an_ip_address_is_accepted(authority: CertificateAuthority) -> None:
    async with web_server(plain(b"here"), tls=authority.serving(HERE)) as server:
        assert (await get(outbound(authority, HERE), server, host=HERE)).body == b"here"
    async with web_server(plain(b"here"), host="::1", tls=authority.serving("::1")) as server:
        assert (await get(outbound(authority, "::1"), server, host="[::1]")).body == b"here"


async def test_plain_http_and_other_ports_are_allowed_for_loopback_only(
    authority: CertificateAuthority, resolver: Resolver
) -> None:
    async with web_server(plain(b"here")) as server:
        url = f"http://{NAME}:{server.port}/"
        assert (await outbound(authority, HERE).get(url, on_behalf_of="a")).body == b"here"
        await failed(outbound(authority), url)
        resolver.names[NAME] = [["10.0.0.1"]]
        for odd in (url, f"https://{NAME}:6379/"):
            with reason() as why:
                await failed(outbound(authority, HERE, "10.0.0.0/8"), odd)
            assert "https://" in why()


@pytest.mark.parametrize(
    "url",
    [
        "http://client.example/",
        "ftp://client.example/",
        "file:///etc/passwd",
        "//client.example/",
        "client.example",
        "https://",
        "https://user:secret@client.example/",
        "https://@client.example:8443/",
        "https://client.example:22/",
        "https://client.example/#fragment",
        "https://client.example\r\nHost: other/",
        "https://client.example/" + "a" * 2048,
        "https://[::1/",
        "",
    ],
)
async def test_a_malformed_address_is_refused(authority: CertificateAuthority, resolver: Resolver, url: str) -> None:
    guarded = outbound(authority)
    with pytest.raises(InvalidInput) as error:
        guarded.require_address(url, path="webhook.url")
    assert error.value.path == "webhook.url"
    assert "secret" not in str(error.value)
    await failed(guarded, url)
    assert resolver.asked == []


@pytest.mark.parametrize("scheme", ["ftp", "ws", "file", "h2", ""])
async def test_other_schemes_are_refused_even_for_this_machine(authority: CertificateAuthority, scheme: str) -> None:
    guarded, url = outbound(authority, HERE), f"{scheme}://{HERE}/"
    with pytest.raises(InvalidInput, match="https://") as error:
        guarded.require_address(url, path="webhook.url")
    assert error.value.path == "webhook.url"
    await failed(guarded, url)


@pytest.mark.parametrize("port", [0, 65_536, 99_999])
async def test_an_invalid_port_is_refused(authority: CertificateAuthority, port: int) -> None:
    """Even for addresses of this machine, if they are allowed with any port."""
    guarded, url = outbound(authority, HERE), f"http://{HERE}:{port}/"
    with pytest.raises(InvalidInput, match="from 1 to 65535") as error:
        guarded.require_address(url, path="webhook.url")
    assert error.value.path == "webhook.url"
    await failed(guarded, url)


def test_an_unexpected_connection_error_is_a_failure(
    authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an exception group, as an invalid port would raise on asyncio's loop if it were not checked before."""
    monkeypatch.setattr(Outbound, "_parse", lambda _self, url, _path: httpx2.URL(url))
    with reason() as why, asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(failed(outbound(authority, HERE), f"http://{HERE}:65536/"))
    assert "OverflowError" in why()


@pytest.mark.proves("security: outbound-failures")
async def test_every_failure_has_the_same_message(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver
) -> None:
    resolver.names["inside.example"] = [[THERE]]
    guarded = outbound(authority, HERE)
    async with web_server(plain(b"a" * (MAX_BODY_BYTES + 1)), tls=serving) as server:
        said = {
            await failed(guarded, f"https://{host}:{port}/")
            for host, port in [
                (NAME, server.port),
                (NAME, 1),
                ("inside.example", server.port),
                ("unknown.example", server.port),
                ("a" * 64 + ".example", server.port),
                (THERE, server.port),
            ]
        }
    assert said == {"There was no usable answer from this address"}


async def test_a_body_is_read_up_to_the_limit(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver
) -> None:
    async with web_server(plain(b"a" * MAX_BODY_BYTES), tls=serving) as server:
        assert len((await get(outbound(authority, HERE), server)).body) == MAX_BODY_BYTES
        with pytest.raises(OutboundFailed):
            await outbound(authority, HERE).get(f"https://{NAME}:{server.port}/", on_behalf_of="a", max_bytes=5_000)


@pytest.mark.proves("security: outbound-bounds")
async def test_an_endless_body_is_cut_off(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver
) -> None:
    async def endless(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"a" * 65_536)
            await writer.drain()

    async with web_server(endless, tls=serving) as server:
        with reason() as why:
            await failed(outbound(authority, HERE), f"https://{NAME}:{server.port}/")
    assert "longer than" in why()


@pytest.mark.proves("security: outbound-bounds")
async def test_a_compressed_body_is_refused(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver
) -> None:
    bomb = gzip.compress(bytes(10_000_000))
    assert len(bomb) < MAX_BODY_BYTES
    async with web_server(plain(bomb, "Content-Encoding: gzip"), tls=serving) as server:
        with reason() as why:
            await failed(outbound(authority, HERE), f"https://{NAME}:{server.port}/")
    assert "encoded" in why()
    assert "accept-encoding: identity\r\n" in server.heads()[0]


@pytest.mark.proves("security: outbound-bounds")
@pytest.mark.parametrize(
    "drip", [b"a", b"HTTP/1.1 100 Continue\r\n\r\n", b"X-Header: a\r\n"], ids=["body", "1xx", "headers"]
)
async def test_a_dripping_answer_times_out(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver, drip: bytes
) -> None:
    async def dripping(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write({b"a": b"HTTP/1.1 200 OK\r\n\r\n", b"X-Header: a\r\n": b"HTTP/1.1 200 OK\r\n"}.get(drip, b""))
        while True:
            writer.write(drip)
            await writer.drain()
            await asyncio.sleep(0.01)

    async with web_server(dripping, tls=serving) as server:
        with reason() as why:
            await failed(outbound(authority, HERE, outbound_seconds=0.5), f"https://{NAME}:{server.port}/")
    assert "Timeout" in why()


async def test_endless_headers_are_refused(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver
) -> None:
    async def endless(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-Header: " + b"a" * 65_536 + b"\r\n")
            await writer.drain()

    async with web_server(endless, tls=serving) as server:
        with reason() as why:
            await failed(outbound(authority, HERE), f"https://{NAME}:{server.port}/")
    assert "RemoteProtocolError" in why()


@pytest.mark.proves("security: plain-requests")
async def test_proxy_variables_of_the_environment_are_ignored(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with web_server(plain(b"proxy")) as proxy, web_server(plain(b"direct"), tls=serving) as server:
        for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert (await get(outbound(authority, HERE), server)).body == b"direct"
    assert proxy.connections == 0


@pytest.mark.proves("security: plain-requests")
async def test_no_cookies_or_connections_are_kept(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver
) -> None:
    async with web_server(plain(b"", "Set-Cookie: a=b; Path=/", "Connection: keep-alive"), tls=serving) as server:
        guarded = outbound(authority, HERE)
        await get(guarded, server)
        await get(guarded, server)
    assert server.connections == 2
    assert not any("cookie:" in head or "authorization:" in head for head in server.heads())


@pytest.mark.proves("security: outbound-bounds")
async def test_requests_of_one_caller_are_limited(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver
) -> None:
    release = asyncio.Event()

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        if b"/slow" in head:
            await release.wait()
        await plain(b"")(head, writer)

    async with web_server(answer, tls=serving) as server:
        guarded = outbound(authority, HERE)
        slow = [asyncio.create_task(get(guarded, server, "/slow")) for _ in range(AT_ONCE_EACH + 1)]
        await asyncio.wait_for(server.wait_for_requests(AT_ONCE_EACH), MAX_WAIT_SECONDS)
        for _ in range(2):
            await get(guarded, server, by="b")
        assert len(server.requests) == AT_ONCE_EACH + 2
        release.set()
        await asyncio.gather(*slow)


@pytest.mark.proves("security: outbound-bounds")
async def test_requests_of_a_crowd_of_callers_are_limited(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver
) -> None:
    """A tenant may have any number of people. Fetching the documents of their clients does not block requests to a
    tenant's identity provider.
    """
    release = asyncio.Event()

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        if b"/slow" in head:
            await release.wait()
        await plain(b"")(head, writer)

    async with web_server(answer, tls=serving) as server:
        guarded = outbound(authority, HERE)
        slow = [
            asyncio.create_task(get(guarded, server, "/slow", by=f"person {number}", crowd="people"))
            for number in range(AT_ONCE)
        ]
        await asyncio.wait_for(server.wait_for_requests(AT_ONCE_OF_A_CROWD), MAX_WAIT_SECONDS)
        await get(guarded, server, by="tenant")
        assert len(server.requests) == AT_ONCE_OF_A_CROWD + 1
        release.set()
        await asyncio.gather(*slow)


@pytest.mark.proves("security: outbound-bounds")
async def test_lookups_of_a_crowd_of_callers_are_limited(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver
) -> None:
    resolver.slow["slow.example"] = release = threading.Event()
    async with web_server(plain(b""), tls=serving) as server:
        guarded = outbound(authority, HERE)
        slow = [
            asyncio.create_task(get(guarded, server, host="slow.example", by=f"person {number}", crowd="people"))
            for number in range(LOOK_UPS)
        ]
        await until(lambda: len(resolver.asked) == LOOK_UPS_OF_A_CROWD)
        await get(guarded, server, by="tenant")
        assert resolver.asked == ["slow.example"] * LOOK_UPS_OF_A_CROWD + [NAME]
        release.set()
        await asyncio.gather(*slow, return_exceptions=True)
        await guarded.close()


async def test_a_lookup_that_nobody_waits_for_still_counts(
    authority: CertificateAuthority, serving: ssl.SSLContext, resolver: Resolver
) -> None:
    resolver.slow["slow.example"] = release = threading.Event()
    async with web_server(plain(b""), tls=serving) as server:
        guarded = outbound(authority, HERE, outbound_seconds=0.3)
        for _ in range(LOOK_UPS_EACH):
            await failed(guarded, "https://slow.example/")
        await failed(guarded, f"https://{NAME}:{server.port}/")
        assert resolver.asked == ["slow.example"] * LOOK_UPS_EACH
        release.set()
        patient = outbound(authority, HERE)
        await get(patient, server, by="b")
        await guarded.close()
