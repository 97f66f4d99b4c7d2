"""Pages of lists: a cursor that says where to go on."""

from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar

from litestar.params import QueryParameter
from msgspec import Struct

R = TypeVar("R")
T = TypeVar("T")

Limit = Annotated[int, QueryParameter(ge=1, le=200, description="Entries at most")]


class Page(Struct, Generic[T], frozen=True):
    """One page; `next_cursor` is null on the last one."""

    items: list[T]
    next_cursor: str | None


def page_of(found: Sequence[R], limit: int, body: Callable[[R], T], cursor: Callable[[R], str]) -> Page[T]:
    """The page of what was found when one more than `limit` was asked for; `cursor` says where the last stands."""
    page = found[:limit]
    return Page([body(each) for each in page], cursor(page[-1]) if len(found) > limit else None)
