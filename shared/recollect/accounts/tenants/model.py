"""A tenant."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from recollect.errors import InvalidInput
from recollect.text.control_characters import controls

MAX_NAME = 200
MAX_RETENTION_DAYS = 3650

SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class TenantStatus(StrEnum):
    """What a tenant's credentials are good for."""

    ACTIVE = "active"
    READ_ONLY = "read_only"
    SUSPENDED = "suspended"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Tenant:
    """One organisation. `slug` is its part of addresses (`/t/{slug}/mcp`); `status` is a TenantStatus.

    `retention_days`: how long what was deleted or superseded is kept; None is as the deployment has it. `erase_at`:
    when a deleted tenant is erased. `deletion_due_at`: when one is deleted whose owner requested that; None: no owner
    did. `time_zone`: the zone of its graphs that have none of their own; None: UTC.
    """

    id: UUID
    slug: str
    name: str
    status: str
    plan: str
    created_at: datetime
    retention_days: float | None
    erase_at: datetime | None = None
    time_zone: str | None = None
    deletion_due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TenantFilter:
    """Which tenants to list; what is None does not matter.

    `search`: a part of the slug or the name, in upper or lower case. `status`: a TenantStatus. `deletion_requested`:
    whether an owner requested the deletion.
    """

    search: str | None = None
    status: TenantStatus | None = None
    plan: str | None = None
    deletion_requested: bool | None = None


@dataclass(frozen=True, slots=True)
class TenantPatch:
    """A change of a tenant. `name` None leaves the name; `sets_retention`: `retention_days` is the new retention.

    `sets_time_zone`: so does `time_zone`.
    """

    name: str | None = None
    sets_retention: bool = False
    retention_days: float | None = None
    sets_time_zone: bool = False
    time_zone: str | None = None


def tenant_name(name: str) -> str:
    """The name, if a tenant may be called so, without white space around it; raises InvalidInput."""
    if not 1 <= len(name.strip()) <= MAX_NAME:
        raise InvalidInput(f"A tenant's name has 1 to {MAX_NAME} characters", path="name")
    if controls(name):
        raise InvalidInput("A tenant's name has no control characters, such as tabs or line breaks", path="name")
    return name.strip()


def tenant_slug(slug: str) -> str:
    """The slug, if it may name a tenant; raises InvalidInput."""
    if not SLUG.fullmatch(slug):
        raise InvalidInput(
            "A tenant's slug has 1 to 63 of the characters a-z, 0-9 and -, and does not begin or end with -",
            path="slug",
        )
    return slug
