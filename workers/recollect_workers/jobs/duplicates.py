"""Search graphs for duplicates, as their configuration says or on request."""

from collections.abc import Sequence
from functools import partial

import msgspec
import structlog

from recollect.accounts.identity.model import worker_caller
from recollect.caller import Caller
from recollect.curation.duplicates import deduplication
from recollect.curation.duplicates.deduplication import ComparisonStep
from recollect.curation.duplicates.model import ScanCursor
from recollect.curation.duplicates.similarity import SimilarPair
from recollect.jobs.model import Job, StepFunction, StepRefused, StepResult
from recollect.postgres.transactions import Transaction
from recollect_workers.context import WorkerContext
from recollect_workers.failure_logging import FailureLogger

COUNTED = ("compared", "proposed", "merged")

log = structlog.get_logger(__name__)


async def schedule(context: WorkerContext) -> None:
    """Start a job for each graph that is due by its configuration. Raises Unavailable without a database."""
    due = await deduplication.tenants_with_deduplication_due(context.database)
    for tenant_id in context.until_stopping(due):
        with FailureLogger("search for duplicates not scheduled", tenant_id):
            async with context.database.transaction(worker_caller(tenant_id)) as tx:
                started = await deduplication.schedule_passes(tx)
            if started:
                context.jobs_due.set()
                log.info("search for duplicates scheduled", tenant=str(tenant_id), graphs=started)


async def prepare(context: WorkerContext, caller: Caller, job: Job) -> StepFunction:
    """Compare the next entities that changed since they were last compared; the step writes the result.

    Raises StepRefused for a job without a graph.
    """
    if job.graph_id is None:
        raise StepRefused("This job has no graph: duplicates are found in one graph at a time.")
    step, pairs = await deduplication.deduplicate(
        context.database,
        caller,
        job.graph_id,
        msgspec.convert(job.cursor["at"], ScanCursor) if "at" in job.cursor else None,
        mode=job.arguments.get("mode", "off"),
        threshold=job.arguments.get("threshold"),
    )
    return partial(settle, step=step, pairs=pairs)


async def settle(tx: Transaction, job: Job, *, step: ComparisonStep, pairs: Sequence[SimilarPair]) -> StepResult:
    """Write the pairs that were found. Done counts the entities that were compared."""
    settled = await deduplication.settle(tx, step, pairs)
    counts = {name: job.cursor.get(name, 0) + getattr(settled, name) for name in COUNTED}
    if settled.cursor is None:
        return StepResult({}, counts["compared"], counts["compared"], finished=True, result=counts)
    return StepResult({"at": msgspec.to_builtins(settled.cursor), **counts}, counts["compared"])
