"""Domains that a tenant claims: their form, and the DNS record that proves one."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from recollect.caller import Role
from recollect.errors import InvalidInput

MAX_DOMAINS = 20
"""Domains of one tenant, at most."""

MAX_DOMAIN = 253
RECORD = "_recollect"
"""The label of the record under the domain."""

FRESH = timedelta(days=1)
"""How long a proof counts before the DNS is queried again."""

JOINING_ROLES = (Role.MEMBER, Role.READER)
"""The roles in which people may join by a domain: no role that manages the tenant."""

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"(?:{_LABEL}\.)+[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])")


@dataclass(frozen=True, slots=True)
class EmailDomain:
    """A claim. `verified_at` None: it is not proven, or no longer; `checked_at`: when the DNS last proved it."""

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
        """The name of the TXT record."""
        return f"{RECORD}.{self.domain}"

    @property
    def record_value(self) -> str:
        """The value of the TXT record."""
        return f"recollect-domain={self.secret}"


def normalized_domain(domain: str) -> str:
    """A domain as it is stored and compared; only the ASCII form of other letters is accepted. Raises InvalidInput."""
    domain = domain.strip().lower()
    if len(domain) > MAX_DOMAIN or not _DOMAIN.fullmatch(domain):
        raise InvalidInput("This is not a domain such as example.com", path="domain")
    return domain


def joining_role(role: Role) -> Role:
    """The role, if people may join by themselves in it; raises InvalidInput."""
    if role not in JOINING_ROLES:
        raise InvalidInput("The role of people who join by a domain must be member or reader", path="role")
    return role


def domain_of(email: str) -> str:
    """The part of an address after the @."""
    return email.rpartition("@")[2]
