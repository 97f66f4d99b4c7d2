"""OAuth clients, and the addresses to which they may have a browser redirected.

All are public clients (RFC 6749, 2.1): they have no secret, and prove by PKCE that a code is theirs. Nobody has checked
the description that a client gives of itself, above all its name.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Address
from urllib.parse import SplitResult, urlsplit

from recollect.accounts.identity.model import kind_of
from recollect.errors import InvalidInput
from recollect.text.control_characters import controls, hides, is_visible

MAX_NAME = 200
MAX_URI = 2_000
"""Characters of an address that a client names, or of an id that is an address, at most."""

MAX_REDIRECT_URIS = 10
CLIENT_KIND = "client"
"""Ids of clients that registered look like keys of this kind: `rcl_client_…`. They are no secret."""

UNNAMED = "A client without a name"

_PRIVATE_USE = re.compile(r"([a-z][a-z0-9+.-]+):[a-z0-9._~:/?\[\]!$&'()*+,;=%-]+", re.IGNORECASE)
"""An address of a scheme that a program has claimed on its device. One letter is no scheme, but a drive of Windows."""

_OF_BROWSERS = (
    "about blob brave chrome chrome-error chrome-extension chrome-search chrome-untrusted cid data devtools edge feed "
    "file filesystem firefox jar javascript livescript mhtml microsoft-edge mid mocha moz-extension moz-icon "
    "moz-page-thumb opera res resource safari-extension safari-web-extension tbird vbscript view-source vivaldi wyciwyg"
)
"""Schemes of what a browser runs, shows as a page, or opens itself."""

_OF_PROTOCOLS = (
    "acap afp aim cifs coap coaps dav davs dict dns ftp ftps git gopher http https imap imaps ipp ipps irc irc6 ircs "
    "jabber ldap ldaps mms mqtt nfs news nntp pop pop3 pops rdp rsync rtmp rtsp sftp sip sips smb smtp snews snmp ssh "
    "stun svn telnet tftp turn vnc wais ws wss xmpp"
)
"""Schemes by which a code would be sent to another machine; those of web addresses have rules of their own."""

_OF_SYSTEMS = (
    "appinstaller bitcoin callto ethereum facetime facetime-audio geo hcp im intent ipfs ipns itms itms-apps "
    "itms-services jnlp jnlps lightning magnet mailto maps market mk payto search search-ms shell shortcuts skype sms "
    "smsto steam tag tel urn wifi workflow"
)
"""Schemes that start something else: a message, a call, a payment, an installer, a tool with options."""

_NEVER_REDIRECTED_TO = frozenset(f"{_OF_BROWSERS} {_OF_PROTOCOLS} {_OF_SYSTEMS}".split())
"""Schemes that are no client's own, so that a code would go elsewhere or be run."""

_RESERVED_PREFIXES = ("ms-", "web+", "x-apple")
"""Beginnings of schemes that belong to an operating system or, on a device with a browser, to web pages."""


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """A client as it described itself. `refreshes`: it takes refresh tokens.

    `fresh_until`: when its document has to be read again; None for a client that registered.
    """

    id: str
    name: str
    uri: str | None
    redirect_uris: tuple[str, ...]
    refreshes: bool
    fresh_until: datetime | None = None

    def may_redirect_to(self, uri: str) -> bool:
        """Whether the client named exactly this address; the port of a loopback address may differ."""
        return any(_matches(named, uri) for named in self.redirect_uris)

    @property
    def is_document(self) -> bool:
        """Whether the id is the address of a document about the client."""
        return is_document_id(self.id)


def is_document_id(client_id: str) -> bool:
    """Whether this may be the address of a client's document: https with a path, and no part that misleads."""
    parts = _split(client_id)
    return (
        parts is not None
        and len(client_id) <= MAX_URI
        and client_id.startswith("https://")
        and not (parts.username or parts.password or parts.fragment or "#" in client_id)
        and parts.path not in ("", "/")
        and not {".", ".."} & set(parts.path.split("/"))
    )


def is_client_id(client_id: str) -> bool:
    """Whether this can be the id of a client, of either kind."""
    return kind_of(client_id) == CLIENT_KIND or is_document_id(client_id)


def client_name(name: object) -> str:
    """The name without white space around it, if it is valid; raises InvalidInput."""
    if name is None or name == "":
        return UNNAMED
    if not isinstance(name, str) or len(name) > MAX_NAME or _misleads(name) or not is_visible(name):
        raise InvalidInput(
            f"A name has 1 to {MAX_NAME} characters, of which one is visible, and no control or format characters",
            path="client_name",
        )
    return name.strip()


def client_uri(uri: object) -> str | None:
    """The address of a client's own page, if it is valid; raises InvalidInput."""
    if uri is None or uri == "":
        return None
    parts = _split(uri) if isinstance(uri, str) else None
    if parts is None or parts.scheme not in ("https", "http") or len(str(uri)) > MAX_URI or _misleads(str(uri)):
        raise InvalidInput(f"Must be an https address of at most {MAX_URI} characters", path="client_uri")
    return str(uri)


def _misleads(text: str) -> bool:
    """Whether a text that a person sees could look like another."""
    return controls(text) or hides(text)


def redirect_uris(uris: object) -> tuple[str, ...]:
    """The addresses, if a browser may be redirected to each; raises InvalidInput."""
    if not isinstance(uris, list | tuple) or not 1 <= len(uris) <= MAX_REDIRECT_URIS:
        raise InvalidInput(f"Must be a list of 1 to {MAX_REDIRECT_URIS} addresses", path="redirect_uris")
    for number, uri in enumerate(uris):
        if not isinstance(uri, str) or not _may_be_redirected_to(uri):
            raise InvalidInput(
                "Must be an https address, an http address of the client's own machine (127.0.0.1, [::1], "
                "localhost), or one of a scheme of the client's own (com.example.app:/callback), of at most "
                f"{MAX_URI} characters, without a fragment or a user",
                path=f"redirect_uris.{number}",
            )
    return tuple(dict.fromkeys(uris))


def is_loopback(uri: str) -> bool:
    """Whether an address leads to the machine that the browser runs on."""
    parts = _split(uri)
    return parts is not None and parts.scheme in ("http", "https") and _is_loopback_host(parts.hostname or "")


def private_scheme(uri: str) -> str | None:
    """The scheme of an address that leads to a program on the browser's device (RFC 8252, 7.1); None for any other.

    Any program on the device can claim such a scheme; PKCE keeps one that did from using the code.
    """
    match = _PRIVATE_USE.fullmatch(uri)
    scheme = match[1].lower() if match else ""
    is_reserved = scheme in _NEVER_REDIRECTED_TO or scheme.startswith(_RESERVED_PREFIXES)
    return scheme if scheme and not is_reserved else None


def destination(uri: str) -> str:
    """Where an address leads, for people: its host, or the scheme of a program's own and what follows it."""
    parts, scheme = urlsplit(uri), private_scheme(uri)
    return parts.netloc if scheme is None else f"{scheme}://{parts.netloc}" if parts.netloc else f"{scheme}:"


def _may_be_redirected_to(uri: str) -> bool:
    if len(uri) > MAX_URI or not uri.isascii() or controls(uri) or " " in uri:
        return False
    return private_scheme(uri) is not None or _is_web_target(uri)


def _is_web_target(uri: str) -> bool:
    parts = _split(uri)
    if parts is None or parts.username or parts.password or "#" in uri or "\\" in uri or "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback_host(parts.hostname or ""))


def _matches(named: str, requested: str) -> bool:
    if named == requested:
        return True
    if not (is_loopback(named) and _may_be_redirected_to(requested)):
        return False
    return _without_port(named) == _without_port(requested)


def _without_port(uri: str) -> tuple[str, str, str, str]:
    parts = urlsplit(uri)
    return parts.scheme, parts.hostname or "", parts.path, parts.query


def _is_loopback_host(host: str) -> bool:
    if host in ("localhost", "::1"):
        return True
    try:
        return IPv4Address(host).is_loopback
    except ValueError:  # No other form of IPv6 either, such as one with a zone: what is loopback there, differs.
        return False


def _split(uri: str) -> SplitResult | None:
    """The parts of an address that names a host; None for other text."""
    try:
        parts = urlsplit(uri)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if has_host else None
