"""Let entries of the audit log go when they are old."""

from datetime import timedelta
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.identity.model import worker_caller
from recollect_workers.attempts import Attempt
from recollect_workers.context import WorkerContext

MAX_STEPS = 100
"""Steps of one tenant in one sweep, at most: what is left waits for the next."""


async def forget(context: WorkerContext) -> None:
    """Delete entries that are older than they are kept. Raises Unavailable when the database is away."""
    kept = timedelta(days=context.settings.audit_retention_days)
    old = await audit.tenants_with_old_audit(context.database, kept=kept)
    for tenant_id in context.until_stopping(old):
        with Attempt("audit log not shortened", tenant_id):
            await _forget(context, tenant_id, kept)


async def _forget(context: WorkerContext, tenant_id: UUID, kept: timedelta) -> None:
    for _ in context.until_stopping(range(MAX_STEPS)):
        async with context.database.transaction(worker_caller(tenant_id)) as tx:
            if not await audit.forget_old(tx, kept=kept):
                return
