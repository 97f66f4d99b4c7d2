"""Connections that other processes share between transactions, by PgBouncer in transaction mode.

Nothing may be left in such a session, since the next transaction may be on another: settings are sent with each
transaction and hold for it alone, and a statement that has a name has one that nobody else uses, and is closed.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import uuid4

import asyncpg
from asyncpg.pool import PoolConnectionProxy


def local_settings(settings: Mapping[str, str]) -> str:
    """Statements that make these settings for the transaction that is under way; the role comes first."""
    chosen = sorted((name for name in settings if name != "application_name"), key=lambda name: name != "role")
    return "".join(f"SET LOCAL {name} = {_value(name, settings[name])}; " for name in chosen)


def _value(name: str, value: str) -> str:
    if name == "search_path":  # A list: quoted whole, it would be the name of one schema.
        return value
    return "'" + value.replace("'", "''") + "'"


async def cursor_of_shared_connection(
    connection: asyncpg.Connection | PoolConnectionProxy, text: str, *arguments: Any, prefetch: int
) -> AsyncIterator[asyncpg.Record]:
    """The rows of a query, `prefetch` at a time, inside a transaction.

    asyncpg counts the names of statements per process, so those of two processes would meet on one connection.
    """
    statement = await connection.prepare(text, name=f"recollect_{uuid4().hex}")
    async for row in statement.cursor(*arguments, prefetch=prefetch):
        yield row
    del statement
    await connection.fetch("SELECT")  # asyncpg closes what is done with before the next statement: on this connection.
