"""The address by which clients reach the gateway: one scheme, one host, one port, and nothing after them.

A path prefix is refused. Cookies and the origin of a page belong to a whole host: other services at the same host could
read and do everything that ours can, and the well-known addresses of OAuth are at a host's root.
"""

import re
from ipaddress import IPv6Address
from urllib.parse import urlsplit

_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - read, not bound
_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")


def local_url(host: str, port: int) -> str:
    """The address by which a client on this machine reaches a server that listens on `host:port`."""
    return f"http://{bracketed(_EVERY_ADDRESS.get(host, host))}:{port}"


def read_public_url(text: str) -> str:
    """The canonical form: lower case, no default port, no slash at the end. Raises ValueError for anything else."""
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise ValueError("it may contain printable ASCII only; write a name with other letters in Punycode")
    parts = urlsplit(text)
    if parts.scheme not in _DEFAULT_PORTS:
        raise ValueError("it must begin with https:// or http://")
    if parts.path not in ("", "/") or any(sign in text for sign in "?#@"):
        raise ValueError("it may have scheme, host and port only: no path, query, fragment or user")
    host, port = _host(parts.hostname or ""), parts.port
    port_suffix = "" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{bracketed(host)}{port_suffix}"


def canonical_host(host: str) -> str:
    """A Host header, or a name of hosts, with an IPv6 address in its short form; anything else as it is."""
    address, closed, rest = host[1:].partition("]")
    try:
        return f"[{_ipv6(address)}]{rest}" if closed and host.startswith("[") else host
    except ValueError:
        return host


def _ipv6(text: str) -> str:
    """The short form of an IPv6 address. Raises ValueError, also for one with a zone: that means nothing elsewhere."""
    address = IPv6Address(text)
    if address.scope_id is not None:
        raise ValueError("an address with a zone (%) means something on one machine only")
    return str(address)


def _host(host: str) -> str:
    if ":" in host:
        return _ipv6(host)
    if not _HOST_NAME.fullmatch(host):
        raise ValueError(f"{host!r} is not the name of a host")
    return host


def bracketed(host: str) -> str:
    """The name of a host, an IPv6 address in brackets, as addresses hold it."""
    return f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host
