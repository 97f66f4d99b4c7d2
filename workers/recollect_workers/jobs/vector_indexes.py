"""See to the vector indexes of large graphs, on a connection of the tables' owner: only one may build indexes."""

import structlog

from recollect.platform.operator_sessions import Operator
from recollect.retrieval.vector_indexes import service as upkeep
from recollect_workers.context import WorkerContext

log = structlog.get_logger(__name__)


async def maintain_indexes(context: WorkerContext) -> None:
    """Build and drop what is due. Raises Unavailable when the database is away."""
    settings = context.settings
    if settings.maintenance_database_url is None:
        return
    # Building an index of a large graph takes minutes, and it waits for every older transaction; nobody waits for it.
    patient = settings.model_copy(update={"statement_timeout_seconds": 0.0, "lock_timeout_seconds": 0.0})
    async with Operator.connect(settings.maintenance_database_url, patient) as operator:
        tended = await upkeep.maintain_indexes(
            operator,
            from_memories=settings.vector_index_memories,
            memory_mb=settings.vector_index_memory_mb,
            stopping=context.stopping,
        )
    for done in tended:
        log.info("vector index", done=done)
