"""What is no longer used leaves recall."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class ArchiveCriteria:
    """What is archived: every criterion that is given must hold.

    Last changed before `older_than`; less important than `importance_below`, as far as an importance was ever set; at
    least one of `tags`, whatever their case.
    """

    older_than: datetime | None = None
    importance_below: float | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Archivable:
    """An entity that criteria hold for."""

    id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """Names of entities that were archived, or would be; `more`: the criteria hold for others, too."""

    names: list[str]
    more: bool = False
