"""Connections that processes share between transactions, through PgBouncer in transaction mode.

Nothing may be left in such a session, since the next transaction may be on another connection. So settings are sent
with each transaction and hold for it alone, and each prepared statement has a unique name and is closed.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import uuid4

import asyncpg
from asyncpg.pool import PoolConnectionProxy


def local_settings(settings: Mapping[str, str]) -> str:
    """Statements that make these settings for the current transaction; the role comes first."""
    names = sorted((name for name in settings if name != "application_name"), key=lambda name: name != "role")
    return "".join(f"SET LOCAL {name} = {_value(name, settings[name])}; " for name in names)


def _value(name: str, value: str) -> str:
    if name == "search_path":  # A list: quoted whole, it would be the name of one schema.
        return value
    return "'" + value.replace("'", "''") + "'"


async def cursor_of_shared_connection(
    connection: asyncpg.Connection | PoolConnectionProxy, text: str, *arguments: Any, prefetch: int
) -> AsyncIterator[asyncpg.Record]:
    """The rows of a query, `prefetch` at a time, inside a transaction.

    asyncpg numbers its statements per process, so the names of two processes would clash on one connection.
    """
    statement = await connection.prepare(text, name=f"recollect_{uuid4().hex}")
    async for row in statement.cursor(*arguments, prefetch=prefetch):
        yield row
    del statement
    await connection.fetch(
        "SELECT"
    )  # asyncpg closes a deleted statement before its next one: still on this connection.
