"""Pages of lists: a cursor that says where to go on."""

from typing import Annotated, Generic, TypeVar

from litestar.params import QueryParameter
from msgspec import Struct

T = TypeVar("T")

Limit = Annotated[int, QueryParameter(ge=1, le=200, description="Entries at most")]


class Page(Struct, Generic[T], frozen=True):
    """One page; `next_cursor` is null on the last one."""

    items: list[T]
    next_cursor: str | None
