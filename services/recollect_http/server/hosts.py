"""The names of a gateway: the Host headers that it serves, and the addresses by which clients name what it serves."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from recollect.settings import Settings
from recollect.settings.addresses.public_url import canonical_host

_LOOPBACK = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?")
_PORT_OF = {"http": ":80", "https": ":443"}
_DEFAULT_PORT = re.compile(r":(?:80|443)$")


def without_default_port(host: str) -> str:
    """A Host header without the port that browsers leave out."""
    return _DEFAULT_PORT.sub("", host)


@dataclass(frozen=True, slots=True)
class HostNames:
    """Names of hosts: `name`, `name:port`, or `name:*` for any port; `*` stands for all."""

    names: frozenset[str]

    @classmethod
    def of(cls, names: Sequence[str]) -> Self:
        """The names in lower case, as hosts are compared, and IPv6 addresses in their short form."""
        return cls(frozenset(canonical_host(name.lower()) for name in names))

    def has(self, host: str) -> bool:
        """Whether a Host header has one of the names."""
        return "*" in self.names or self.lists(host)

    def lists(self, host: str) -> bool:
        """Whether one of the names is this, apart from `*`."""
        host = canonical_host(host)
        if not self.names.isdisjoint((host, without_default_port(host), f"{host}:*")):
            return True
        name, _, port = host.rpartition(":")
        return f"{name}:*" in self.names and port.isascii() and port.isdigit()


@dataclass(frozen=True, slots=True)
class Origins:
    """The addresses (`scheme://host`) by which clients may name this gateway: the public one, `base`, and others.

    `addresses` are those that the operator gave with their schemes; `hosts` are Host headers that are served as well. A
    proxy may have put such a header in the place of the client's: so it counts as a name only where the public address
    is one of this machine, that is, where there is no proxy. A name of this machine counts with the same port only,
    where no other program listens.
    """

    base: str
    addresses: frozenset[str] = frozenset()
    hosts: HostNames = HostNames(frozenset())

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The addresses of the gateway with these settings."""
        addresses = [entry for entry in settings.allowed_hosts if "://" in entry]
        hosts = [entry for entry in settings.allowed_hosts if "://" not in entry]
        return cls(settings.base_url, frozenset(addresses), HostNames.of(hosts))

    def asked_at(self, host: str) -> str:
        """The address that a client used whose request has this Host header; `base` where that is not known."""
        found = (self.find(f"{scheme}://{host}") for scheme in self._schemes)
        return next(filter(None, found), self.base)

    def page_at(self, host: str) -> str:
        """The origin of a page of this server whose request has this Host header.

        It is the public address, since a proxy may have set the header; only on this machine it is the name that was
        used, of several.
        """
        return self.asked_at(host) if self._local_port is not None else self.base

    @property
    def local_name(self) -> str | None:
        """The public address by the name `localhost`, if it is one of this machine and that name is served; or None."""
        scheme = self.base.partition("://")[0]
        return None if self._local_port is None else self.find(f"{scheme}://localhost{self._local_port}")

    @property
    def _local_port(self) -> str | None:
        """The port of a public address of this machine, with its colon if there is one; None of any other address."""
        match = _LOOPBACK.fullmatch(self.base.partition("://")[2])
        return None if match is None else match[1] or ""

    def find(self, origin: str) -> str | None:
        """The canonical form of an address of this server; None for any other."""
        scheme, _, host = origin.lower().partition("://")
        host = canonical_host(host).removesuffix(_PORT_OF.get(scheme, ":"))
        canonical = f"{scheme}://{host}"
        is_ours = canonical == self.base or canonical in self.addresses or self._is_local_name(scheme, host)
        return canonical if is_ours else None

    @property
    def _schemes(self) -> tuple[str, str]:
        """The scheme of the public address first: the others name the same host with another one, if at all."""
        return ("https", "http") if self.base.startswith("https://") else ("http", "https")

    def _is_local_name(self, scheme: str, host: str) -> bool:
        base_scheme, _, base_host = self.base.partition("://")
        base, asked = _LOOPBACK.fullmatch(base_host), _LOOPBACK.fullmatch(host)
        if base is None or scheme != base_scheme or not self.hosts.lists(host):
            return False
        return asked is None or asked[1] == base[1]
