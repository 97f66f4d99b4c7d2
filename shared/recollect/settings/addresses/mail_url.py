"""The address of a mail server, whose scheme selects TLS from the first byte, STARTTLS, or no TLS.

smtps://user:password@mail.example.com            TLS from the first byte (port 465)
smtp+starttls://user:password@mail.example.com    STARTTLS before anything else (port 587); never without
smtp://127.0.0.1                                  no TLS (port 25), and no password: a local relay
"""

from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import unquote, urlsplit


class MailSecurity(StrEnum):
    """The use of TLS with a mail server, as the scheme of its address."""

    TLS = "smtps"
    STARTTLS = "smtp+starttls"
    NONE = "smtp"


_PORTS = {MailSecurity.TLS: 465, MailSecurity.STARTTLS: 587, MailSecurity.NONE: 25}


@dataclass(frozen=True, slots=True)
class MailServer:
    """A mail server and the login; `user` None: no login."""

    host: str
    port: int
    security: MailSecurity
    user: str | None = None
    password: str | None = field(default=None, repr=False)


def read_mail_url(text: str) -> MailServer:
    """The server of such an address. Raises ValueError, which does not repeat the address: it may hold a password."""
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("it may contain printable ASCII only; write other characters of a password as %XX")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("its host or port cannot be read") from None
    if parts.scheme not in list(MailSecurity):
        raise ValueError(f"it must begin with {', '.join(f'{each}://' for each in MailSecurity)}")
    if not host or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("it may have scheme, user, password, host and port only")
    security = MailSecurity(parts.scheme)
    user, password = (None if part is None else unquote(part) for part in (parts.username, parts.password))
    if (user is None) != (password is None):
        raise ValueError("it needs both user and password, or neither")
    if user is not None and security is MailSecurity.NONE:
        raise ValueError("a password is never sent without TLS: use smtps:// or smtp+starttls://")
    return MailServer(host, port or _PORTS[security], security, user, password)
