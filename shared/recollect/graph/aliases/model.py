"""The names of entities."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

MAX_WORDED, MAX_CHARACTERS = 500, 4_000
"""Aliases of an entity, and characters of these, whose words its passages have, at most: the queries say so, too."""


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity's name, its author, its expiry, and its other names in one text (`aliases`).

    Of many other names, the first MAX_WORDED in order, and of these the first MAX_CHARACTERS: each passage of the
    entity has their words. A question that names the entity by one of the others finds it, too.
    """

    id: UUID
    name: str
    created_by: str
    expires_at: datetime | None
    aliases: str | None


@dataclass(frozen=True, slots=True)
class FoundEntity(NamedEntity):
    """An entity found by a name, the one that was asked for (`wanted`).

    `found_by_name_only`: it has no lasting text by which search would find it.
    """

    wanted: str
    found_by_name_only: bool
    status: str
