"""One function per query of `queries.sql`."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from pgvector import HalfVector

from recollect.embedding import Vectors
from recollect.fairness.computing import batches
from recollect.graph.graphs.model import Revision
from recollect.graph.passages.evidence import EVIDENCE_GENERATION, Evidence
from recollect.graph.passages.model import (
    FAR_WORDS,
    MAX_BUSY_GRAPHS,
    MAX_NEIGHBOUR_LOOKUPS,
    MAX_SMALL,
    NEIGHBOURS,
    ClaimedPassage,
    ClaimLimits,
    FailedPassage,
    IndexedText,
    PendingPassage,
    RefusedPassage,
    Source,
)
from recollect.graph.passages.rows import (
    SplitText,
    columns_of,
    count_pieces,
    multirange,
    passages_of,
    prepared_columns,
    split_all,
)
from recollect.graph.passages.windows import Window, WindowWords, window_words
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction
from recollect.words.analysis import WORDS_VERSION

queries = Queries(__package__)

MAX_INSERTED = 100
"""The maximum number of passages that one statement inserts: its arguments are encoded on the event loop in one go, and
other calls wait for a core."""

MAX_SETTLED = 100
"""The maximum number of passages to which one statement gives the words around them, for the same reason."""

MAX_RENEWED = 50
"""The maximum number of memories whose passages one statement renews, for the same reason."""


async def insert_passages(tx: Transaction, revision: Revision, memories: Iterable[IndexedText]) -> int:
    """Store the passages of these memories, with the vectors that were prepared; more than MAX_SMALL are bulk.

    Returns how many passages there are.
    """
    texts = await split_all(memories)
    count = count_pieces(texts)
    for batch in tx.batches(passages_of(texts), MAX_INSERTED):
        columns = await columns_of(batch, revision.at)
        rows = await tx.fetch(
            queries.insert_passages,
            **revision.parameters,
            **columns,
            **await prepared_columns(tx, revision, batch, columns["ids"]),
            bulk=count > MAX_SMALL,
            words_version=WORDS_VERSION,
        )
        tx.embedded += len(rows)
    return count


async def renew_passages(
    tx: Transaction, revision: Revision, memories: Iterable[IndexedText], *, bulk: bool = False
) -> list[UUID]:
    """Replace the passages of these memories by new ones; more than MAX_SMALL are bulk in any case.

    Returns the replaced passages of memories whose time of saying changed: their neighbours are others now.
    """
    texts = await split_all(memories)
    is_bulk = bulk or count_pieces(texts) > MAX_SMALL
    by_memory: dict[UUID, list[SplitText]] = {}
    for text in texts:
        by_memory.setdefault(text.memory.memory_id, []).append(text)
    moved: list[UUID] = []
    for batch in batches(list(by_memory), MAX_RENEWED):
        renewed = [text for memory_id in batch for text in by_memory[memory_id]]
        rows = await tx.fetch(
            queries.renew_passages,
            **revision.parameters,
            **await columns_of(list(passages_of(renewed)), revision.at),
            renewed_memory_ids=batch,
            bulk=is_bulk,
            words_version=WORDS_VERSION,
        )
        moved += [row["id"] for row in rows]
    return moved


async def rebuild_passages(
    tx: Transaction, revision: Revision, node_ids: Sequence[UUID], memories: Sequence[IndexedText]
) -> None:
    """Replace all passages of nodes by those of these memories, some at a time: a node may have any number."""
    current_ids = {memory.memory_id for memory in memories}
    rows = await tx.fetch(queries.list_indexed_memories, node_ids=node_ids)
    for batch in batches([row["memory_id"] for row in rows if row["memory_id"] not in current_ids], MAX_INSERTED):
        await remove_of_memories(tx, revision, batch)
    await renew_passages(tx, revision, memories, bulk=True)


async def remove_of_memories(tx: Transaction, revision: Revision, memory_ids: Sequence[UUID]) -> list[UUID]:
    """Remove the passages of removed observations from search; return their ids."""
    return await tx.fetch_column(
        queries.remove_passages_of_memories,
        "id",
        revision=revision.number,
        memory_ids=memory_ids,
        graph_id=revision.graph.id,
    )


async def remove_of_nodes(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> list[UUID]:
    """Remove every passage of removed nodes from search; return their ids."""
    return await tx.fetch_column(
        queries.remove_passages_of_nodes, "id", revision=revision.number, node_ids=node_ids, graph_id=revision.graph.id
    )


async def unsettle_neighbours(tx: Transaction, ids: Sequence[UUID]) -> None:
    """Put the neighbours of removed passages into the worker's queue."""
    await tx.execute(
        queries.unsettle_neighbours, ids=ids, neighbours=NEIGHBOURS, max_neighbour_lookups=MAX_NEIGHBOUR_LOOKUPS
    )


async def remove_names(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Remove the names of these nodes from search where the nodes have a lasting text."""
    await tx.execute(queries.remove_names, revision=revision.number, node_ids=node_ids, graph_id=revision.graph.id)


async def find_unindexed_nodes(tx: Transaction, node_ids: Sequence[UUID]) -> list[UUID]:
    """Those of these nodes that have no lasting passage."""
    return [row["id"] for row in await tx.fetch(queries.find_unindexed_nodes, node_ids=node_ids)]


async def tenants_with_pending(session: Session) -> list[UUID]:
    """Tenants whose passages wait for vectors."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_pending)]


async def claim_pending(
    tx: Transaction, *, model: str, limits: ClaimLimits, lease_seconds: float, previous: str | None
) -> list[ClaimedPassage]:
    """Claim as many waiting passages as `limits` allow, for `lease_seconds`."""
    return await tx.fetch_objects(
        queries.claim_pending,
        ClaimedPassage,
        limit=limits.all,
        lease=timedelta(seconds=lease_seconds),
        model=model,
        previous=previous,
        is_previous=model == previous,
        max_small=limits.small,
        max_busy_graphs=MAX_BUSY_GRAPHS,
        generation=EVIDENCE_GENERATION,
    )


async def any_pending(tx: Transaction) -> bool:
    """Whether any passage of the tenant waits."""
    return await tx.fetchval(queries.any_pending)


async def lock_claimed_graphs(tx: Transaction, ids: Sequence[UUID], *, model: str, previous: str | None) -> list[UUID]:
    """Lock the graphs of these passages; return the passages that are not claimed for `model` any more."""
    rows = await tx.fetch(queries.lock_claimed_graphs, ids=ids, previous=previous, is_previous=model == previous)
    return [row["id"] for row in rows if row["gone"]]


async def lock_indexes(tx: Transaction, ids: Sequence[UUID], model: str) -> list[UUID]:
    """Lock the graphs of these passages, and let `model` serve those that no model serves yet; return their ids."""
    return [row["graph_id"] for row in await tx.fetch(queries.lock_indexes, ids=ids, model=model)]


async def insert_embeddings(
    tx: Transaction, *, model: str, ids: Sequence[UUID], vectors: Vectors, evidence: Sequence[Evidence]
) -> list[UUID]:
    """Store the passages' own vectors, and their evidence; return the passages that had no vector of this model."""
    return await tx.fetch_column(
        queries.insert_embeddings,
        "passage_id",
        model=model,
        generation=EVIDENCE_GENERATION,
        ids=ids,
        vectors=[HalfVector(vector) for vector in vectors],
        tokens=[item.tokens for item in evidence],
        dates=[multirange(item.dates) for item in evidence],
    )


async def find_windows(tx: Transaction, ids: Sequence[UUID]) -> list[WindowWords]:
    """The words around these live passages, and around the neighbours that they reach."""
    return await tx.fetch_as(
        queries.find_windows,
        lambda row: window_words(Window(**row)),
        ids=ids,
        far_words=FAR_WORDS,
        neighbours=NEIGHBOURS,
    )


async def settle(
    tx: Transaction, windows: Sequence[WindowWords], ids: Sequence[UUID], claimed_until: datetime | None, *, model: str
) -> None:
    """Give passages the words and vectors around them; `ids` are those that were claimed. The graphs are locked before.

    In the order of their ids: the order in which all locks on several passages are taken.
    """
    for batch in batches(windows, MAX_SETTLED):
        await tx.execute(
            queries.settle,
            ids=[words.window.id for words in batch],
            near=[words.near for words in batch],
            far=[words.far for words in batch],
            preceding=[words.window.preceding for words in batch],
            following=[words.window.following for words in batch],
            claimed_ids=ids,
            claimed_until=claimed_until,
            model=model,
        )


async def record_failures(
    tx: Transaction, failed: Sequence[FailedPassage], claimed_until: datetime, *, most: int
) -> list[UUID]:
    """Record failures on claimed passages; return the ids of those that are set aside."""
    rows = await tx.fetch(
        queries.record_failures,
        ids=[passage.id for passage in failed],
        reasons=[passage.reason for passage in failed],
        certain=[passage.certain for passage in failed],
        claimed_until=claimed_until,
        max_failures=most,
    )
    return [row["id"] for row in rows if row["is_refused"]]


async def release_claimed_passages(tx: Transaction, ids: Sequence[UUID], claimed_until: datetime) -> None:
    """End claims before their time."""
    await tx.execute(queries.release_claimed_passages, ids=ids, claimed_until=claimed_until)


async def list_refused(tx: Transaction, graph_id: UUID, *, after: UUID | None, limit: int) -> list[RefusedPassage]:
    """Live passages of a graph that were set aside, oldest first."""
    rows = await tx.fetch(queries.list_refused, graph_id=graph_id, after=after, limit=limit)
    return [RefusedPassage(**{**row, "source": Source(row["source"])}) for row in rows]


async def count_refused(tx: Transaction, graph_ids: Sequence[UUID] | None, *, limit: int) -> int:
    """How many live passages of these graphs, or of all of the tenant, were set aside, counted up to `limit`."""
    return await tx.fetchval(queries.count_refused, graph_ids=graph_ids, limit=limit)


async def retry_refused(tx: Transaction, graph_id: UUID) -> int:
    """Put passages that were set aside back into the queue; return how many."""
    return len(await tx.fetch(queries.retry_refused, graph_id=graph_id))


async def list_without_vectors(
    tx: Transaction, graph_id: UUID, *, model: str, after: UUID | None, limit: int, looked_at: int
) -> list[PendingPassage]:
    """The next live passages of a graph; those that lack a vector or the evidence of a model have their texts."""
    return await tx.fetch_objects(
        queries.list_without_vectors,
        PendingPassage,
        graph_id=graph_id,
        model=model,
        generation=EVIDENCE_GENERATION,
        after=after,
        limit=limit,
        max_looked_at=looked_at,
    )


async def count_live(tx: Transaction, graph_id: UUID) -> int:
    """How many live passages a graph has."""
    return await tx.fetchval(queries.count_live, graph_id=graph_id)


async def set_serving_model(tx: Transaction, graph_id: UUID, *, model: str) -> None:
    """Let a model serve a graph."""
    await tx.execute(queries.set_serving_model, graph_id=graph_id, model=model)


async def list_unserved(tx: Transaction, graph_id: UUID, *, model: str, after: UUID | None, limit: int) -> list[UUID]:
    """Live passages of a graph that are searched by vectors of another model, or by none."""
    return await tx.fetch_column(queries.list_unserved, "id", graph_id=graph_id, model=model, after=after, limit=limit)


async def drop_vectors(tx: Transaction, graph_id: UUID, *, model: str, limit: int) -> int:
    """Delete the own vectors of a graph's passages that are of other models; return how many."""
    return len(await tx.fetch(queries.drop_vectors, graph_id=graph_id, model=model, limit=limit))


async def note_other_models(tx: Transaction, graph_id: UUID, *, model: str) -> None:
    """Record that a graph gets vectors of a model that may never serve it."""
    await tx.execute(queries.note_other_models, graph_id=graph_id, model=model)


async def note_dropped(tx: Transaction, graph_id: UUID) -> None:
    """Record that a graph has only vectors of the model that serves it."""
    await tx.execute(queries.note_dropped, graph_id=graph_id)


async def find_replaced(tx: Transaction, graph_id: UUID, *, before: datetime) -> str | None:
    """The model of a graph whose vectors of others were unused since a time; None: some may be used, or none exist."""
    return await tx.fetchval(queries.find_replaced, graph_id=graph_id, before=before)


async def count_vectors_of_other_models(tx: Transaction, graph_id: UUID, *, model: str, horizon: int) -> int:
    """How many vectors of other models a graph's passages have, without passages that were removed by `horizon`."""
    return await tx.fetchval(queries.count_vectors_of_other_models, graph_id=graph_id, model=model, horizon=horizon)


async def raise_index_epoch(tx: Transaction, graph_id: UUID) -> None:
    """Make every cached ranking of a graph invalid."""
    await tx.execute(queries.raise_index_epoch, graph_id=graph_id)


async def count_waiting(tx: Transaction, graph_id: UUID, *, limit: int) -> int:
    """How many live passages of a graph have no vector yet, counted up to `limit`."""
    return await tx.fetchval(queries.count_waiting, graph_id=graph_id, limit=limit)
