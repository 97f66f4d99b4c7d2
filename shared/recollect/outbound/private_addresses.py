"""The rule that no request goes to a private address: which addresses belong to the public internet.

It applies to every address that others choose, such as that of a webhook. `http_client` applies it to each address
that a host name leads to.

Python's `is_global` is not used. It follows registries that change from one release to the next, and counts as global
multicast, addresses that carry an IPv4 address inside (mapped, NAT64, 6to4: `64:ff9b::a00:1` is 10.0.0.1 where there is
a translator), and site-local ones. Here an IPv4 address is public unless the registry of special purposes names it, and
an IPv6 address is public only in global unicast outside its special ranges.
"""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

_Networks = tuple[IPv4Network | IPv6Network, ...]


def _networks(networks: Iterable[str]) -> _Networks:
    return tuple(ip_network(network) for network in networks)


_EVERYTHING_PUBLIC = _networks(["0.0.0.0/0", "2000::/3"])
_NOT_PUBLIC = _networks(
    [
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",
        "100.64.0.0/10",  # carriers' NAT; one cloud's metadata
        "127.0.0.0/8",
        "168.63.129.16/32",  # one cloud's platform, at a public address
        "169.254.0.0/16",  # link-local; most clouds' metadata
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments; one cloud's metadata
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # automatic multicast tunnelling
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "2001::/23",  # protocol assignments: Teredo, ORCHID and others
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address inside
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    ]
)
_LOOPBACK = _networks(["127.0.0.0/8", "::1/128"])


class PrivateAddress(Exception):
    """A host has an address that may not be reached, or none. The message is for the log."""


class PublicNetworks:
    """The public internet plus the networks `allowed`, and in any case without those `refused`."""

    def __init__(self, *, allowed: Sequence[str] = (), refused: Sequence[str] = ()) -> None:
        self._allowed = _networks(allowed)
        self._refused = _networks(refused)
        self.loopback_allowed = any(
            network.version == loopback.version and network.overlaps(loopback)
            for network in self._allowed
            for loopback in _LOOPBACK
        )

    def __contains__(self, address: str) -> bool:
        """Whether an address may be reached; False for text that is no address, and for one with a zone."""
        try:
            ip_address(address)
        except ValueError:
            return False
        if "%" in address or _within(address, self._refused):
            return False
        public = _within(address, _EVERYTHING_PUBLIC) and not _within(address, _NOT_PUBLIC)
        return public or _within(address, self._allowed)

    def require_all(self, addresses: Sequence[str]) -> None:
        """Raise PrivateAddress unless a host has addresses and each of them may be reached."""
        if not addresses or not all(address in self for address in addresses):
            raise PrivateAddress("it leads to addresses that are not of the public internet")


def is_loopback(address: str) -> bool:
    """Whether an address is a loopback address in its plain form (not mapped or translated)."""
    return _within(address, _LOOPBACK)


def _within(address: str, networks: _Networks) -> bool:
    parsed = ip_address(address)
    return any(parsed in network for network in networks)
