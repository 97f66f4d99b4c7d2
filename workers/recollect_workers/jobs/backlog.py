"""Metrics of how much work waits. All workers report the same: of several, take the greatest and not the sum."""

from recollect.jobs.backlog.service import measure_backlog, measure_moves
from recollect.telemetry.metrics import record_backlog, record_moves
from recollect_workers.context import WorkerContext


async def measure(context: WorkerContext) -> None:
    """Measure every queue, and the moves of tenants. Raises Unavailable when the database is unreachable."""
    for queue in await measure_backlog(context.database):
        record_backlog(queue.queue, queue.waiting, queue.oldest_seconds, context.settings.measured_cell)
    for step in await measure_moves(context.database):
        record_moves(step.step, step.moves, step.oldest_seconds)
