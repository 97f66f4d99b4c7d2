"""Pages of lists, and answers that have an entity tag."""

from typing import Generic, TypeVar

from msgspec import Struct

Item = TypeVar("Item")


class Page(Struct, Generic[Item], frozen=True):
    """A page of a list."""

    items: list[Item]
    next_cursor: str | None = None


class Tagged(Struct, frozen=True, kw_only=True):
    """An answer whose `etag` says which version of it was read: give it as `if_match` to change that version only."""

    etag: str | None = None
