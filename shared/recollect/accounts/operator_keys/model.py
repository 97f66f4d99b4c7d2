"""A key of an operator. It has the form of a tenant's key but another kind; neither is accepted for the other."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

KIND = "operator"
MAX_LIFETIME = timedelta(days=366)
"""How long a key is valid, at most: no key is valid for ever."""

SESSION_LIFETIME = timedelta(hours=1)
"""How long a session at the pages of operators is valid, at most, as the table has it."""

SUBJECT = "operator_key:"
"""The prefix of an actor that is a key; its id follows."""


@dataclass(frozen=True, slots=True)
class OperatorKey:
    """A key as it is listed, without its secret."""

    id: UUID
    name: str
    hint: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class SessionKey:
    """The key by which the operator of a session signed in."""

    id: UUID
    name: str

    @property
    def actor(self) -> str:
        """Its holder, as the log of operators records them."""
        return f"{SUBJECT}{self.id}"


@dataclass(frozen=True, slots=True)
class IssuedOperatorSession:
    """A new session of an operator's browser: its secret, which is nowhere else, and when it ends."""

    secret: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class FoundKey:
    """What a credential check needs to know of a key."""

    id: UUID
    name: str
    expires_at: datetime
    revoked_at: datetime | None
    read_at: datetime

    @property
    def is_valid(self) -> bool:
        """Whether it was neither revoked nor expired when it was read, by the database's clock."""
        return self.revoked_at is None and self.expires_at > self.read_at
