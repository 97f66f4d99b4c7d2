"""Bounds of hierarchies, and pages of them."""

from dataclasses import dataclass

from recollect.graph.entities.model import Entity

MAX_LEVELS = 1_000
"""Levels that are max_scanned up or down, at most."""

MAX_SUBTREE = 10_000
"""Entities of a subtree to which a search is limited, at most."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A page of a list: how many entities are skipped, and how many are returned at most."""

    offset: int = 0
    limit: int = 1_000

    @property
    def with_lookahead(self) -> "PageRequest":
        """The same with one more entity, which shows whether others follow."""
        return PageRequest(self.offset, self.limit + 1)


@dataclass(frozen=True, slots=True)
class EntityPage:
    """A page of entities; `next_offset`: where the next page begins, None after the last one."""

    entities: list[Entity]
    next_offset: int | None = None
