"""How many connections a gateway has, in all and by address, and which of them give way where there is no more room."""

from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from recollect.settings import Settings
from recollect_http.client_addresses import TrustedProxies, site_of

FEW_CONNECTIONS, RESERVED_SHARE = 8, 0.1
"""The last tenth of a gateway's connections is for addresses that have fewer than this, such as those of probes."""


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """What a connection may cost. `docs/limits.md` explains each bound."""

    connections: int
    connections_per_address: int
    headers: int
    header_bytes: int
    header_seconds: float
    body_seconds: float
    answer_seconds: float

    @classmethod
    def of(cls, settings: Settings) -> "ConnectionBounds":
        """The bounds of the settings."""
        return cls(
            settings.max_connections,
            settings.max_connections_per_address,
            settings.max_headers,
            settings.max_header_bytes,
            settings.header_seconds,
            settings.body_seconds,
            settings.answer_seconds,
        )


class Evictable(Protocol):
    """A connection that can be closed to make room for another."""

    @property
    def is_closable(self) -> bool:
        """Whether it can be now."""

    def make_room(self) -> None:
        """Close it at once."""


class ConnectionLimiter:
    """Counts connections, and closes some that wait for their clients where there is no room for others.

    Trusted proxies bring many clients, so their connections are bounded in all only, and are closed last.
    """

    def __init__(self, bounds: ConnectionBounds, proxies: TrustedProxies) -> None:
        self._bounds = bounds
        self._proxies = proxies
        self._by_site: Counter[str] = Counter()
        self._admitted = 0
        self._waiting = dict[str, dict[Evictable, None]]()
        self._proxy_sites = set[str]()
        self.refusals = 0

    def admit(self, host: str | None) -> bool:
        """Count a connection and admit it, unless there are too many."""
        site, is_proxy = site_of(host), host in self._proxies
        if self._by_site[site] >= self._bounds.connections_per_address and not is_proxy:
            return False
        if not self._has_room(site) and not self._make_room(site):
            return False
        if is_proxy:
            self._proxy_sites.add(site)
        self._by_site[site] += 1
        self._admitted += 1
        return True

    def release(self, host: str | None) -> None:
        """An admitted connection has ended."""
        site = site_of(host)
        self._admitted -= 1
        self._by_site[site] -= 1
        if not self._by_site[site]:
            del self._by_site[site]
            self._proxy_sites.discard(site)

    def note_waiting(self, host: str | None, connection: Evictable) -> None:
        """From now on this connection waits for its client: for a request, or for the rest of one."""
        self._waiting.setdefault(site_of(host), {})[connection] = None

    def note_at_work(self, host: str | None, connection: Evictable) -> None:
        """A request that has come completely is being answered on this connection, or the connection is lost."""
        site = site_of(host)
        waiting = self._waiting.get(site, {})
        waiting.pop(connection, None)
        if not waiting:
            self._waiting.pop(site, None)

    def _has_room(self, site: str) -> bool:
        reserve = 0 if self._by_site[site] < FEW_CONNECTIONS else int(self._bounds.connections * RESERVED_SHARE)
        return self._admitted < self._bounds.connections - reserve

    def _make_room(self, site: str) -> bool:
        """Close the longest waiting connection of the address that has the most, if that is more than this one has."""
        larger = [other for other in self._waiting if self._size_of(other) > self._size_of(site)]
        for other in sorted(larger, key=self._size_of, reverse=True):
            for connection in self._waiting[other]:
                if connection.is_closable:
                    connection.make_room()
                    return True
        return False

    def _size_of(self, site: str) -> int:
        """The connections of an address; a proxy counts as one, since its connections are those of many clients."""
        return min(self._by_site[site], 1) if site in self._proxy_sites else self._by_site[site]
