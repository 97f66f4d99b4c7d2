"""Keys and tokens of our form that the database does not have: the log says once in a while what that may mean.

Every request is answered 401 where the key secret is not the one with which the keys were made, and nothing else
fails. Nobody can tell such a key from one that was made up with its checksum: its hash is unknown in both cases. So the
warning names the likely causes, and how many credentials were known in that time: none, where the secret is wrong.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from recollect.accounts.oauth.grants.service import WrongResource
from recollect.errors import CredentialEnded, TenantSuspended, Unauthenticated

LOG_INTERVAL_SECONDS = 3600.0
"""The warning comes at most once in this time, for each process: strangers can cause it, too."""

LIKELY_CAUSES = (
    "RECOLLECT_KEY_SECRET is not the one with which they were made (`recollect keys hashed` counts the keys of the "
    "present one), or RECOLLECT_DATABASE_URL leads to another database or an older backup, or clients make keys up"
)

log = structlog.get_logger(__name__)


class UnknownKeys:
    """What one process knows of credentials that were, and that were not, in the database."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known = self._unknown = 0
        self._silent_until = clock()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch one look-up. One that ended, or whose tenant is suspended, is known."""
        try:
            yield
        except (CredentialEnded, TenantSuspended, WrongResource):
            self._known += 1
            raise
        except Unauthenticated:
            self._unknown += 1
            self._warn()
            raise
        self._known += 1

    def _warn(self) -> None:
        now = self._clock()
        if now < self._silent_until:
            return
        log.warning("unknown keys refused", unknown=self._unknown, known=self._known, likely_causes=LIKELY_CAUSES)
        self._silent_until, self._known, self._unknown = now + LOG_INTERVAL_SECONDS, 0, 0
