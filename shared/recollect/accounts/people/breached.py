"""Passwords that are known to have been stolen somewhere, as a service of Pwned Passwords' kind tells them.

Only the first five hex digits of the password's SHA-1 leave; the service answers with the rest of every hash that
begins so and, since padding is asked for, with about as many lines whatever they are
(https://haveibeenpwned.com/API/v3#PwnedPasswords). Who listens, and the service itself, learn nothing of use.
"""

import asyncio
import hashlib

import structlog

from recollect.platform.outbound import Outbound, OutboundFailed
from recollect.settings import Settings

PREFIX = 5
"""Hex digits that are told."""

MAX_ANSWER_BYTES = 512 * 1024
"""Longest answer that is read: today's have up to 2,000 lines of 40 bytes."""

_ASKED_BY = "breached passwords"

log = structlog.get_logger(__name__)


class BreachedPasswords:
    """Asks the service."""

    def __init__(self, outbound: Outbound, url: str, *, seconds: float) -> None:
        self._outbound, self._url, self._seconds = outbound, url.rstrip("/"), seconds

    @classmethod
    def of(cls, settings: Settings, outbound: Outbound) -> "BreachedPasswords | None":
        """The service of the settings; None where no password is looked up."""
        if settings.breached_passwords_url is None:
            return None
        return cls(outbound, settings.breached_passwords_url, seconds=settings.breached_passwords_seconds)

    async def holds(self, password: str) -> bool:
        """Whether the password is among them. False where the service does not answer in time, which the log tells."""
        digest = hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper()
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._outbound.get(
                    f"{self._url}/{digest[:PREFIX]}",
                    asked_by=_ASKED_BY,
                    accept="text/plain",
                    headers={"Add-Padding": "true"},
                    max_bytes=MAX_ANSWER_BYTES,
                )
        except (OutboundFailed, TimeoutError) as error:
            log.warning("password not looked up among breached ones", reason=type(error).__name__)
            return False
        if answer.status != 200:
            log.warning("password not looked up among breached ones", reason=f"status {answer.status}")
            return False
        return _tells(answer.body, digest[PREFIX:])


def _tells(body: bytes, rest: str) -> bool:
    """Whether a line is of that hash; lines that were seen no time are padding."""
    for line in body.decode("ascii", "replace").upper().splitlines():
        suffix, _, times = line.strip().partition(":")
        if suffix == rest:
            return times.strip("0") != ""
    return False
