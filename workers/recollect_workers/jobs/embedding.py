"""Give passages their vectors.

A batch is claimed in one transaction, embedded outside any, and stored in another. A worker that dies
in between leaves passages claimed until their lease ends; then the next sweep takes them up.
"""

from collections.abc import Mapping
from uuid import UUID

import structlog

from recollect.errors import RecollectError
from recollect.identity.model import worker_caller
from recollect.passages import service as passages
from recollect.passages.model import EMBED_PASSAGES
from recollect.platform.telemetry import continued_span
from recollect_workers.context import WorkerContext

MAX_BATCHES = 40
"""Batches of one run. A tenant with more to embed waits for another turn, behind the other tenants."""

log = structlog.get_logger(__name__)


async def woken(context: WorkerContext, tenant_id: UUID, carrier: Mapping[str, str]) -> None:
    """The job of a wake-up: one run, in the trace of the request that caused it; another wake-up for the rest."""
    if await _attempt_run(context, tenant_id, carrier):
        context.wakeups.notify(tenant_id, frozenset({EMBED_PASSAGES}))


async def sweep(context: WorkerContext) -> None:
    """Embed whatever waits, announced or not: a run for each tenant in turn, until none has more.

    Raises Unavailable when the database is away.
    """
    waiting = await passages.tenants_with_pending(context.database)
    while waiting:
        waiting = [tenant_id for tenant_id in waiting if await _attempt_run(context, tenant_id, {})]


async def embed_passages(context: WorkerContext, tenant_id: UUID, carrier: Mapping[str, str]) -> bool:
    """Embed up to MAX_BATCHES batches of one tenant; whether there may be more.

    Raises Unavailable when the database or the embedder is away.
    """
    embedded = 0
    with continued_span(EMBED_PASSAGES, carrier) as span:
        span.set_attribute("recollect.tenant_id", str(tenant_id))
        try:
            for _ in range(MAX_BATCHES):
                if context.stopping.is_set() or not (count := await embed_batch(context, tenant_id)):
                    return False
                embedded += count
            return True
        finally:
            span.set_attribute("recollect.passages", embedded)
            if embedded:
                log.info("passages embedded", tenant=str(tenant_id), passages=embedded)


async def embed_batch(context: WorkerContext, tenant_id: UUID) -> int:
    """Claim, embed and store one batch; how many passages it held."""
    caller = worker_caller(tenant_id)
    limit, lease = context.settings.embedding_batch, context.settings.embedding_lease_seconds
    async with context.database.transaction(caller) as tx:
        pending = await passages.claim_pending(tx, limit=limit, lease_seconds=lease)
    if not pending:
        return 0
    vectors = await context.embedder.embed([passage.text for passage in pending])
    ids = [passage.id for passage in pending]
    async with context.database.transaction(caller) as tx:
        await passages.store_vectors(tx, model=context.embedder.model, ids=ids, vectors=vectors)
    return len(pending)


async def _attempt_run(context: WorkerContext, tenant_id: UUID, carrier: Mapping[str, str]) -> bool:
    # One tenant's failure must not keep the others from their turn; its passages come back when their lease ends.
    try:
        return await embed_passages(context, tenant_id, carrier)
    except RecollectError as error:
        log.warning("passages not embedded, will be tried again", tenant=str(tenant_id), reason=str(error))
    except Exception:
        log.exception("passages not embedded, will be tried again", tenant=str(tenant_id))
    return False
