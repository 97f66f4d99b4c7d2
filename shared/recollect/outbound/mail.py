"""Mail: one plain-text message to one person, by the SMTP server of the settings.

A message is sent once, on a connection of its own, within a bounded time, and a process sends few at once. The address
is the only text of others in a header. It must have the form that browsers accept (HTML, 4.10.5.1.5), so that it cannot
begin another header, name a second person, or end a command.
"""

import asyncio
import re
import ssl
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid, parseaddr

import aiosmtplib
import structlog

from recollect.fairness.shares import Shares
from recollect.fairness.slots import released_slot
from recollect.settings import Settings
from recollect.settings.addresses.mail_url import MailSecurity, MailServer, read_mail_url
from recollect.text.control_characters import controls

AT_ONCE = 4
"""Messages that a process sends at once; others wait, which counts towards their time limit."""

MAX_WAITING = 100
"""Messages that wait or are being sent; one more is refused."""

QUIT_SECONDS = 1.0
"""How long a server that accepted a message may take to answer QUIT."""

MAX_SUBJECT = 200
MAX_TEXT = 10_000
"""Characters of a message."""

_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@"
    r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)

log = structlog.get_logger(__name__)


class MailFailed(Exception):
    """A message was not sent, as far as is known. Only the log says why."""

    def __init__(self) -> None:
        super().__init__("The message could not be sent")


@dataclass(frozen=True, slots=True)
class Email:
    """A message to one address."""

    to: str
    subject: str
    text: str


def is_sendable(address: str) -> bool:
    """Whether mail can be sent to this address: only plain ASCII, which every server accepts."""
    return _ADDRESS.fullmatch(address) is not None


class Mailer:
    """Sends e-mails. A process has one mailer, whose limits apply to all e-mails of the process."""

    def __init__(self, server: MailServer, sender: str, *, seconds: float, tls: ssl.SSLContext | None = None) -> None:
        name, address = parseaddr(sender)
        self._server, self._seconds, self._tls = server, seconds, tls or ssl.create_default_context()
        self._sender = Address(display_name=name, addr_spec=address)
        self._sending = Shares(AT_ONCE)

    @classmethod
    def of(cls, settings: Settings, *, tls: ssl.SSLContext | None = None) -> "Mailer | None":
        """The mailer that the settings describe; None where they name no server."""
        if settings.mail_url is None or settings.mail_from is None:
            return None
        server = read_mail_url(settings.mail_url.get_secret_value())
        return cls(server, settings.mail_from, seconds=settings.mail_seconds, tls=tls)

    async def send(self, email: Email) -> None:
        """Send an e-mail by the server; raises MailFailed, also where no mail can be sent to the address."""
        try:
            message = self._message(email)
            async with (
                released_slot(),
                asyncio.timeout(self._seconds),
                self._sending.acquire(None, wait_seconds=self._seconds, queue=MAX_WAITING - AT_ONCE),
            ):
                await self._hand_over(message, email.to)
        except (aiosmtplib.SMTPException, HeaderParseError, ValueError, OSError) as error:
            # No text of the server: it may repeat the recipient.
            code = getattr(error, "code", None)
            log.warning("mail not sent", server=self._server.host, reason=type(error).__name__, code=code)
            raise MailFailed from None

    async def _hand_over(self, message: EmailMessage, to: str) -> None:
        server = self._server
        client = aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            username=server.user,
            password=server.password,
            local_hostname=self._sender.domain,  # Otherwise the system's resolver is asked, and blocks the event loop.
            timeout=self._seconds,
            use_tls=server.security is MailSecurity.TLS,
            start_tls=server.security is MailSecurity.STARTTLS,
            tls_context=None if server.security is MailSecurity.NONE else self._tls,
        )
        try:
            await client.connect()
            await client.send_message(message, sender=self._sender.addr_spec, recipients=[to])
            with suppress(aiosmtplib.SMTPException, OSError):  # The message is already accepted.
                await client.quit(timeout=QUIT_SECONDS)
        finally:
            client.close()  # Not as a context manager: that would wait for QUIT even after a cancellation.

    def _message(self, email: Email) -> EmailMessage:
        if not is_sendable(email.to):
            raise ValueError("no address to which mail can be sent")
        if controls(email.subject) or len(email.subject) > MAX_SUBJECT or len(email.text) > MAX_TEXT:
            raise ValueError("no subject, or too long a text")
        message = EmailMessage(policy=SMTP)
        message["From"] = self._sender
        message["To"] = Address(addr_spec=email.to)
        message["Subject"] = email.subject
        message["Date"] = format_datetime(datetime.now(UTC))
        message["Message-ID"] = make_msgid(domain=self._sender.domain)
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no automatic reply answers it.
        message.set_content(email.text)
        return message
