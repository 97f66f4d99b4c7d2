"""Pages of lists, with a cursor that says where the next page begins."""

from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar

from litestar.params import QueryParameter
from msgspec import Struct

from recollect.errors import InvalidInput

R = TypeVar("R")
T = TypeVar("T")

Limit = Annotated[int, QueryParameter(ge=1, le=200, description="Maximum number of entries")]
Cursor = Annotated[str | None, QueryParameter(max_length=300, description="`next_cursor` of the previous page")]
AsOf = Annotated[
    str | None,
    QueryParameter(max_length=40, description="Read the graph as of this revision or time. Default: its current state"),
]


class Page(Struct, Generic[T], frozen=True):
    """One page; `next_cursor` is null on the last one."""

    items: list[T]
    next_cursor: str | None


def page_of(found: Sequence[R], limit: int, body: Callable[[R], T], cursor: Callable[[R], str]) -> Page[T]:
    """The page of `limit` rows, of which one more was read if there is one; `cursor` gives the place of the last."""
    rows = found[:limit]
    return Page([body(row) for row in rows], cursor(rows[-1]) if len(found) > limit else None)


def place_of(cursor: str | None, read: Callable[[str], R]) -> R | None:
    """The place where a page begins, None for the first. Raises InvalidInput where `read` raises ValueError."""
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
