"""Tell by metrics how much waits. Each worker tells the same: of several, take the greatest and not the sum."""

from recollect.platform.backlog.service import measure_backlog
from recollect.platform.metrics import record_backlog
from recollect_workers.context import WorkerContext


async def tell(context: WorkerContext) -> None:
    """Measure every queue. Raises Unavailable when the database is away."""
    for queue in await measure_backlog(context.database):
        record_backlog(queue.queue, queue.waiting, queue.oldest_seconds)
