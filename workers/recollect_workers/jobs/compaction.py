"""Compact graphs that have rows beyond the retention, or whose compaction did not fit into one call."""

from dataclasses import asdict
from datetime import timedelta
from uuid import UUID

import structlog

from recollect.accounts.identity.model import worker_caller
from recollect.jobs.model import Job, StepRefused, StepResult
from recollect.postgres.transactions import Transaction
from recollect.retention.compaction import service as compaction
from recollect.retention.compaction.model import FreedRows
from recollect_workers.context import WorkerContext
from recollect_workers.failure_logging import FailureLogger

MAX_ROUNDS = 100
"""The most checks of one tenant's graphs in one sweep: the rest waits for the next sweep."""

log = structlog.get_logger(__name__)


async def schedule(context: WorkerContext) -> None:
    """Start a job for each graph that has rows to delete, a few graphs of each tenant in turn.

    Raises Unavailable when the database is unreachable.
    """
    if not context.settings.compaction_enabled:
        return
    tenants = await compaction.tenants_to_check(context.database)
    for _ in range(MAX_ROUNDS):
        tenants = [tenant_id for tenant_id in context.until_stopping(tenants) if await _check(context, tenant_id)]


async def _check(context: WorkerContext, tenant_id: UUID) -> bool:
    """Check some graphs of a tenant; whether others wait."""
    with FailureLogger("compaction not scheduled", tenant_id):
        async with context.database.transaction(worker_caller(tenant_id)) as tx:
            checked = await compaction.check_graphs(tx, retention_days=context.settings.retention_days)
        if checked.started:
            context.jobs_due.set()
            log.info("compaction scheduled", tenant=str(tenant_id), graphs=checked.started)
        return checked.more
    return False


async def compact_graph(tx: Transaction, job: Job) -> StepResult:
    """Delete the next rows that nobody can read any more. Done counts rows; the cursor, the rows of each table.

    The cursor also holds the counts of the call that started the job. Raises
    StepRefused for a job without a graph.
    """
    if job.graph_id is None:
        raise StepRefused("This job has no graph: one graph is compacted at a time.")
    before = await compaction.retained_since(tx, timedelta(days=job.arguments["retention_days"]))
    step = await compaction.compact(tx, job.graph_id, before=before)
    freed = asdict(FreedRows(**job.cursor.get("freed", {})) + step.freed)
    return StepResult({**job.cursor, "freed": freed}, sum(freed.values()), finished=not step.more, result=freed)
