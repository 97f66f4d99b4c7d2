"""Addresses of clients: which count as one client, and which proxies are trusted to tell the address of another."""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from litestar.connection import ASGIConnection

UNKNOWN = "unknown"
"""Stands for a missing address, or one that cannot be read."""

_SITE_PREFIX = 64
"""Bits of an IPv6 address that a provider assigns to one customer, who can change the others freely."""

_REMEMBERED = 4_096


@lru_cache(_REMEMBERED)
def site_of(host: str | None) -> str:
    """The network that counts as one client: an IPv4 address, or the /64 of an IPv6 address."""
    address = _parse(host)
    if address is None:
        return UNKNOWN
    if isinstance(address, IPv6Address):
        return str(ip_network((address, _SITE_PREFIX), strict=False))
    return str(address)


def site_of_client(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """The site (`site_of`) of a connection's client."""
    return site_of(connection.client.host if connection.client else None)


class TrustedProxies:
    """The proxies whose `X-Forwarded-For` is trusted, by address or network."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(address) for address in addresses]

    def __contains__(self, host: str | None) -> bool:
        address = _parse(host)
        return address is not None and any(address in network for network in self._networks)


def _parse(host: str | None) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host or "")
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
