"""The criteria and results of archiving, which keeps entities that are no longer used out of recall."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class ArchiveCriteria:
    """Which entities to archive: those that meet every criterion that is given.

    `older_than`: last changed before this time. `importance_below`: less important than this; an entity without an
    importance does not meet it. `tags`: has at least one of them, in upper or lower case.
    """

    older_than: datetime | None = None
    importance_below: float | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Archivable:
    """An entity that meets the criteria."""

    id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """The names of entities that were archived, or would be. `more`: other entities meet the criteria, too."""

    names: list[str]
    more: bool = False
