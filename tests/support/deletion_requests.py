"""Requests for the deletion of an organisation, for which a week has to pass."""

from datetime import timedelta
from uuid import UUID

import asyncpg


async def advance_request(owner: asyncpg.Connection, tenant_id: UUID, time: timedelta) -> None:
    """Let this time pass for the request of a tenant."""
    await owner.execute(
        """UPDATE deletion_requests SET requested_at = requested_at - $2::interval, due_at = due_at - $2::interval
        WHERE tenant_id = $1""",
        tenant_id,
        time,
    )
