"""The names of entities."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity's name, its author, its expiry, and its other names in one text (`aliases`)."""

    id: UUID
    name: str
    created_by: str
    expires_at: datetime | None
    aliases: str | None


@dataclass(frozen=True, slots=True)
class FoundEntity(NamedEntity):
    """An entity found by a name, the one that was asked for (`wanted`).

    `silent`: it has no lasting text, so that search finds it by its name alone.
    """

    wanted: str
    silent: bool
    status: str
