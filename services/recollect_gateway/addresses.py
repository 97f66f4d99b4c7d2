"""Addresses of clients: which count as one, and which proxies are believed about others."""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from litestar.connection import ASGIConnection

UNKNOWN = "unknown"
"""Whoever has no address, or none that can be read."""

_SITE_PREFIX = 64
"""Bits of an IPv6 address that a provider hands to one customer: what follows costs nothing to change."""

_REMEMBERED = 4_096


@lru_cache(_REMEMBERED)
def site_of(host: str | None) -> str:
    """What counts as one client: an IPv4 address, or the /64 of an IPv6 one."""
    address = _read(host)
    if address is None:
        return UNKNOWN
    if isinstance(address, IPv6Address):
        return str(ip_network((address, _SITE_PREFIX), strict=False))
    return str(address)


def site_of_client(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """What counts as one client, of a connection."""
    return site_of(connection.client.host if connection.client else None)


class TrustedProxies:
    """The proxies whose `X-Forwarded-For` is believed, by address or network."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(each) for each in addresses]

    def __contains__(self, host: str | None) -> bool:
        address = _read(host)
        return address is not None and any(address in network for network in self._networks)


def _read(host: str | None) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host or "")
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
