"""Count the rows of graphs that were there before rows counted for quotas (migration 0090).

Each graph is counted once. Several workers may count the same graph: what the first one found is added.
"""

from uuid import UUID

from recollect.accounts.identity.model import worker_caller
from recollect.accounts.quotas import service as quotas
from recollect_workers.attempts import Attempt
from recollect_workers.context import WorkerContext

MAX_STEPS = 100
"""The most graphs of one tenant in one sweep: the others wait for the next sweep."""


async def count_rows(context: WorkerContext) -> None:
    """Count the rows of graphs where that was not done. Raises Unavailable when the database is away."""
    for tenant_id in context.until_stopping(await quotas.tenants_with_uncounted_rows(context.database)):
        with Attempt("rows not counted", tenant_id):
            await _count_graphs(context, tenant_id)


async def _count_graphs(context: WorkerContext, tenant_id: UUID) -> None:
    for _ in context.until_stopping(range(MAX_STEPS)):
        async with context.database.transaction(worker_caller(tenant_id)) as tx:
            if not await quotas.count_rows_of_graph(tx):
                return
