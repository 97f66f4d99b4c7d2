"""Let the usage of tenants go when it is old."""

from datetime import timedelta
from uuid import UUID

from recollect.accounts.identity.model import worker_caller
from recollect.accounts.usage import service as usage
from recollect_workers.attempts import Attempt
from recollect_workers.context import WorkerContext

MAX_STEPS = 100
"""Steps of one tenant in one sweep, at most: what is left waits for the next."""


async def forget(context: WorkerContext) -> None:
    """Delete usage that is older than it is kept. Raises Unavailable when the database is away.

    Any number of workers do so at once: each takes rows that no other has in hand.
    """
    kept = timedelta(days=context.settings.usage_retention_days)
    old = await usage.tenants_with_old_usage(context.database, kept=kept)
    for tenant_id in context.until_stopping(old):
        with Attempt("usage not deleted", tenant_id):
            await _forget(context, tenant_id, kept)


async def _forget(context: WorkerContext, tenant_id: UUID, kept: timedelta) -> None:
    for _ in context.until_stopping(range(MAX_STEPS)):
        async with context.database.transaction(worker_caller(tenant_id)) as tx:
            if not await usage.forget_old(tx, kept=kept):
                return
