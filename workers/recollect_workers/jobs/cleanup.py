"""Delete rows that are kept for a limited time: usage, audit entries, idempotency keys, deliveries of webhooks.

Any number of workers may do this at once: each takes rows that no other has locked.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.idempotency import service as idempotency
from recollect.accounts.identity.model import worker_caller
from recollect.accounts.usage import service as usage
from recollect.postgres.transactions import Transaction
from recollect.webhooks.deliveries import service as deliveries
from recollect_workers.context import WorkerContext
from recollect_workers.failure_logging import FailureLogger

MAX_STEPS = 100
"""The most steps of one tenant in one sweep: the rest waits for the next sweep."""

Step = Callable[[Transaction], Awaitable[bool]]
"""Deletes a bounded number of a tenant's rows; returns whether another step may find more."""


async def delete_old_usage(context: WorkerContext) -> None:
    """Delete usage beyond its retention. Raises Unavailable when the database is unreachable."""
    retention = timedelta(days=context.settings.usage_retention_days)
    tenants = await usage.tenants_with_old_usage(context.database, retention=retention)
    await _delete(context, tenants, partial(usage.forget_old, retention=retention), failed="old usage not deleted")


async def delete_old_audit_entries(context: WorkerContext) -> None:
    """Delete audit entries beyond their retention. Raises Unavailable when the database is unreachable."""
    retention = timedelta(days=context.settings.audit_retention_days)
    tenants = await audit.tenants_with_old_audit(context.database, retention=retention)
    await _delete(
        context, tenants, partial(audit.forget_old, retention=retention), failed="old audit entries not deleted"
    )


async def delete_expired_idempotency_keys(context: WorkerContext) -> None:
    """Delete keys that have expired. Raises Unavailable when the database is unreachable."""
    tenants = await idempotency.tenants_with_expired_keys(context.database)
    await _delete(context, tenants, idempotency.forget_expired, failed="expired idempotency keys not deleted")


async def delete_old_deliveries(context: WorkerContext) -> None:
    """Delete deliveries beyond their retention. Raises Unavailable when the database is unreachable."""
    retention = timedelta(days=context.settings.webhook_retention_days)
    tenants = await deliveries.tenants_with_old(context.database, retention=retention)
    await _delete(
        context, tenants, partial(deliveries.remove_old, retention=retention), failed="old deliveries not deleted"
    )


async def _delete(context: WorkerContext, tenants: list[UUID], step: Step, *, failed: str) -> None:
    for tenant_id in context.until_stopping(tenants):
        with FailureLogger(failed, tenant_id):
            await _take_steps(context, tenant_id, step)


async def _take_steps(context: WorkerContext, tenant_id: UUID, step: Step) -> None:
    """Repeat the step until it finds no more rows, each time in a transaction of its own."""
    for _ in context.until_stopping(range(MAX_STEPS)):
        async with context.database.transaction(worker_caller(tenant_id)) as tx:
            if not await step(tx):
                return
