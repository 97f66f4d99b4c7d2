"""Look-ups of passwords that are known to be stolen, in a service like Pwned Passwords.

Only the first five hex digits of the password's SHA-1 are sent. The service answers with the rest of every hash that
begins with them and, since padding is requested, with about the same number of lines each time
(https://haveibeenpwned.com/API/v3#PwnedPasswords). So neither an eavesdropper nor the service learns the password.
"""

import asyncio
import hashlib

import structlog

from recollect.outbound.http_client import Outbound, OutboundFailed
from recollect.settings import Settings

PREFIX = 5
"""Hex digits that are sent."""

MAX_ANSWER_BYTES = 512 * 1024
"""Longest answer that is read: today's have up to 2,000 lines of 40 bytes."""

_ASKED_BY = "breached passwords"

log = structlog.get_logger(__name__)


class BreachedPasswords:
    """A client of the service."""

    def __init__(self, outbound: Outbound, url: str, *, seconds: float) -> None:
        self._outbound, self._url, self._seconds = outbound, url.rstrip("/"), seconds

    @classmethod
    def of(cls, settings: Settings, outbound: Outbound) -> "BreachedPasswords | None":
        """The client for the settings; None where they turn look-ups off."""
        if settings.breached_passwords_url is None:
            return None
        return cls(outbound, settings.breached_passwords_url, seconds=settings.breached_passwords_seconds)

    async def contains(self, password: str) -> bool:
        """Whether the password is a stolen one. False, with a log line, where the service does not answer in time."""
        digest = hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper()
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._outbound.get(
                    f"{self._url}/{digest[:PREFIX]}",
                    on_behalf_of=_ASKED_BY,
                    accept="text/plain",
                    headers={"Add-Padding": "true"},
                    max_bytes=MAX_ANSWER_BYTES,
                )
        except (OutboundFailed, TimeoutError) as error:
            log.warning("breached password check failed", reason=type(error).__name__)
            return False
        if answer.status != 200:
            log.warning("breached password check failed", reason=f"status {answer.status}")
            return False
        return _has_suffix(answer.body, digest[PREFIX:])


def _has_suffix(body: bytes, suffix: str) -> bool:
    """Whether a line has this suffix of a hash; lines with the count 0 are padding."""
    for line in body.decode("ascii", "replace").upper().splitlines():
        line_suffix, _, count = line.strip().partition(":")
        if line_suffix == suffix:
            return count.strip("0") != ""
    return False
