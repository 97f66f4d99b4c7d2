"""The pages of lists of memories: their order, and the position at which the next page begins."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from math import isfinite
from typing import Self
from uuid import UUID

from recollect.errors import InvalidInput

BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
"""The time of a passage that has none, such as the name of an entity: it comes after all others in a list."""

MAX_COUNTED = 1_000
"""The maximum number of memories that are counted to say what a graph holds: the newest ones."""

MAX_SUBJECTS = 8
"""The maximum number of entities that are named to say what a graph holds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MAX_CURSOR = 100


class Order(StrEnum):
    """The order of a list: the newest first, or the most important first and of equal ones the newest."""

    NEWEST = "newest"
    IMPORTANCE = "importance"


@dataclass(frozen=True, slots=True)
class ListPosition:
    """The position of a memory in a list. `importance` counts only if the list is ordered by it."""

    importance: float
    at: datetime
    passage_id: UUID

    @property
    def cursor(self) -> str:
        """The position as a text, for callers."""
        return f"{self.importance!r}_{(self.at - _EPOCH) // _MICROSECOND}_{self.passage_id}"

    @classmethod
    def of_cursor(cls, cursor: str) -> Self:
        """Parse a cursor; raises InvalidInput if it is malformed."""
        try:
            return cls._read(cursor)
        except (ValueError, OverflowError):
            raise InvalidInput("This is not a cursor that an earlier page returned", path="cursor") from None

    @classmethod
    def _read(cls, cursor: str) -> Self:
        if len(cursor) > _MAX_CURSOR or not cursor.isascii():
            raise ValueError(cursor)
        importance, microseconds, passage_id = cursor.split("_")
        if not isfinite(float(importance)):
            raise ValueError(cursor)
        return cls(float(importance), _EPOCH + int(microseconds) * _MICROSECOND, UUID(passage_id))


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """A page of a list: the memories after a position, or the first ones if that is None.

    `order`: None for the order that the question asks for, or else the newest first.
    """

    order: Order | None = None
    after: ListPosition | None = None


@dataclass(frozen=True, slots=True)
class Holdings:
    """The number of memories that recall may return from a graph, and the entities that most of the newest are about.

    `is_graph`: whether there is such a graph. `more`: there are more memories than were counted.
    """

    is_graph: bool
    memories: int = 0
    subjects: tuple[str, ...] = ()
    more: bool = False
