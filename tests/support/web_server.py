"""A server on loopback whose answers tests set byte by byte, with or without TLS, and certificates for it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Answering = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
"""Writes the answer to a request, from its line and headers."""


@dataclass
class WebServer:
    """The record of a server: the number of connections, and each request with its body."""

    port: int = 0
    connections: int = 0
    requests: list[tuple[bytes, bytes]] = field(default_factory=list)
    asked: asyncio.Condition = field(default_factory=asyncio.Condition)

    def heads(self) -> list[str]:
        """The first line and headers of each request, in lower case."""
        return [head.decode().lower() for head, _ in self.requests]

    async def wait_for_requests(self, count: int) -> None:
        async with self.asked:
            await self.asked.wait_for(lambda: len(self.requests) >= count)


def plain(body: bytes, *headers: str, status: str = "200 OK") -> Answering:
    """A complete answer."""
    lines = "".join(f"{header}\r\n" for header in headers)
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode()

    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(head + body)

    return answer


@asynccontextmanager
async def web_server(
    answer: Answering, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[WebServer]:
    """A server with one request per connection, for as long as the context lasts."""
    told = WebServer()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told.connections += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(_length(head))
            async with told.asked:
                told.requests.append((head, body))
                told.asked.notify_all()
            await answer(head, writer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # The client disconnected.
        finally:
            writer.close()

    server = await asyncio.start_server(connected, host, port, ssl=tls)
    told.port = server.sockets[0].getsockname()[1]
    try:
        yield told
    finally:
        server.close()


def _length(head: bytes) -> int:
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return int(lengths[0]) if lengths else 0


class CertificateAuthority:
    """Issues certificates that `trusting` contexts accept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Authority {folder.name}")])
        basics = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = self._signed(self._name, self._key.public_key(), basics)

    @property
    def pem(self) -> bytes:
        """The certificate of the authority itself, for clients that trust it."""
        return _pem(self._certificate)

    def trusting(self) -> ssl.SSLContext:
        """A context for a client that trusts only this authority."""
        return ssl.create_default_context(cadata=self.pem.decode())

    def serving(self, *names: str) -> ssl.SSLContext:
        """A context for a server with these names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        certificate = self._signed(subject, key.public_key(), x509.SubjectAlternativeName(_general_names(names)))
        file = self._folder / f"{names[0]}.pem"
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(secret + _pem(certificate))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        own = x509.SubjectKeyIdentifier.from_public_key(key)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
            .add_extension(own, critical=False)
            .add_extension(issuer, critical=False)
            .sign(self._key, hashes.SHA256())
        )


def trusted_authority(folder: Path, patch: pytest.MonkeyPatch) -> CertificateAuthority:
    """An authority that everything started from now on trusts exclusively, until the patch is undone."""
    authority = CertificateAuthority(folder)
    bundle = folder / "bundle.pem"
    bundle.write_bytes(authority.pem)
    patch.setenv("SSL_CERT_FILE", str(bundle))
    return authority


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _general_names(names: Sequence[str]) -> list[x509.GeneralName]:
    return [_general_name(name) for name in names]


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
