"""Rows that a statement takes as JSON: each is encoded before, since the driver encodes its arguments in one go."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from recollect.fairness.computing import collect_yielding

A = TypeVar("A")

MAX_STATEMENT_BYTES = 1024 * 1024
"""Bytes of the rows of one statement, at most, unless one row has more: the driver copies them on the event loop."""


async def json_rows(items: Iterable[A], make: Callable[[A], dict[str, Any]]) -> list[Raw]:
    """The row that `make` makes of each item, as JSON. Other calls go on while it does so for many items."""
    return await collect_yielding(Raw(msgspec.json.encode(make(item))) for item in items)


def within_bytes(rows: Sequence[Raw]) -> Iterator[Sequence[Raw]]:
    """The rows in parts, one a statement, of MAX_STATEMENT_BYTES at most."""
    start = size = 0
    for index, row in enumerate(rows):
        added = len(memoryview(row))
        if index > start and size + added > MAX_STATEMENT_BYTES:
            yield rows[start:index]
            start, size = index, 0
        size += added
    if start < len(rows):
        yield rows[start:]
