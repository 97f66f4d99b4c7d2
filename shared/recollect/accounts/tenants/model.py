"""A tenant."""

import re
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.errors import InvalidInput

SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Tenant:
    """One organisation. `slug` is its place in addresses (`/t/{slug}/mcp`); `status` is active or suspended."""

    id: UUID
    slug: str
    name: str
    status: str
    plan: str
    created_at: datetime


def tenant_slug(slug: str) -> str:
    """The slug, if it may name a tenant; raises InvalidInput."""
    if not SLUG.fullmatch(slug):
        raise InvalidInput("A tenant's slug has 1 to 63 of the characters a-z 0-9 -, and no - at its ends", path="slug")
    return slug
