"""One function per query of `queries.sql`."""

from datetime import datetime
from uuid import UUID

import asyncpg

from recollect.accounts.deletion_requests.model import DeletionRequest
from recollect.errors import ErrorCode, TooManyRequests
from recollect.ids import new_id
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


async def find_request(tx: Transaction) -> DeletionRequest | None:
    """The request for the deletion of the caller's tenant."""
    return await tx.fetch_object(queries.find_request, DeletionRequest)


async def insert_request(tx: Transaction, person_id: UUID) -> DeletionRequest | None:
    """Store that a person asked for the deletion; None if it was requested before.

    Raises TooManyRequests beyond five requests of a tenant in a day.
    """
    try:
        row = await tx.fetchrow(queries.insert_request, requested_by=person_id)
    except asyncpg.ProgramLimitExceededError:
        raise TooManyRequests(
            "The deletion of this organisation was requested too often today. Try again tomorrow.",
            code=ErrorCode.TOO_MANY_ACTS,
            seconds=86_400,
        ) from None
    return DeletionRequest(**row) if row else None


async def delete_request(tx: Transaction) -> DeletionRequest | None:
    """Take the request back; return it, None where there is none."""
    return await tx.fetch_object(queries.delete_request, DeletionRequest)


async def list_notified(tx: Transaction, *, limit: int) -> list[str]:
    """The addresses of owners and admins."""
    return [row["email"] for row in await tx.fetch(queries.list_notified, limit=limit)]


async def tenants_with_due_deletion(session: Session) -> list[UUID]:
    """Tenants whose owners asked for their deletion a week ago."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_due_deletion)]


async def delete_requested_tenant(session: Session, tenant_id: UUID) -> datetime | None:
    """Delete such a tenant; return when it is erased, None where it is not to be deleted (any more)."""
    return await session.fetchval(queries.delete_requested_tenant, tenant=tenant_id, entry=new_id())
