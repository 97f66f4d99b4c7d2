"""Use cases of the audit log: record an act, in the transaction of the act; read entries; delete old ones."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from uuid import UUID

from recollect.accounts.audit import store
from recollect.accounts.audit.model import (
    MAX_ACTS_PER_DAY,
    REPEATABLE,
    RESERVED_ACTS,
    Action,
    AuditEntry,
    AuditFilter,
    Detail,
)
from recollect.caller import OPERATOR, Caller
from recollect.errors import ErrorCode, TooManyRequests
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import Session, Transaction

RETRY_SECONDS = 600
"""The `Retry-After` for a tenant that has made as many entries as it may in a day."""

FORGOTTEN_AT_ONCE = 1_000
"""Entries that one transaction deletes, at most."""

EXPORTED_AT_ONCE = 500
"""Entries that a step of an export reads: 2 MB at most."""


async def record(tx: Transaction, action: Action, *objects: str, **details: Detail) -> None:
    """Record that the caller does this, if the transaction commits. `objects`: of the act, each by `named`.

    Any act may change who callers are and what they may do, so gateways look up the callers of the tenant again. Raises
    TooManyRequests for an act that can be repeated, after MAX_ACTS_PER_DAY in 24 hours; for a caller who made few of
    them, after twice as many.
    """
    if action in REPEATABLE and not tx.caller.of_service:
        await _require_few(tx)
    tx.change_callers()
    await store.insert_entry(
        tx,
        tx.tenant_id,
        action,
        actor=tx.caller.subject,
        objects=objects,
        address=tx.caller.address,
        details=details,
    )


async def _require_few(tx: Transaction) -> None:
    acts, own = await store.count_acts(tx, most=2 * MAX_ACTS_PER_DAY)
    if acts >= (MAX_ACTS_PER_DAY if own >= RESERVED_ACTS else 2 * MAX_ACTS_PER_DAY):
        raise TooManyRequests(
            f"This tenant has made {MAX_ACTS_PER_DAY:,} entries in its audit log in 24 hours, the most that it can "
            "make. Try again later.",
            code=ErrorCode.TOO_MANY_ACTS,
            seconds=RETRY_SECONDS,
        )


async def record_of_operator(
    operator: Operator, tenant_id: UUID, action: Action, *objects: str, **details: Detail
) -> None:
    """Record that an operator does this with a tenant. Call it inside `operator.transaction()`."""
    operator.note_act(tenant_id)
    await operator.enter(tenant_id)
    await store.insert_entry(
        operator, tenant_id, action, actor=OPERATOR, objects=objects, address=None, details=details
    )


async def record_of_person(
    session: Session, tenant_ids: Sequence[UUID], action: Action, *objects: str, actor: str, address: str | None
) -> None:
    """Record an act of a person who has signed in, in the log of each tenant of which they are a member.

    Call it inside `personal()` of that person: the database refuses acts of another.
    """
    if tenant_ids:
        await store.insert_entries_of_person(session, tenant_ids, action, actor=actor, objects=objects, address=address)


async def list_entries(
    tx: Transaction, filters: AuditFilter, *, before: UUID | None = None, limit: int = 100
) -> list[AuditEntry]:
    """The tenant's entries, newest first."""
    return await store.list_entries(tx, filters, before=before, limit=limit)


async def export_entries(db: TenantDatabase, caller: Caller, filters: AuditFilter) -> AsyncIterator[list[AuditEntry]]:
    """All entries of the tenant, newest first, in steps of one short transaction each.

    Entries that are recorded during the export are newer than those read, and not included.
    """
    before = None
    while True:
        async with db.transaction(caller, read_only=True) as tx:
            found = await store.list_entries(tx, filters, before=before, limit=EXPORTED_AT_ONCE)
        if found:
            yield found
        if len(found) < EXPORTED_AT_ONCE:
            return
        before = found[-1].id


async def tenants_with_old_audit(db: Database, *, retention: timedelta) -> list[UUID]:
    """Active tenants with entries that are older than `retention`."""
    async with db.system() as session:
        return await store.tenants_with_old_audit(session, retention=retention)


async def forget_old(tx: Transaction, *, retention: timedelta, limit: int = FORGOTTEN_AT_ONCE) -> bool:
    """Delete entries that are older than `retention`, in one step; return whether another step may find more."""
    return await store.forget_audit(tx, retention=retention, limit=limit) == limit
