"""People, their sessions, and the rules for addresses and names."""

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from recollect.caller import Rates, Role
from recollect.errors import InvalidInput
from recollect.text.control_characters import controls

MAX_EMAIL = 254
"""The most characters of an address, as in SMTP (RFC 5321, 4.5.3.1.3)."""

MAX_NAME = 200
MAX_USER_AGENT = 200
"""The most characters of a browser's user agent that are stored."""

_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s.]+(\.[^@\s.]+)*")


@dataclass(frozen=True, slots=True)
class Person:
    """A person who may sign in."""

    id: UUID
    email: str
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Credentials:
    """The data for a sign-in by password; `password_hash` None where the person has no password.

    `password_changes`: how often they changed it, which shows whether this hash is still current. `confined_to` and
    `tenant` (its slug): the one tenant of which the account is, while nobody has proven that the address is theirs.
    """

    id: UUID
    email: str
    name: str
    password_hash: str | None
    password_changes: int
    confined_to: UUID | None = None
    tenant: str | None = None


class ProofOutcome(StrEnum):
    """The result of making an account one of no single tenant; UNKNOWN: it is in another cell."""

    PROVEN = "proven"
    TAKEN = "taken"
    UNKNOWN = "unknown"


class DeletionOutcome(StrEnum):
    """The result of deleting an account in a cell."""

    NOBODY = "nobody"
    MEMBER = "member"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class PersonSession:
    """A valid session, and the person who signed in.

    `confined_to`: the one tenant for which it is valid, where that tenant's identity provider began it (`by_provider`)
    or the account is of that tenant, since nobody has proven its address; None: valid for all tenants of the person.
    `read_at`: when it was read, by the clock of the database, which set the other times.
    """

    id: UUID
    person_id: UUID
    email: str
    name: str
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime
    confined_to: UUID | None
    by_provider: bool = False
    read_at: datetime | None = field(default=None, compare=False)

    def is_older_than(self, age: timedelta) -> bool:
        """Whether the person signed in longer ago than this."""
        return self.read_at is None or self.read_at - self.created_at > age

    @property
    def account_tenant(self) -> UUID | None:
        """The tenant of which the account is, and in whose cell it is; None: of none, and at home."""
        return None if self.by_provider else self.confined_to


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A sign-in as its person sees it in a list."""

    id: UUID
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    user_agent: str
    address: str


@dataclass(frozen=True, slots=True)
class Browser:
    """Where a sign-in comes from, as its person recognises it."""

    user_agent: str
    address: str


@dataclass(frozen=True, slots=True)
class IssuedSession:
    """A session at the one moment when its secret can be given to the browser."""

    id: UUID
    person_id: UUID
    secret: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Confinement:
    """The one tenant for which a session is valid, and the tenant's identity provider that began it.

    `provider_id` None: the account is of this tenant, since nobody has proven that its address is theirs.
    """

    tenant_id: UUID
    provider_id: UUID | None

    @classmethod
    def of_account(cls, tenant_id: UUID | None) -> "Confinement | None":
        """The confinement of an account's own sessions; `tenant_id`: the one tenant of which it is, if any."""
        return None if tenant_id is None else cls(tenant_id, None)


@dataclass(frozen=True, slots=True)
class Membership:
    """A tenant of which a person is a member."""

    tenant_id: UUID
    tenant: str
    tenant_name: str
    tenant_status: str
    role: Role
    plan: str
    requests_per_minute: int | None
    key_requests_per_minute: int | None
    concurrent_calls: int | None

    @property
    def rates(self) -> Rates:
        """The rates of its plan."""
        return Rates(self.requests_per_minute, self.key_requests_per_minute, self.concurrent_calls)


def normalized_email(email: str) -> str:
    """An address as it is stored and compared: without white space around it, in lower case. Raises InvalidInput."""
    email = email.strip().lower()
    if len(email) > MAX_EMAIL or not _EMAIL.fullmatch(email) or controls(email):
        raise InvalidInput("This is not an e-mail address", path="email")
    return email


def person_name(name: str) -> str:
    """A person's name without white space around it; raises InvalidInput for a name that is not allowed."""
    if not 1 <= len(name.strip()) <= MAX_NAME:
        raise InvalidInput(f"A name has 1 to {MAX_NAME} characters", path="name")
    if controls(name):
        raise InvalidInput("A name has no control characters, such as tabs or line breaks", path="name")
    return name.strip()
