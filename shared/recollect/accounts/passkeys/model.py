"""Passkeys, and for whom they are made: us, by the host and the origin of the public address."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

from recollect.errors import InvalidInput
from recollect.printable import controls

MAX_NAME = 100
MAX_PASSKEYS = 20
"""Passkeys of a person."""

MAX_CREDENTIAL = 16 * 1024
"""Characters of what a browser answers."""

CHALLENGE_LIFETIME = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class PasskeySite:
    """Whom a passkey is for: the host alone (`id`), and the origin of the page that asks for it."""

    id: str
    origin: str

    @classmethod
    def of(cls, base_url: str) -> "PasskeySite":
        """Us, by the public address."""
        return cls(urlsplit(base_url).hostname or "", base_url)


@dataclass(frozen=True, slots=True)
class Passkey:
    """A passkey as its person sees it in a list."""

    id: UUID
    name: str
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoredPasskey:
    """What a sign-in is verified with."""

    id: UUID
    person_id: UUID
    public_key: bytes
    sign_count: int


def passkey_name(name: str) -> str:
    """The name, if a passkey may be called so; raises InvalidInput."""
    if not 1 <= len(name.strip()) <= MAX_NAME or controls(name):
        raise InvalidInput(f"A passkey's name has 1 to {MAX_NAME} characters, none of them control characters")
    return name.strip()
