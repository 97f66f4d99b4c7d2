"""An SMTP server on loopback that keeps received messages, and a gateway that sends its mail there."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope
from pydantic import SecretStr

from recollect.settings import Settings
from tests.support.gateway import RunningGateway, serving


@dataclass
class MailServer:
    """The received envelopes, in order. `refusal`: the answer to a message instead of accepting it.

    `silent`: it does not answer a message. `most`: the maximum of simultaneous connections.
    """

    port: int = 0
    refusal: str | None = None
    silent: bool = False
    most: int = 0
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    envelopes: list[Envelope] = field(default_factory=list)
    _taken: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def messages(self) -> list[EmailMessage]:
        """The received messages, parsed."""
        return [_read(envelope) for envelope in self.envelopes]

    async def wait_for_messages(self, count: int) -> None:
        async with self._taken:
            await self._taken.wait_for(lambda: len(self.envelopes) >= count)

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:
        if self.silent:
            await asyncio.Event().wait()
        if self.refusal is not None:
            return self.refusal
        async with self._taken:
            self.envelopes.append(envelope)
            self._taken.notify_all()
        return "250 OK"

    def authenticate(self, server: Any, session: Any, envelope: Any, mechanism: str, login: Any) -> AuthResult:
        self.logins.append((login.login, login.password))
        return AuthResult(success=True)


@asynccontextmanager
async def mail_server(
    *, tls: ssl.SSLContext | None = None, starttls: ssl.SSLContext | None = None
) -> AsyncIterator[MailServer]:
    """A server for as long as the context lasts; with TLS from the first byte, or offering STARTTLS."""
    told = MailServer()
    loop = asyncio.get_running_loop()
    connections: set[asyncio.BaseTransport] = set()

    class Connection(SMTP):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self._tracked = transport
            connections.add(transport)
            told.most = max(told.most, len(connections))
            super().connection_made(transport)

        def connection_lost(self, error: Exception | None) -> None:
            connections.discard(self._tracked)
            super().connection_lost(error)

    def connected() -> SMTP:
        return Connection(
            told,
            hostname="localhost",
            loop=loop,
            tls_context=starttls,
            require_starttls=starttls is not None,
            authenticator=told.authenticate,
            auth_require_tls=tls is None,
        )

    server = await loop.create_server(connected, "127.0.0.1", 0, ssl=tls)
    told.port = server.sockets[0].getsockname()[1]
    try:
        yield told
    finally:
        server.close()
        for each in list(connections):
            each.close()


@pytest.fixture
async def mail() -> AsyncIterator[MailServer]:
    async with mail_server() as server:
        yield server


@pytest.fixture
def sending(settings: Settings, mail: MailServer) -> Settings:
    """The settings of a gateway that sends mail."""
    update = {"mail_url": SecretStr(f"smtp://127.0.0.1:{mail.port}"), "mail_from": "memory@example.com"}
    return settings.model_copy(update=update)


@pytest.fixture
def mailing(sending: Settings) -> Iterator[RunningGateway]:
    """A gateway that sends mail."""
    with serving(sending) as gateway:
        yield gateway


def _read(envelope: Envelope) -> EmailMessage:
    assert isinstance(envelope.content, bytes)
    message = message_from_bytes(envelope.content, policy=default)
    assert isinstance(message, EmailMessage)
    return message
