"""How much the statements of this process bring at once: what memory holds of a call, without a clock."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import pytest

from recollect.postgres.sql import Query
from recollect.postgres.transactions import Session


@contextmanager
def bytes_read() -> Iterator[dict[str, int]]:
    """For each query of the block, by its name, the most characters of values that one statement of it brought."""
    most: dict[str, int] = {}
    fetch = Session.fetch

    async def measured(self: Session, query: Query, **parameters: Any) -> list[asyncpg.Record]:
        rows = await fetch(self, query, **parameters)
        name = query.text.partition("\n")[0]
        most[name] = max(most.get(name, 0), sum(len(repr(value)) for row in rows for value in row.values()))
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "fetch", measured)
        yield most
