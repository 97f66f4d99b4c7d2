"""One function per query of `queries.sql`."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from recollect.accounts.audit.model import Action, AuditEntry, AuditFilter, Detail
from recollect.ids import new_id
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction
from recollect.telemetry.tracing import current_trace_id

queries = Queries(__package__)


async def insert_entry(
    tx: Transaction | Operator,
    tenant_id: UUID,
    action: Action,
    *,
    actor: str,
    objects: Sequence[str],
    address: str | None,
    details: Mapping[str, Detail],
) -> None:
    """Store an act of a tenant; operators choose `tenant_id`; in a transaction it is the caller's tenant."""
    await tx.execute(
        queries.insert_entry,
        tenant_id=tenant_id,
        id=new_id(),
        actor=actor,
        action=action,
        objects=list(objects),
        address=address,
        trace_id=current_trace_id(),
        details=msgspec.json.encode(details).decode(),
    )


async def count_acts(tx: Transaction, *, most: int) -> tuple[int, int]:
    """The number of acts of the tenant in 24 hours, counted up to `most`, and of these by the caller."""
    [row] = await tx.fetch(queries.count_acts, actor=tx.caller.subject, most=most)
    return row["acts"], row["own"]


async def insert_entries_of_person(
    session: Session,
    tenant_ids: Sequence[UUID],
    action: Action,
    *,
    actor: str,
    objects: Sequence[str],
    address: str | None,
) -> None:
    """Store an act of a person in the log of each of these tenants, of which they are a member."""
    await session.execute(
        queries.insert_entries_of_person,
        tenant_ids=list(tenant_ids),
        ids=[new_id() for _ in tenant_ids],
        actor=actor,
        action=action,
        objects=list(objects),
        address=address,
        trace_id=current_trace_id(),
    )


async def list_entries(tx: Transaction, filters: AuditFilter, *, before: UUID | None, limit: int) -> list[AuditEntry]:
    """Entries before an id, newest first."""
    rows = await tx.fetch(
        queries.list_entries,
        before=before,
        actor=filters.actor,
        action=filters.action,
        object=filters.object,
        since=filters.since,
        until=filters.until,
        limit=limit,
    )
    return [AuditEntry(**{**row, "objects": tuple(row["objects"])}) for row in rows]


async def tenants_with_old_audit(session: Session, *, retention: timedelta) -> list[UUID]:
    """Active tenants with entries that are older than `retention`."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_old_audit, retention=retention)]


async def forget_audit(tx: Transaction, *, retention: timedelta, limit: int) -> int:
    """Delete the oldest entries that are older than `retention`; return their number."""
    return await tx.fetchval(queries.forget_audit, retention=retention, limit=limit)
