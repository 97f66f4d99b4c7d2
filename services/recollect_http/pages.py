"""Pages of lists, with a cursor that says where the next page begins."""

from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar
from uuid import UUID

from litestar.params import QueryParameter
from msgspec import Meta, Struct

from recollect.errors import InvalidInput

R = TypeVar("R")
T = TypeVar("T")

Limit = Annotated[int, QueryParameter(ge=1, le=200, description="Maximum number of entries")]
_OF_CURSOR = "`next_cursor` of the previous page. Default: the first page"
Cursor = Annotated[str | None, QueryParameter(max_length=300, description=_OF_CURSOR)]
IdCursor = Annotated[UUID | None, QueryParameter(description=_OF_CURSOR)]
NextCursor = Annotated[
    str | None, Meta(description="Value of `cursor` for the next page; null: this page is the last one")
]
AsOf = Annotated[
    str | None,
    QueryParameter(max_length=40, description="Read the graph as of this revision or time. Default: its current state"),
]


class Page(Struct, Generic[T], frozen=True):
    """One page of a list."""

    items: Annotated[list[T], Meta(description="Entries of this page")]
    next_cursor: NextCursor


def page_of(found: Sequence[R], limit: int, body: Callable[[R], T], cursor: Callable[[R], str]) -> Page[T]:
    """The page of `limit` rows, of which one more was read if there is one; `cursor` gives the position of the last."""
    rows = found[:limit]
    return Page([body(row) for row in rows], cursor(rows[-1]) if len(found) > limit else None)


def position_of(cursor: str | None, read: Callable[[str], R]) -> R | None:
    """The position where a page begins, None for the first. Raises InvalidInput where `read` raises ValueError."""
    if cursor is None:
        return None
    try:
        return read(cursor)
    except ValueError:
        raise InvalidInput("This is not a cursor that an earlier page returned", path="cursor") from None


def integer(cursor: str) -> int:
    """The number of a cursor, which must be an `integer` of PostgreSQL and not negative; raises ValueError."""
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 10 or int(cursor) >= 2**31:
        raise ValueError(cursor)
    return int(cursor)
