"""The operator API's connections to PostgreSQL: few, and with a role that cannot read memories."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from recollect.postgres.connections import connect_as, session_settings
from recollect.postgres.driver_errors import translated_errors
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.schema_version.service import translated_schema_errors
from recollect.settings import Settings
from recollect.settings.cells import HOME
from recollect.valkey.caller_changes import notify_callers_changed_at_end
from recollect_operator.operator_identity import OperatorIdentity

CONNECTIONS = 4
"""Connections at most: operators are few, and a step of an erasure holds one for a second or two."""


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
            connect=connect_as(role, settings),
            min_size=0,
            max_size=CONNECTIONS,
            timeout=settings.database_acquire_seconds,
            server_settings=session_settings(role, settings),
        )
        async with pool:
            yield cls(pool, settings, cell)

    @asynccontextmanager
    async def session(self, identity: OperatorIdentity | None = None) -> AsyncIterator[Operator]:
        """A connection for an operator; None while the operator is not known yet. Raises Unavailable."""
        async with (
            notify_callers_changed_at_end(self._settings) as on_callers_changed,
            translated_errors(),
            self._pool.acquire(timeout=self._settings.database_acquire_seconds) as connection,
        ):
            if identity is None:
                operator = Operator(connection, on_callers_changed=on_callers_changed, cell=self._cell)
            else:
                operator = Operator(
                    connection,
                    on_callers_changed=on_callers_changed,
                    actor=identity.actor,
                    address=identity.address,
                    cell=self._cell,
                )
            async with translated_schema_errors(operator):
                yield operator
