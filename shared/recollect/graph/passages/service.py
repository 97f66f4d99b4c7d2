"""Use cases of passages: index memories, remove them from search, store their vectors and windows."""

import math
from collections.abc import Sequence
from uuid import UUID

from recollect.graph.graphs.model import Revision
from recollect.graph.passages import store
from recollect.graph.passages.evidence import Evidence
from recollect.graph.passages.model import (
    COUNTED_AT_MOST,
    MAX_FAILURES,
    ClaimedPassage,
    ClaimLimits,
    FailedPassage,
    IndexedText,
    PendingPassage,
    RefusedPassage,
    Source,
)
from recollect.jobs.model import EMBED_PASSAGES
from recollect.platform.db import Database
from recollect.platform.embedding import Vectors
from recollect.platform.transactions import Transaction

MAX_WAITING = 10_000
"""Waiting passages are counted up to this number; a greater one tells a caller nothing more."""


async def index_memories(tx: Transaction, revision: Revision, memories: Sequence[IndexedText]) -> None:
    """Index memories: they are found by their words at once, and by their meaning when the worker has embedded them."""
    if memories:
        await store.insert_passages(tx, revision, memories)
        tx.wake(EMBED_PASSAGES)


async def rebuild(
    tx: Transaction, revision: Revision, node_ids: Sequence[UUID], memories: Sequence[IndexedText]
) -> None:
    """Make the passages of nodes anew from all their memories; those that say the same as before keep their vectors.

    An entity's name is left out where it has something lasting to say, as `hide_names` would have it.
    """
    await store.rebuild_passages(tx, revision, node_ids, without_needless_names(memories))
    tx.wake(EMBED_PASSAGES)


def without_needless_names(memories: Sequence[IndexedText]) -> list[IndexedText]:
    """All memories of some nodes but the names of those of which something lasting is told."""
    said = [memory for memory in memories if memory.source != Source.NAME and not memory.outdated]
    lasting = {memory.node_id for memory in said if memory.expires_at is None}
    return [memory for memory in memories if memory.source != Source.NAME or memory.node_id not in lasting]


async def renew_memories(tx: Transaction, revision: Revision, memories: Sequence[IndexedText]) -> None:
    """Rebuild the passages of changed observations; an unchanged text keeps its vectors."""
    if memories:
        await _unsettle_neighbours(tx, await store.renew_passages(tx, revision, memories))
        tx.wake(EMBED_PASSAGES)


async def forget_memories(tx: Transaction, revision: Revision, memory_ids: Sequence[UUID]) -> None:
    """Remove observations from search, from this revision on."""
    if memory_ids:
        await _unsettle_neighbours(tx, await store.remove_of_memories(tx, revision, memory_ids))


async def forget_nodes(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Remove nodes, their names and their observations from search, from this revision on."""
    if node_ids:
        await _unsettle_neighbours(tx, await store.remove_of_nodes(tx, revision, node_ids))


async def hide_names(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Keep no passage of a name whose entity has something lasting to say: its passages are matched by it too."""
    if node_ids:
        await store.remove_names(tx, revision, node_ids)


async def show_names(tx: Transaction, revision: Revision, names: Sequence[IndexedText]) -> None:
    """Make entities findable by their names where nothing lasting else is left to find them by."""
    silent = set(await store.find_unindexed_nodes(tx, [name.node_id for name in names]))
    await index_memories(tx, revision, [name for name in names if name.node_id in silent])


async def tenants_with_pending(db: Database) -> list[UUID]:
    """Tenants whose passages wait for vectors."""
    async with db.system() as session:
        return await store.tenants_with_pending(session)


async def claim_pending(
    tx: Transaction,
    *,
    model: str,
    limit: int,
    lease_seconds: float,
    previous: str | None = None,
    small_only: bool = False,
) -> list[ClaimedPassage]:
    """Take up to `limit` waiting passages for `lease_seconds`; nobody else gets them meanwhile.

    First the newest that were written by few, of each graph as many, in all but a share of the places; then the oldest.
    `small_only`: the former only, in all places.
    Their texts come along where they have no vector or evidence of `model` yet, and were not set aside.
    Those of graphs that the model `previous` serves are claimed for that model only, and no others for it.
    """
    places = ClaimLimits(all=0, small=limit) if small_only else ClaimLimits.shared(limit)
    return await store.claim_pending(tx, model=model, places=places, lease_seconds=lease_seconds, previous=previous)


async def any_pending(tx: Transaction) -> bool:
    """Whether any passage of the tenant waits, claimed or not."""
    return await store.any_pending(tx)


async def lock_claimed_graphs(
    tx: Transaction, claimed: Sequence[PendingPassage], *, model: str, previous: str | None = None
) -> set[UUID]:
    """Take the graphs of all claimed passages in hand, before anything is done with some of them.

    In two goes two workers would wait for each other in a circle: each settles beside what the other gives back.
    Answers the passages of graphs that were changed over since they were claimed for `model`: they go back.
    """
    return set(await store.lock_claimed_graphs(tx, [passage.id for passage in claimed], model=model, previous=previous))


async def settle(
    tx: Transaction,
    claimed: Sequence[PendingPassage],
    *,
    model: str,
    ids: Sequence[UUID],
    vectors: Vectors,
    evidence: Sequence[Evidence],
) -> int:
    """Give claimed passages their vectors, shape (len(ids), dimensions), and what surrounds them; may be repeated.

    `ids` are those of the claimed that lacked one of this model, or the evidence, which is one for each. Answers how
    many got a vector.
    """
    if not claimed or not await store.lock_indexes(tx, [passage.id for passage in claimed], model):
        return 0
    kept = await store.insert_embeddings(tx, model=model, ids=ids, vectors=vectors, evidence=evidence) if ids else []
    await store.settle(tx, [passage.id for passage in claimed], claimed[0].claimed_until, model=model)
    return len(kept)


async def record_failures(
    tx: Transaction, failed: Sequence[FailedPassage], claimed: Sequence[PendingPassage]
) -> set[UUID]:
    """Note failures on claimed passages; those that are set aside for it, to be settled without a vector.

    The others stay in the queue and are tried again, after a while.
    """
    if not failed:
        return set()
    return set(await store.record_failures(tx, failed, claimed[0].claimed_until, most=MAX_FAILURES))


async def release_claimed_passages(tx: Transaction, claimed: Sequence[PendingPassage]) -> None:
    """Release claimed passages, so that others may claim them at once."""
    if claimed:
        await store.release_claimed_passages(tx, [passage.id for passage in claimed], claimed[0].claimed_until)


async def list_refused(tx: Transaction, graph_id: UUID, *, after: UUID | None, limit: int) -> list[RefusedPassage]:
    """Live passages of a graph that the embedder refused, oldest first, after that id."""
    return await store.list_refused(tx, graph_id, after=after, limit=limit)


async def count_refused(tx: Transaction, graph_id: UUID | None = None) -> int:
    """How many live passages were set aside, up to MAX_WAITING: of a graph, else of all that the caller reaches."""
    reached = None if tx.caller.graphs is None else list(tx.caller.graphs)
    return await store.count_refused(tx, reached if graph_id is None else [graph_id], limit=MAX_WAITING)


async def retry_refused(tx: Transaction, graph_id: UUID) -> int:
    """Put the refused passages of a graph back into the worker's queue; how many there were."""
    retried = await store.retry_refused(tx, graph_id)
    tx.wake(EMBED_PASSAGES)
    return retried


async def count_terms(tx: Transaction, graph_id: UUID, texts: Sequence[str]) -> list[dict[str, int]]:
    """The lexemes of each text, with the number of passages of the graph that hold each (at least 1)."""
    return await store.words_of(tx, graph_id, texts)


async def graphs_to_count(tx: Transaction, *, limit: int) -> list[UUID]:
    """Graphs that have changed much since their words were last counted, at most `limit`, in no fixed order."""
    return await store.graphs_to_count(tx, limit=limit)


async def recount_terms(tx: Transaction, graph_id: UUID) -> None:
    """Count the words of a graph that has changed much, unless another worker did or does."""
    memories = await store.lock_changed_graph(tx, graph_id)
    if memories is not None:
        await _recount(tx, graph_id, memories)


async def lock_term_counts(tx: Transaction, graph_id: UUID) -> None:
    """Keep others from counting the words of a graph until this transaction ends: a count reads what it deletes."""
    await store.lock_term_counts(tx, graph_id)


async def recount_graph(tx: Transaction, graph_id: UUID) -> None:
    """Count the words of one graph now, so that those that nobody says any more are forgotten."""
    await _recount(tx, graph_id, await store.count_memories(tx, graph_id))


async def raise_index_epoch(tx: Transaction, graph_id: UUID) -> None:
    """Make every cached ranking of a graph unreachable, because something derived from the graph changed."""
    await store.raise_index_epoch(tx, graph_id)


async def count_waiting(tx: Transaction, graph_id: UUID) -> int:
    """How many live passages of a graph have no vector yet, up to MAX_WAITING."""
    return await store.count_waiting(tx, graph_id, limit=MAX_WAITING)


async def _recount(tx: Transaction, graph_id: UUID, memories: int) -> None:
    every = max(1, math.ceil(await store.count_live(tx, graph_id) / COUNTED_AT_MOST))
    await store.recount_terms(tx, graph_id, every=every, memories=memories)


async def _unsettle_neighbours(tx: Transaction, removed: Sequence[UUID]) -> None:
    """What stood beside removed passages is matched by their words no longer, once the worker has seen to it."""
    if removed:
        async with tx.looking_up():
            await store.unsettle_neighbours(tx, removed)
        tx.wake(EMBED_PASSAGES)
