"""What an agent remembers."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.search.model import Close


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to remember. With `about`, an observation on each named entity, made if new; without, a fact.

    `kind`, `tags`, `importance`, `source` and `metadata` describe the fact, or the entities that are new.
    """

    text: str
    about: tuple[str, ...] = ()
    thread: str | None = None
    at: datetime | None = None
    kind: str | None = None
    tags: tuple[str, ...] = ()
    importance: float | None = None
    ttl_days: float | None = None
    source: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of an item: its memory's id (the first, with several `about`), its node, and what is close to it."""

    id: UUID
    node_id: UUID
    known: bool
    close: list[Close]
