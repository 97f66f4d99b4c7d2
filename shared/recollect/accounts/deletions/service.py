"""Use cases of the deletion of tenants: delete with grace, restore, erase in steps, read receipts.

A deleted tenant is suspended completely at once. When its grace is over, a worker erases it step by step. Each step is
a transaction that also counts the rows deleted so far. If a worker dies, its step is lost and another worker goes on.
"""

import asyncio
import time
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.accounts.deletions import store
from recollect.accounts.deletions.model import ROWS_AT_ONCE, ErasureReceipt, StepOutcome, checked_grace
from recollect.accounts.operator_log import service as log
from recollect.accounts.operator_log.model import OperatorAction
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Check, unconditional
from recollect.errors import Conflict, ErrorCode, NotFound, Unavailable
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.transactions import Session

BUSY_WAIT = timedelta(seconds=10)
BUSY_PAUSE = 0.1
"""How long, and how often, an erasure is tried again while another transaction is using the tenant."""


async def delete_tenant(
    operator: Operator, slug: str, *, grace: timedelta, check: Check[Tenant] = unconditional
) -> Tenant:
    """Suspend a tenant completely at once, and let it be erased when its grace is over; its data stays until then.

    For a tenant that is deleted already, this can make the erasure earlier, never later. Raises NotFound, InvalidInput,
    Conflict while another cell has rows of it too, and as `check` does.
    """
    checked_grace(grace)
    async with operator.transaction():
        await tenants.stop_writes(operator, slug)
        tenant = await tenants.lock_tenant(operator, slug)
        check(tenant)
        await _require_whole(operator, tenant)
        if tenant.erase_at is None:
            await store.insert_deletion(operator, tenant.id)
        deleted = await store.set_erase_at(operator, tenant.id, grace)
        operator.note_act(tenant.id)
        details = {"erase_at": f"{deleted.erase_at:%Y-%m-%dT%H:%M:%SZ}"}
        if grace:  # Without grace, the log is about to be erased.
            await audit.record_of_operator(operator, tenant.id, Action.TENANT_DELETED, _named(tenant), **details)
        await _log(operator, tenant, OperatorAction.TENANT_DELETED, **details)
    return deleted


async def restore_tenant(operator: Operator, slug: str, *, check: Check[Tenant] = unconditional) -> Tenant:
    """Undo a deletion: the tenant is what it was before, active or suspended. Also take an owner's request for it back.

    Raises NotFound, Conflict where it was not deleted or its grace is over, and as `check` does.
    """
    async with operator.transaction():
        tenant = await tenants.lock_tenant(operator, slug)
        check(tenant)
        is_withdrawn = await store.withdraw_request(operator, tenant.id)
        if tenant.erase_at is None and not is_withdrawn:
            raise Conflict(
                "This tenant is not deleted, so there is nothing to restore.", code=ErrorCode.TENANT_NOT_DELETED
            )
        kept = replace(tenant, deletion_due_at=None)
        restored = kept if tenant.erase_at is None else await store.restore_tenant(operator, tenant.id)
        if restored is None:
            raise Conflict(
                "The grace period of this tenant is over, so it cannot be restored: its erasure has begun or is about "
                "to begin.",
                code=ErrorCode.ERASURE_BEGUN,
            )
        await audit.record_of_operator(operator, tenant.id, Action.TENANT_RESTORED, _named(tenant))
        await _log(operator, tenant, OperatorAction.TENANT_RESTORED)
    return restored


async def finish_erasure(operator: Operator, tenant_id: UUID, *, wait: timedelta = BUSY_WAIT) -> ErasureReceipt:
    """Continue an erasure until the tenant is erased; return its receipt. Several processes may do so at once.

    Raises Conflict for a tenant whose grace is not over, NotFound, and Unavailable (busy) if another
    transaction uses it for longer than `wait`.
    """
    deadline = time.monotonic() + wait.total_seconds()
    while (outcome := await erase_step(operator, tenant_id)) in (StepOutcome.MORE, StepOutcome.BUSY):
        if outcome is StepOutcome.BUSY:
            if time.monotonic() > deadline:
                raise Unavailable("This tenant is in use. Try again in a moment.", code=ErrorCode.BUSY)
            await asyncio.sleep(BUSY_PAUSE)
    receipt = await store.find_receipt_of(operator, tenant_id)
    if receipt is None:
        raise Conflict(
            "This tenant cannot be erased yet: it is not deleted, or its grace period is not over.",
            code=ErrorCode.TENANT_NOT_DELETED,
        )
    return receipt


async def erase_step(session: Session, tenant_id: UUID, *, rows: int = ROWS_AT_ONCE) -> StepOutcome | None:
    """One step of the erasure of a tenant whose grace is over; None for any other tenant."""
    outcome = await store.erase_tenant_step(session, tenant_id, rows=rows)
    return None if outcome is None else StepOutcome(outcome)


async def tenants_to_erase(db: Database) -> list[UUID]:
    """Tenants whose grace is over."""
    async with db.system() as session:
        return await store.tenants_to_erase(session)


async def count_rows(operator: Operator, slug: str) -> dict[str, int]:
    """The number of a tenant's rows in each table. Raises NotFound."""
    return await store.count_of_tenant(operator, (await tenants.find_tenant(operator, slug)).id)


async def list_receipts(
    operator: Operator, *, slug: str | None = None, before: int | None = None, limit: int = 100
) -> list[ErasureReceipt]:
    """Receipts of tenants that were erased, newest first; `slug` None: of all tenants."""
    return await store.list_receipts(operator, slug=slug, before=before, limit=limit)


async def get_receipt(operator: Operator, receipt_id: UUID) -> ErasureReceipt:
    """One receipt. Raises NotFound."""
    receipt = await store.find_receipt(operator, receipt_id)
    if receipt is None:
        raise NotFound("There is no such receipt.", code=ErrorCode.RECEIPT_NOT_FOUND)
    return receipt


async def _require_whole(operator: Operator, tenant: Tenant) -> None:
    """Raise Conflict if another cell has rows of the tenant: its erasure would leave them, its receipt omit them."""
    if await store.is_moving(operator, tenant.id):
        raise Conflict(
            f"{tenant.slug!r} is being moved, or the cell that it left still has its rows: see `recollect tenants "
            "moves`. Continue or undo the move, and then delete the tenant.",
            code=ErrorCode.TENANT_MOVING,
        )


async def _log(operator: Operator, tenant: Tenant, action: OperatorAction, **details: str) -> None:
    await log.record(operator, action, named("tenant", tenant.slug), was=tenant.status, **details)


def _named(tenant: Tenant) -> str:
    return named("tenant", tenant.id)
