"""Let the usage of tenants go when it is old."""

from datetime import timedelta
from uuid import UUID

import structlog

from recollect.errors import RecollectError
from recollect.identity.model import worker_caller
from recollect.usage import service as usage
from recollect_workers.context import WorkerContext

MAX_STEPS = 100
"""Steps of one tenant in one sweep, at most: what is left waits for the next."""

log = structlog.get_logger(__name__)


async def forget(context: WorkerContext) -> None:
    """Delete usage that is older than it is kept. Raises Unavailable when the database is away.

    Any number of workers do so at once: each takes rows that no other has in hand.
    """
    kept = timedelta(days=context.settings.usage_retention_days)
    for tenant_id in await usage.tenants_with_old_usage(context.database, kept=kept):
        try:
            await _forget(context, tenant_id, kept)
        except RecollectError as error:  # The others have their turn all the same.
            log.warning("usage not deleted, will be tried again", tenant=str(tenant_id), reason=str(error))


async def _forget(context: WorkerContext, tenant_id: UUID, kept: timedelta) -> None:
    for _ in range(MAX_STEPS):
        if context.stopping.is_set():
            return
        async with context.database.transaction(worker_caller(tenant_id)) as tx:
            if not await usage.forget_old(tx, kept=kept):
                return
