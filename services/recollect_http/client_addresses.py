"""Addresses of clients: which count as one client, and which proxies are trusted to forward a client's address."""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from litestar.connection import ASGIConnection

UNKNOWN = "unknown"
"""Stands for a missing address, or one that cannot be read."""

_SITE_PREFIX = 64
"""Bits of an IPv6 address that a provider assigns to one customer, who can change the others freely."""

_TRANSLATED = IPv6Network("64:ff9b::/96")
"""The prefix of NAT64 (RFC 6052): behind a translator, all clients of IPv4 have addresses in it. Nobody routes it."""

_REMEMBERED = 4_096


@lru_cache(_REMEMBERED)
def site_of(host: str | None) -> str:
    """The network that counts as one client: an IPv4 address, or the /64 of an IPv6 address.

    An IPv6 address that stands for an IPv4 address counts as that: mapped, translated (NAT64), and 6to4, by which one
    IPv4 address has 65,536 such networks.
    """
    address = _parse(host)
    if address is None:
        return UNKNOWN
    if isinstance(address, IPv6Address):
        address = _translated(address) or address.sixtofour or address
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

    @property
    def networks(self) -> list[str]:
        """The networks in all forms of their addresses: those of IPv4 as a socket of IPv6 sees them, too (RFC 4291)."""
        mapped = [_mapped(network) for network in self._networks if isinstance(network, IPv4Network)]
        return [str(network) for network in (*self._networks, *mapped)]

    def __contains__(self, host: str | None) -> bool:
        address = _parse(host)
        return address is not None and any(address in network for network in self._networks)


def _mapped(network: IPv4Network) -> IPv6Network:
    return IPv6Network(f"::ffff:{network.network_address}/{96 + network.prefixlen}")


def _translated(address: IPv6Address) -> IPv4Address | None:
    return IPv4Address(int(address) & 0xFFFF_FFFF) if address in _TRANSLATED else None


def _parse(host: str | None) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host or "")
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
