"""PostgreSQL as the operator API reaches it: few connections, as the role that reads nothing which is remembered."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from recollect.platform.caller_changes import told_at_the_end
from recollect.platform.connections import connecting, session_settings
from recollect.platform.driver_errors import translated_errors
from recollect.platform.operator_sessions import Operator
from recollect.platform.schema.service import told_outdated
from recollect.settings import Settings
from recollect.settings.cells import HOME
from recollect_operator.identity import OperatorIdentity

CONNECTIONS = 4
"""Operators are few, and a step of an erasure holds one for a second or two."""


class OperatorDatabase:
    """A pool of connections that act as one role."""

    def __init__(self, pool: asyncpg.Pool, settings: Settings, cell: str) -> None:
        self._pool, self._settings, self._cell = pool, settings, cell

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, url: str, role: str, settings: Settings, *, cell: str = HOME
    ) -> AsyncIterator["OperatorDatabase"]:
        """A pool that connects when it is first used."""
        pool = asyncpg.create_pool(
            url,
            connect=connecting(role, settings),
            min_size=0,
            max_size=CONNECTIONS,
            timeout=settings.database_acquire_seconds,
            server_settings=session_settings(role, settings),
        )
        async with pool:
            yield cls(pool, settings, cell)

    @asynccontextmanager
    async def session(self, who: OperatorIdentity | None = None) -> AsyncIterator[Operator]:
        """A connection at which this operator is at work, None before it is known who; raises Unavailable."""
        async with (
            told_at_the_end(self._settings) as on_acted,
            translated_errors(),
            self._pool.acquire(timeout=self._settings.database_acquire_seconds) as connection,
        ):
            if who is None:
                operator = Operator(connection, on_acted=on_acted, cell=self._cell)
            else:
                operator = Operator(
                    connection, on_acted=on_acted, actor=who.actor, address=who.address, cell=self._cell
                )
            async with told_outdated(operator):
                yield operator
