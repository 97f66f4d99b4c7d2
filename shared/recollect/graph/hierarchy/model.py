"""Bounds of hierarchies, and pages of them."""

from dataclasses import dataclass

from recollect.graph.entities.model import Entity

MAX_LEVELS = 1_000
MAX_SUBTREE = 10_000
"""Levels that are walked up or down, at most."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which entities of a list: how many are passed over, and how many come back at most."""

    offset: int = 0
    limit: int = 1_000

    @property
    def and_one_more(self) -> "PageRequest":
        """The same with one more, which tells whether others follow."""
        return PageRequest(self.offset, self.limit + 1)


@dataclass(frozen=True, slots=True)
class EntityPage:
    """Entities; `next_offset` is where to go on where the list was cut."""

    entities: list[Entity]
    next_offset: int | None = None
