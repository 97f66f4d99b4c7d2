"""Rows become values in the query layer, which lets other calls go on while there are many."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from recollect.caller import Caller
from recollect.fairness import computing
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.postgres.transactions import Session

NUMBERS = Query.compile("SELECT number FROM generate_series(1, 5) AS number")


@pytest.fixture
async def view(db: Database, caller: Caller) -> AsyncIterator[GraphView]:
    async with db.transaction(caller, read_only=True) as tx:
        yield await graphs.view(tx, None)


def _doubled(row: asyncpg.Record) -> int:
    return int(row["number"]) * 2


async def test_each_row_becomes_a_value(view: GraphView) -> None:
    for session in (view.tx, view):
        assert await session.fetch_as(NUMBERS, _doubled) == [2, 4, 6, 8, 10]
        assert [row["number"] for row in await session.fetch(NUMBERS)] == [1, 2, 3, 4, 5]


async def test_other_calls_go_on_in_between(view: GraphView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "MAX_BLOCKING_SECONDS", -1.0)
    seen: list[str] = []

    def noted(row: asyncpg.Record) -> int:
        seen.append("row")
        if row["number"] == 1:
            asyncio.get_running_loop().call_soon(seen.append, "other call")
        return int(row["number"])

    session: Session = view.tx
    assert await session.fetch_as(NUMBERS, noted) == [1, 2, 3, 4, 5]
    assert seen.index("other call") < len(seen) - 1
