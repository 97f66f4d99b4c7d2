"""Archive what has expired, and delete it after the retention.

Work stands in the tables and nowhere else: any number of workers sweep at once, and of those that look at a graph at
the same moment the one that holds its lock finds what there is. Each round gives every tenant one step.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

import structlog

from recollect.accounts.identity.model import worker_caller
from recollect.errors import NotFound
from recollect.platform.transactions import Transaction
from recollect.retention.expiry import service as expiry
from recollect.retention.expiry.model import ExpiryStep
from recollect_workers.attempts import Attempt
from recollect_workers.context import WorkerContext

MAX_ROUNDS = 100
"""Steps of one tenant in one sweep, at most: what is left waits for the next."""

Find = Callable[[Transaction], Awaitable[list[UUID]]]
Take = Callable[[Transaction, UUID], Awaitable[ExpiryStep]]

log = structlog.get_logger(__name__)


async def archive(context: WorkerContext) -> None:
    """Archive whatever has expired. Raises Unavailable when the database is away."""
    waiting = await expiry.tenants_with_expired(context.database)
    await _rounds(context, waiting, expiry.graphs_with_expired, expiry.archive_expired, "archived")


async def purge(context: WorkerContext) -> None:
    """Delete what expired longer ago than the retention. Raises Unavailable when the database is away."""
    retention = timedelta(days=context.settings.retention_days)

    async def find(tx: Transaction) -> list[UUID]:
        return await expiry.graphs_with_purgeable(tx, retention=retention)

    async def take(tx: Transaction, graph_id: UUID) -> ExpiryStep:
        return await expiry.purge_expired(tx, graph_id, retention=retention)

    waiting = await expiry.tenants_with_purgeable(context.database, retention=retention)
    await _rounds(context, waiting, find, take, "purged")


async def _rounds(context: WorkerContext, tenants: list[UUID], find: Find, take: Take, done: str) -> None:
    """A step of each tenant's first graph in turn, until none has more, or each had MAX_ROUNDS."""
    left = {tenant_id: await _found(context, tenant_id, find) for tenant_id in context.until_stopping(tenants)}
    for _ in range(MAX_ROUNDS):
        left = {tenant_id: graphs for tenant_id, graphs in left.items() if graphs}
        for tenant_id, graphs in context.until_stopping(left.items()):
            if not await _take(context, tenant_id, graphs[0], take, done):
                del graphs[0]


async def _found(context: WorkerContext, tenant_id: UUID, find: Find) -> list[UUID]:
    with Attempt("expired memories not looked for", tenant_id):
        async with context.database.transaction(worker_caller(tenant_id), read_only=True) as tx:
            return await find(tx)
    return []


async def _take(context: WorkerContext, tenant_id: UUID, graph_id: UUID, take: Take, done: str) -> bool:
    """One step of one graph; whether another may find more."""
    with Attempt(f"expired memories not {done}", tenant_id), suppress(NotFound):  # It may be deleted meanwhile.
        async with context.database.transaction(worker_caller(tenant_id)) as tx:
            step = await take(tx, graph_id)
        if step.nodes or step.observations:
            told = {"nodes": step.nodes, "observations": step.observations}
            log.info(f"expired memories {done}", tenant=str(tenant_id), **told)
        return step.more
    return False
