"""Let idempotency keys go that have expired."""

from uuid import UUID

from recollect.accounts.idempotency import service as idempotency
from recollect.accounts.identity.model import worker_caller
from recollect_workers.attempts import Attempt
from recollect_workers.context import WorkerContext

MAX_STEPS = 100
"""Steps of one tenant in one sweep, at most: what is left waits for the next."""


async def forget(context: WorkerContext) -> None:
    """Delete keys that have expired. Raises Unavailable when the database is away."""
    for tenant_id in context.until_stopping(await idempotency.tenants_with_expired_keys(context.database)):
        with Attempt("idempotency keys not deleted", tenant_id):
            await _forget(context, tenant_id)


async def _forget(context: WorkerContext, tenant_id: UUID) -> None:
    for _ in context.until_stopping(range(MAX_STEPS)):
        async with context.database.transaction(worker_caller(tenant_id)) as tx:
            if not await idempotency.forget_expired(tx):
                return
