"""Look-ups of TXT records in the DNS, of names that others chose.

Only the resolver of the deployment is asked, so that a look-up reaches no other address. Time and number are bounded.
"""

from collections.abc import Hashable

import dns.asyncresolver
import dns.exception
import dns.resolver
import structlog

from recollect.fairness.shares import Shares
from recollect.fairness.slots import released_slot
from recollect.outbound.failure_reasons import reason_of
from recollect.settings import Settings
from recollect.settings.addresses.server import read_server

SECONDS = 5.0
"""How long a look-up may take in all."""

AT_ONCE = 20
"""Look-ups of a process at once."""

AT_ONCE_EACH = 2
"""Look-ups at once on behalf of one caller."""

MAX_RECORDS = 50
"""Records of one name that are read."""

log = structlog.get_logger(__name__)


class TextRecords:
    """Looks TXT records up. A process has one."""

    def __init__(self, settings: Settings) -> None:
        self._servers = settings.dns_servers
        self._lookups, self._lookups_each = Shares(AT_ONCE), Shares(AT_ONCE_EACH)

    async def look_up(self, name: str, *, on_behalf_of: Hashable) -> frozenset[str] | None:
        """The TXT records at a name, each as one text; empty where there are none.

        None where the look-up failed. `on_behalf_of`: the caller whose share the look-up counts in.
        """
        try:
            async with (
                released_slot(),
                self._lookups_each.acquire(on_behalf_of, wait_seconds=SECONDS),
                self._lookups.acquire(None, wait_seconds=SECONDS),
            ):
                answer = await self._resolver().resolve(name, "TXT", lifetime=SECONDS, search=False)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return frozenset()
        except (dns.exception.DNSException, OSError, ValueError) as error:  # TimeoutError is an OSError.
            log.info("TXT record lookup failed", on_behalf_of=str(on_behalf_of), reason=reason_of(error))
            return None
        return frozenset(b"".join(record.strings).decode("ascii", "replace") for record in list(answer)[:MAX_RECORDS])

    def _resolver(self) -> dns.asyncresolver.Resolver:
        resolver = dns.asyncresolver.Resolver(configure=not self._servers)
        if self._servers:
            ports = dict(map(read_server, self._servers))
            resolver.nameservers, resolver.nameserver_ports = list(ports), ports
        return resolver
