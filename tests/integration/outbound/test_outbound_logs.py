"""The log says why a request to a tenant's address failed and who asked; no address, and nothing of an answer."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from recollect.outbound import http_client
from recollect.outbound.http_client import Outbound, OutboundFailed
from recollect.outbound.txt_records import TextRecords
from recollect.settings import Settings
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.support.web_server import CertificateAuthority, plain, web_server

CHOSEN = "zyxophane.example"
HERE = "127.0.0.1"
TENANT = uuid4()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses of every host."""
    addresses = [HERE]
    monkeypatch.setattr(http_client, "_system_addresses", lambda _: list(addresses))
    return addresses


async def logged(authority: CertificateAuthority, url: str) -> str:
    """The reason in the log for the failure of a request, after the rest of the log was checked."""
    outbound = Outbound(Settings(outbound_networks=[HERE], outbound_seconds=60.0), tls=authority.trusting())
    with capture_logs() as logs, pytest.raises(OutboundFailed):
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            await outbound.post(url, b"body", on_behalf_of=TENANT, headers={"Content-Type": "text/plain"})
    await outbound.close()
    (entry,) = logs
    assert set(entry) == {"event", "log_level", "on_behalf_of", "reason"}
    assert entry["on_behalf_of"] == str(TENANT)
    return chosen_by_nobody(entry["reason"])


def chosen_by_nobody(reason: str) -> str:
    assert not any(part in reason.lower() for part in ("zyxophane", "token=hidden", HERE, "strangers-words")), reason
    return reason


@pytest.mark.proves("security: outbound-logs")
async def test_a_certificate_of_another_name(authority: CertificateAuthority, found: list[str]) -> None:
    """The message of OpenSSL quotes the name for which the certificate is not valid."""
    async with web_server(plain(b""), tls=authority.serving("other.example")) as server:
        reason = await logged(authority, f"https://{CHOSEN}:{server.port}/token=hidden")
    assert reason == "ConnectError: Hostname mismatch"


async def test_a_certificate_of_a_stranger(authority: CertificateAuthority, found: list[str], tmp_path: Path) -> None:
    async with web_server(plain(b""), tls=CertificateAuthority(tmp_path).serving(CHOSEN)) as server:
        assert "certificate" in await logged(authority, f"https://{CHOSEN}:{server.port}/token=hidden")


async def test_no_tls_at_all(authority: CertificateAuthority, found: list[str]) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 zyxophane strangers-words\r\n")
        writer.close()

    async with await asyncio.start_server(greet, HERE, 0) as server:
        port = server.sockets[0].getsockname()[1]
        reason = await logged(authority, f"https://{CHOSEN}:{port}/")
    assert reason.startswith("ConnectError: ")


@pytest.mark.proves("security: outbound-logs")
async def test_a_refused_connection(authority: CertificateAuthority, found: list[str]) -> None:
    with socket.create_server((HERE, 0)) as closed:
        port = closed.getsockname()[1]
    assert await logged(authority, f"https://{CHOSEN}:{port}/token=hidden") == "ConnectError: Connection refused"


async def test_an_address_within_a_network(authority: CertificateAuthority, found: list[str]) -> None:
    found[:] = ["10.0.0.1"]
    assert "public internet" in await logged(authority, f"https://{CHOSEN}/token=hidden")


@pytest.mark.proves("security: outbound-logs")
async def test_a_name_that_is_unknown_or_too_long(authority: CertificateAuthority, subtests: pytest.Subtests) -> None:
    for host in ("zyxophane.invalid", "zyxophane" * 8 + ".example", "zyxophane..example", "ZYXOPHANE-\u2603.invalid"):
        with subtests.test(host):
            assert await logged(authority, f"https://{host}/token=hidden")


@pytest.mark.proves("security: outbound-logs")
async def test_an_answer_that_is_no_http(authority: CertificateAuthority, found: list[str]) -> None:
    """The message of the HTTP library quotes the line."""

    async def answering(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 zyxophane strangers-words\r\n\r\n")
        await writer.drain()

    async with web_server(answering, tls=authority.serving(CHOSEN)) as server:
        assert await logged(authority, f"https://{CHOSEN}:{server.port}/") == "RemoteProtocolError"


@pytest.mark.proves("security: outbound-logs")
async def test_a_look_up_of_records() -> None:
    """The messages of the DNS library quote the name."""

    class Failing(asyncio.DatagramProtocol):
        def connection_made(self, transport: Any) -> None:
            self.send: Callable[..., None] = transport.sendto

        def datagram_received(self, data: bytes, address: Any) -> None:
            self.send(data[:2] + b"\x81\x82" + data[4:], address)  # SERVFAIL

    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Failing, (HERE, 0))
    port = transport.get_extra_info("sockname")[1]
    with capture_logs() as logs:
        assert await TextRecords(Settings(dns_servers=[f"{HERE}:{port}"])).look_up(CHOSEN, on_behalf_of=TENANT) is None
    transport.close()
    (entry,) = logs
    assert set(entry) == {"event", "log_level", "on_behalf_of", "reason"}
    assert entry["on_behalf_of"] == str(TENANT)
    assert entry["reason"] in ("NoNameservers", "LifetimeTimeout")
