"""What PostgreSQL did for every statement: the plans, and the number of rows that it read."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import asyncpg
import msgspec

from recollect.postgres.connections import APP_ROLE, register_types, session_settings
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.settings import Settings

AUTO_EXPLAIN = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "-1",  # Nothing is explained until the watch begins.
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_format": "json",
    "auto_explain.log_level": "notice",
    "client_min_messages": "notice",
}

EXPLAIN_ALL = f"SET ROLE NONE; SET auto_explain.log_min_duration = 0; SET ROLE {APP_ROLE}"
"""Only a superuser may set it."""

AS_JSON = "ANALYZE, FORMAT JSON"

Plan = dict[str, Any]


class Counting:
    """A transaction that counts its queries."""

    def __init__(self, tx: Any) -> None:
        self._tx, self.queries = tx, 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("fetch", "execute")):
            self.queries += 1
        return getattr(self._tx, name)


def explained(query: Query, options: str = "") -> Query:
    """The explained plan of a query with the same parameters."""
    return replace(query, text=f"EXPLAIN {f'({options}) ' if options else ''}{query.text}")


def steps(plan: Plan) -> Iterator[Plan]:
    """The plan and all of its steps."""
    yield plan
    for below in plan.get("Plans", []):
        yield from steps(below)


def looked_at(plan: Plan) -> float:
    """The rows that all steps returned or filtered out, times their loops."""
    thrown = ("Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck")
    return sum(
        float(step["Actual Loops"] * (step["Actual Rows"] + sum(step.get(rows, 0) for rows in thrown)))
        for step in steps(plan)
    )


class Watch:
    """The maximum of rows that each statement read since the last `clear`, by its name in a `queries.sql`.

    Nothing is recorded before the first `clear`. PostgreSQL would otherwise explain each statement, and each check of a
    foreign key, by which a test writes the rows that it begins with.
    """

    def __init__(self) -> None:
        self.rows: dict[str, float] = {}
        self.has_begun = False

    def clear(self) -> None:
        """Forget what was seen."""
        self.rows.clear()
        self.has_begun = True

    def __call__(self, _: object, message: asyncpg.PostgresLogMessage) -> None:
        text = str(message)
        named = re.search(r"/\* (\S+) \*/", text)
        if not (named and "{" in text):
            return
        told = msgspec.json.decode(text[text.index("{") : text.rindex("}") + 1])
        self.rows[named[1]] = max(looked_at(told["Plan"]), self.rows.get(named[1], 0))


class _OneConnection:
    """A pool of one connection, whose listener gets the plans once the watch has begun."""

    def __init__(self, connection: asyncpg.Connection, watch: Watch) -> None:
        self._connection, self._watch, self._explains = connection, watch, False

    @asynccontextmanager
    async def acquire(self, *, timeout: float) -> AsyncIterator[asyncpg.Connection]:
        del timeout
        if self._watch.has_begun and not self._explains:
            await self._connection.execute(EXPLAIN_ALL)
            self._explains = True
        yield self._connection


@asynccontextmanager
async def watched(superuser_url: str, settings: Settings) -> AsyncIterator[tuple[Database, Watch]]:
    """A database as the gateway uses it, and the rows that its statements read. One transaction at a time."""
    session = session_settings(APP_ROLE, settings) | AUTO_EXPLAIN
    connection, watch = await asyncpg.connect(superuser_url, server_settings=session), Watch()
    try:
        await register_types(connection)
        connection.add_log_listener(watch)
        yield Database(_OneConnection(connection, watch), settings), watch  # type: ignore[arg-type]
        connection.remove_log_listener(watch)
    finally:
        await connection.close()
