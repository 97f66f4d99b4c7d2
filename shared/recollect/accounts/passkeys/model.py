"""Passkeys, and the site for which they are made: the host and the origin of our pages."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from urllib.parse import urlsplit
from uuid import UUID

from recollect.errors import InvalidInput
from recollect.text.control_characters import controls

MAX_NAME = 100
MAX_PASSKEYS = 20
"""Passkeys of a person, at most."""

MAX_CREDENTIAL = 16 * 1024
"""Characters of a browser's response, at most."""

CHALLENGE_LIFETIME = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class PasskeySite:
    """The site for which a passkey is made: the host alone (`id`), and the origin of the page that requests it."""

    id: str
    origin: str

    @classmethod
    def of(cls, origin: str) -> "PasskeySite":
        """The site of pages with this origin."""
        return cls(urlsplit(origin).hostname or "", origin)

    @property
    def is_named(self) -> bool:
        """Whether the host has a name: browsers make no passkeys for an IP address (WebAuthn, 5.1.3)."""
        try:
            ip_address(self.id)
        except ValueError:
            return True
        return False


@dataclass(frozen=True, slots=True)
class Passkey:
    """A passkey as its person sees it in a list."""

    id: UUID
    name: str
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoredPasskey:
    """The stored fields with which a sign-in is verified; `confined_to`: the one tenant of which its account is."""

    id: UUID
    person_id: UUID
    public_key: bytes
    sign_count: int
    confined_to: UUID | None


def passkey_name(name: str) -> str:
    """The name without white space around it, if it is valid; raises InvalidInput."""
    if not 1 <= len(name.strip()) <= MAX_NAME or controls(name):
        raise InvalidInput(f"A passkey's name has 1 to {MAX_NAME} characters and no control characters")
    return name.strip()
