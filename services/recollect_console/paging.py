"""Pages of long lists in the console."""

from dataclasses import dataclass
from typing import Any

from recollect_console.visit import Visit

PAGE = 50
"""Entries of a page of a list."""


@dataclass(frozen=True, slots=True)
class Paging:
    """The addresses of the first page, None on that itself, and of the next page, None on the last one."""

    first: str | None
    next: str | None


def paging_of(visit: Visit, cursor: Any | None) -> Paging:
    """The paging of a list of which the next page begins at the cursor; None: there is none."""
    is_first = "cursor" not in visit.request.query_params
    return Paging(None if is_first else visit.here(cursor=None), None if cursor is None else visit.here(cursor=cursor))
