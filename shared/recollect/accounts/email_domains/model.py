"""Domains that a tenant claims: what they may be, and the DNS record that proves one."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from recollect.caller import Role
from recollect.errors import InvalidInput

MAX_DOMAINS = 20
"""Of one tenant."""

MAX_DOMAIN = 253
RECORD = "_recollect"
"""The label under the domain at which the record stands."""

FRESH = timedelta(days=1)
"""How long a proof counts without asking the DNS again."""

JOINING_ROLES = (Role.MEMBER, Role.READER)
"""What people become who join by a domain: never anybody who manages."""

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"(?:{_LABEL}\.)+[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])")


@dataclass(frozen=True, slots=True)
class EmailDomain:
    """A claim. `verified_at` None: not proven, or no more; `checked_at`: when the DNS last said so."""

    id: UUID
    domain: str
    secret: str
    role: Role
    created_at: datetime
    created_by: str
    verified_at: datetime | None
    checked_at: datetime | None

    @property
    def record_name(self) -> str:
        """Where the TXT record stands."""
        return f"{RECORD}.{self.domain}"

    @property
    def record_value(self) -> str:
        """What it says."""
        return f"recollect-domain={self.secret}"

    @property
    def is_fresh(self) -> bool:
        """Whether it is proven, and was lately."""
        proven = self.verified_at is not None and self.checked_at is not None
        return proven and self.checked_at is not None and self.checked_at > datetime.now(UTC) - FRESH


def normalized_domain(domain: str) -> str:
    """A domain as it is stored and compared; one with other letters is given as its ASCII form. Raises InvalidInput."""
    domain = domain.strip().lower()
    if len(domain) > MAX_DOMAIN or not _DOMAIN.fullmatch(domain):
        raise InvalidInput("This is no domain, such as example.com", path="domain")
    return domain


def joining_role(role: Role) -> Role:
    """The role, if people may join as that by themselves; raises InvalidInput."""
    if role not in JOINING_ROLES:
        raise InvalidInput("Who joins by a domain becomes a member or a reader", path="role")
    return role


def domain_of(email: str) -> str:
    """What stands behind the @."""
    return email.rpartition("@")[2]
