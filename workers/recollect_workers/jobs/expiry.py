"""Archive memories that have expired, and delete them after the retention.

The tables are the only queue: any number of workers sweep at once, and if several look at a graph at the same moment,
the one that holds its lock does the work. Each round gives every tenant one step.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

import structlog

from recollect.accounts.identity.model import worker_caller
from recollect.errors import NotFound
from recollect.postgres.transactions import Transaction
from recollect.retention.expiry import service as expiry
from recollect.retention.expiry.model import ExpiryStep
from recollect_workers.context import WorkerContext
from recollect_workers.failure_logging import FailureLogger

MAX_ROUNDS = 100
"""The most steps of one tenant in one sweep: the rest waits for the next sweep."""

Find = Callable[[Transaction], Awaitable[list[UUID]]]
Take = Callable[[Transaction, UUID], Awaitable[ExpiryStep]]

log = structlog.get_logger(__name__)


async def archive(context: WorkerContext) -> None:
    """Archive all memories that have expired. Raises Unavailable without the database."""
    tenants = await expiry.tenants_with_expired(context.database)
    await _run_rounds(context, tenants, expiry.graphs_with_expired, expiry.archive_expired, "archived")


async def purge(context: WorkerContext) -> None:
    """Delete memories that expired longer ago than the retention. Raises Unavailable without the database."""
    retention = timedelta(days=context.settings.retention_days)

    async def find(tx: Transaction) -> list[UUID]:
        return await expiry.graphs_with_purgeable(tx, retention=retention)

    async def take(tx: Transaction, graph_id: UUID) -> ExpiryStep:
        return await expiry.purge_expired(tx, graph_id, retention=retention)

    tenants = await expiry.tenants_with_purgeable(context.database, retention=retention)
    await _run_rounds(context, tenants, find, take, "purged")


async def _run_rounds(context: WorkerContext, tenants: list[UUID], find: Find, take: Take, verb: str) -> None:
    """Take a step of each tenant's first graph in turn, until none has more, or each had MAX_ROUNDS.

    `verb`: what a step does with memories, for the log.
    """
    graphs_by_tenant = {
        tenant_id: await _find_graphs(context, tenant_id, find) for tenant_id in context.until_stopping(tenants)
    }
    for _ in range(MAX_ROUNDS):
        graphs_by_tenant = {tenant_id: graphs for tenant_id, graphs in graphs_by_tenant.items() if graphs}
        for tenant_id, graphs in context.until_stopping(graphs_by_tenant.items()):
            if not await _take_step(context, tenant_id, graphs[0], take, verb):
                del graphs[0]


async def _find_graphs(context: WorkerContext, tenant_id: UUID, find: Find) -> list[UUID]:
    with FailureLogger("search for expired memories failed", tenant_id):
        async with context.database.transaction(worker_caller(tenant_id), read_only=True) as tx:
            return await find(tx)
    return []


async def _take_step(context: WorkerContext, tenant_id: UUID, graph_id: UUID, take: Take, verb: str) -> bool:
    """Take one step of one graph; whether another may find more."""
    with (
        FailureLogger(f"expired memories not {verb}", tenant_id),
        suppress(NotFound),
    ):  # The graph may have been deleted since.
        async with context.database.transaction(worker_caller(tenant_id)) as tx:
            step = await take(tx, graph_id)
        if step.nodes or step.observations:
            log.info(
                f"expired memories {verb}", tenant=str(tenant_id), nodes=step.nodes, observations=step.observations
            )
        return step.more
    return False
