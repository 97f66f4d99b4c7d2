"""TXT records of the DNS at names that somebody else chose.

The resolver of the deployment is asked and nobody else, so that no address is reached by it. Time and number are
bounded.
"""

from collections.abc import Hashable

import dns.asyncresolver
import dns.exception
import dns.resolver
import structlog

from recollect.platform.shares import Shares
from recollect.platform.slots import elsewhere
from recollect.settings import Settings

SECONDS = 5.0
"""For an answer, all in all."""

AT_ONCE = 20
"""Questions of a process that are under way at once."""

AT_ONCE_EACH = 2
"""Those on behalf of one caller."""

MAX_RECORDS = 50
"""Records of one name that are read."""

log = structlog.get_logger(__name__)


class TextRecords:
    """Asks the DNS for TXT records. One for a process."""

    def __init__(self, settings: Settings) -> None:
        self._servers = settings.dns_servers
        self._questions, self._questions_each = Shares(AT_ONCE), Shares(AT_ONCE_EACH)

    async def at(self, name: str, *, asked_by: Hashable) -> frozenset[str] | None:
        """What the TXT records at a name say, each as one text; none where there are none.

        None where the DNS cannot be asked now. `asked_by`: on whose behalf, whose share it takes.
        """
        try:
            async with (
                elsewhere(),
                self._questions_each.held(asked_by, wait_seconds=SECONDS),
                self._questions.held(None, wait_seconds=SECONDS),
            ):
                answer = await self._resolver().resolve(name, "TXT", lifetime=SECONDS, search=False)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return frozenset()
        except (dns.exception.DNSException, OSError, ValueError) as error:  # TimeoutError is an OSError.
            log.info("look-up of a TXT record failed", name=name, reason=f"{type(error).__name__}: {error}")
            return None
        return frozenset(b"".join(record.strings).decode("ascii", "replace") for record in list(answer)[:MAX_RECORDS])

    def _resolver(self) -> dns.asyncresolver.Resolver:
        resolver = dns.asyncresolver.Resolver(configure=not self._servers)
        if self._servers:
            resolver.nameservers = [server.rpartition(":")[0] for server in self._servers]
            resolver.nameserver_ports = {
                server.rpartition(":")[0]: int(server.rpartition(":")[2]) for server in self._servers
            }
        return resolver
