"""How entities are known."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity's name, in one text those that it had before a merge, who made it, and when it expires."""

    id: UUID
    name: str
    created_by: str
    expires_at: datetime | None
    aliases: str | None


@dataclass(frozen=True, slots=True)
class FoundEntity(NamedEntity):
    """An entity found by its name. `silent`: it is by that alone, since nothing that lasts is told of it."""

    silent: bool
    status: str
