"""Use cases of a change of model: store vectors of the new model for a graph, then let that model serve it.

The own vector of a passage is stored for each model: a change can be undone without embedding anything again, until the
vectors of models that do not serve are dropped.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from recollect.embedding import Vectors
from recollect.graph.passages import service as passages
from recollect.graph.passages import store
from recollect.graph.passages.evidence import Evidence
from recollect.graph.passages.model import PendingPassage
from recollect.jobs import service as jobs
from recollect.jobs.kinds import REEMBED_PASSAGES
from recollect.jobs.model import EMBED_PASSAGES, JobFilter
from recollect.postgres.transactions import Transaction

LOOKED_AT_ONCE = 1_000
"""The number of passages that one statement checks for a vector."""


async def list_without_vectors(
    tx: Transaction, graph_id: UUID, *, model: str, after: UUID | None, limit: int
) -> tuple[list[PendingPassage], bool]:
    """The next live passages of a graph, oldest first and not claimed; and whether others may follow them.

    Those that lack a vector of `model`, or the evidence, have their texts: up to `limit`, of LOOKED_AT_ONCE in all.
    """
    page = await store.list_without_vectors(
        tx, graph_id, model=model, after=after, limit=limit, looked_at=LOOKED_AT_ONCE
    )
    lacking = sum(passage.text is not None for passage in page)
    return page, len(page) == LOOKED_AT_ONCE or lacking == limit


async def begin_model_change(tx: Transaction, graph_id: UUID, *, model: str) -> int:
    """Begin to give a graph vectors of `model`; return how many live passages it has."""
    await store.note_other_models(tx, graph_id, model=model)
    return await store.count_live(tx, graph_id)


async def store_vectors(
    tx: Transaction, graph_id: UUID, *, model: str, ids: Sequence[UUID], vectors: Vectors, evidence: Sequence[Evidence]
) -> int:
    """Store vectors, shape (len(ids), dimensions), beside those that serve, and evidence; return how many were new."""
    if not ids:
        return 0
    # Where the model serves already, cached rankings without the evidence are void now. This comes first because it
    # locks the graph's index, which a transaction that deletes passages also locks before them.
    await store.raise_index_epoch(tx, graph_id)
    return len(await store.insert_embeddings(tx, model=model, ids=ids, vectors=vectors, evidence=evidence))


async def set_serving_model(tx: Transaction, graph_id: UUID, *, model: str) -> None:
    """Let `model` serve a graph: from now on questions and new passages are embedded by it."""
    await store.set_serving_model(tx, graph_id, model=model)


async def switch_page(tx: Transaction, graph_id: UUID, *, model: str, after: UUID | None, limit: int) -> list[UUID]:
    """Let the next passages, oldest first, be searched by their vectors of `model`; return their ids.

    A passage without such a vector stays as it is, and waits in the worker's queue.
    """
    page = await store.list_unserved(tx, graph_id, model=model, after=after, limit=limit)
    if page:
        await store.lock_indexes(tx, page, model)
        await passages.settle_windows(tx, page, None, model=model)
        tx.wake(EMBED_PASSAGES)
    return page


async def drop_vectors_of_other_models(tx: Transaction, graph_id: UUID, *, model: str, limit: int) -> int:
    """Delete up to `limit` vectors of other models of a graph's passages; return how many.

    The vector by which a live passage is searched stays, whatever its model.
    """
    dropped = await store.drop_vectors(tx, graph_id, model=model, limit=limit)
    if dropped < limit:
        await store.note_dropped(tx, graph_id)
    return dropped


async def drop_replaced(tx: Transaction, graph_id: UUID, *, before: datetime, limit: int) -> int:
    """The same, where the graph's model was changed before a time; nothing while a change is under way."""
    model = await _model_after_change(tx, graph_id, before)
    return await drop_vectors_of_other_models(tx, graph_id, model=model, limit=limit) if model is not None else 0


async def count_replaced(tx: Transaction, graph_id: UUID, *, before: datetime, horizon: int) -> int:
    """How many vectors `drop_replaced` would delete, without those of passages that were removed by `horizon`."""
    model = await _model_after_change(tx, graph_id, before)
    return (
        await store.count_vectors_of_other_models(tx, graph_id, model=model, horizon=horizon)
        if model is not None
        else 0
    )


async def _model_after_change(tx: Transaction, graph_id: UUID, before: datetime) -> str | None:
    """The model of a graph whose model was changed before a time; None while a job makes another change."""
    for status in ("queued", "running"):
        if await jobs.list_jobs(tx, JobFilter(graph_id, REEMBED_PASSAGES, status), limit=1):
            return None
    return await store.find_replaced(tx, graph_id, before=before)
