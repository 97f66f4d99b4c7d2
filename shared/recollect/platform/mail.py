"""Mail: one plain-text message to one person, by the SMTP server of the settings.

A message is sent once, on a connection of its own, within a bounded time, and a process sends few at once. Nothing that
others chose stands in a header but the address, which has the form that browsers take for one (HTML, 4.10.5.1.5): it
can begin no other header, name no second person, and end no command.
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

from recollect.mail_url import MailSecurity, MailServer, read_mail_url
from recollect.platform.shares import Shares
from recollect.platform.slots import elsewhere
from recollect.printable import controls
from recollect.settings import Settings

AT_ONCE = 4
"""Messages that a process sends at once; others wait, within the time of theirs."""

MAX_WAITING = 100
"""Messages that wait or are sent; one more is not taken."""

FAREWELL_SECONDS = 1.0
"""How long a server that took a message may take to say goodbye."""

MAX_SUBJECT = 200
MAX_TEXT = 10_000
"""Characters of a message."""

_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@"
    r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)

log = structlog.get_logger(__name__)


class MailFailed(Exception):
    """A message was not sent, as far as is known. It never says why: the log does."""

    def __init__(self) -> None:
        super().__init__("The message could not be sent")


@dataclass(frozen=True, slots=True)
class Letter:
    """A message to one address."""

    to: str
    subject: str
    text: str


def is_sendable(address: str) -> bool:
    """Whether mail is sent to such an address: one of plain ASCII, as every server takes."""
    return _ADDRESS.fullmatch(address) is not None


class Mailer:
    """Sends letters. One for a process: its bounds are those of all."""

    def __init__(self, server: MailServer, sender: str, *, seconds: float, tls: ssl.SSLContext | None = None) -> None:
        name, address = parseaddr(sender)
        self._server, self._seconds, self._tls = server, seconds, tls or ssl.create_default_context()
        self._sender = Address(display_name=name, addr_spec=address)
        self._places = Shares(AT_ONCE)

    @classmethod
    def of(cls, settings: Settings, *, tls: ssl.SSLContext | None = None) -> "Mailer | None":
        """The one of the settings; None where no mail is sent."""
        if settings.mail_url is None or settings.mail_from is None:
            return None
        server = read_mail_url(settings.mail_url.get_secret_value())
        return cls(server, settings.mail_from, seconds=settings.mail_seconds, tls=tls)

    async def send(self, letter: Letter) -> None:
        """Hand a letter to the server; raises MailFailed, also where the address is none that mail can be sent to."""
        try:
            message = self._message(letter)
            async with (
                elsewhere(),
                asyncio.timeout(self._seconds),
                self._places.held(None, wait_seconds=self._seconds, queue=MAX_WAITING - AT_ONCE),
            ):
                await self._hand_over(message, letter.to)
        except (aiosmtplib.SMTPException, HeaderParseError, ValueError, OSError) as error:
            # No text of the server's: it may repeat whom the letter is for.
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
            local_hostname=self._sender.domain,  # Else the system's resolver is asked, and holds everybody up.
            timeout=self._seconds,
            use_tls=server.security is MailSecurity.TLS,
            start_tls=server.security is MailSecurity.STARTTLS,
            tls_context=None if server.security is MailSecurity.NONE else self._tls,
        )
        try:
            await client.connect()
            await client.send_message(message, sender=self._sender.addr_spec, recipients=[to])
            with suppress(aiosmtplib.SMTPException, OSError):  # It is taken already.
                await client.quit(timeout=FAREWELL_SECONDS)
        finally:
            client.close()  # Not as a context: that would wait for a farewell also when nobody waits any more.

    def _message(self, letter: Letter) -> EmailMessage:
        if not is_sendable(letter.to):
            raise ValueError("no address to which mail can be sent")
        if controls(letter.subject) or len(letter.subject) > MAX_SUBJECT or len(letter.text) > MAX_TEXT:
            raise ValueError("no subject, or too long a text")
        message = EmailMessage(policy=SMTP)
        message["From"] = self._sender
        message["To"] = Address(addr_spec=letter.to)
        message["Subject"] = letter.subject
        message["Date"] = format_datetime(datetime.now(UTC))
        message["Message-ID"] = make_msgid(domain=self._sender.domain)
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody's holiday notice answers it.
        message.set_content(letter.text)
        return message
