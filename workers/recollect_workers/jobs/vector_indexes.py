"""Maintain the vector indexes of large graphs, on a connection of the tables' owner: only the owner may build them."""

import structlog

from recollect.postgres.operator_sessions import Operator
from recollect.retrieval.vector_indexes import service as upkeep
from recollect_workers.context import WorkerContext

log = structlog.get_logger(__name__)


async def maintain_indexes(context: WorkerContext) -> None:
    """Build and drop indexes that are due. Raises Unavailable when the database is unreachable."""
    settings = context.settings
    if settings.maintenance_database_url is None:
        return
    # Building an index of a large graph takes minutes and waits for every older transaction; no call waits for it.
    patient = settings.model_copy(update={"statement_timeout_seconds": 0.0, "lock_timeout_seconds": 0.0})
    async with Operator.connect(settings.maintenance_database_url, patient) as operator:
        actions = await upkeep.maintain_indexes(
            operator,
            from_memories=settings.vector_index_memories,
            memory_mb=settings.vector_index_memory_mb,
            stopping=context.stopping,
        )
    for action in actions:
        log.info("vector index", done=action)
