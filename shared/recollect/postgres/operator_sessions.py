"""Sessions of operators, and of the commands that they run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg

from recollect.caller import OPERATOR, Caller
from recollect.postgres.connections import OWNER_ROLE, session_settings, translated_connection_errors
from recollect.postgres.driver_errors import translated_errors
from recollect.postgres.schema_version.service import translated_schema_errors
from recollect.postgres.transactions import AnyConnection, Session, Transaction
from recollect.settings import Settings
from recollect.settings.cells import HOME
from recollect.valkey.caller_changes import OnCallersChanged, notify_callers_changed_at_end

_SET_TENANT = "SELECT set_config('recollect.tenant_id', $1, true)"


class Operator(Session):
    """An operator's connection, without a tenant. As `recollect_owner` it sees all rows, as `recollect_operator` few.

    `note_act` notes tenants whose callers may change (`on_callers_changed`): every process hears of them when the
    session ends.
    `actor` and `address`: who works and from where, as recorded in the log of operators. `cell`: in which cell.
    """

    def __init__(
        self,
        connection: AnyConnection,
        *,
        on_callers_changed: OnCallersChanged = lambda _: None,
        actor: str = OPERATOR,
        address: str | None = None,
        cell: str = HOME,
    ) -> None:
        super().__init__(connection)
        self.note_act, self.actor, self.address, self.cell = on_callers_changed, actor, address, cell

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str, settings: Settings, *, role: str | None = OWNER_ROLE) -> AsyncIterator["Operator"]:
        """Connect for the length of one command; raises Unavailable.

        `role` None acts as the login itself, for rights that only a login has, such as to replicate.
        """
        server_settings = session_settings(role or OWNER_ROLE, settings)
        if role is None:
            del server_settings["role"]
        async with notify_callers_changed_at_end(settings) as on_callers_changed, translated_errors():
            with translated_connection_errors(url, role, settings):
                connection = await asyncpg.connect(
                    url, timeout=settings.database_acquire_seconds, server_settings=server_settings
                )
            operator = cls(connection, on_callers_changed=on_callers_changed)
            try:
                async with translated_schema_errors(operator):
                    yield operator
            finally:
                await connection.close()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Do the work of the block as a whole, or not at all."""
        async with self._connection.transaction():
            yield

    async def enter(self, tenant_id: UUID) -> None:
        """Let the current transaction write rows of this tenant from now on."""
        await self._connection.execute(_SET_TENANT, str(tenant_id))

    async def within(self, caller: Caller) -> Transaction:
        """The current transaction as one of the caller's tenant."""
        await self.enter(caller.tenant_id)
        return Transaction(self._connection, caller)
