"""Use cases of passages: index memories, remove them from search, store their vectors and windows."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from recollect.embedding import Vectors
from recollect.graph.graphs.model import Revision
from recollect.graph.passages import store
from recollect.graph.passages.evidence import Evidence
from recollect.graph.passages.model import (
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
from recollect.postgres.database import Database
from recollect.postgres.transactions import Transaction

MAX_WAITING = 10_000
"""The number up to which waiting passages are counted; a greater one would be of no use to a caller."""


async def index_memories(tx: Transaction, revision: Revision, memories: Iterable[IndexedText]) -> None:
    """Index memories: they are found by their words at once, and by meaning as soon as they have vectors.

    Those that were prepared in the call have them at once; the worker makes the others.
    """
    if await store.insert_passages(tx, revision, memories):
        tx.wake(EMBED_PASSAGES)


async def rebuild(
    tx: Transaction, revision: Revision, node_ids: Sequence[UUID], memories: Sequence[IndexedText]
) -> None:
    """Rebuild the passages of nodes from all their memories; passages with an unchanged text keep their vectors.

    An entity's name is left out where it has a lasting text, as in `hide_names`.
    """
    await store.rebuild_passages(tx, revision, node_ids, without_needless_names(memories))
    tx.wake(EMBED_PASSAGES)


def without_needless_names(memories: Sequence[IndexedText]) -> list[IndexedText]:
    """The memories without the names of nodes that have another current text, which does not expire."""
    current = [memory for memory in memories if memory.source != Source.NAME and not memory.outdated]
    with_lasting_text = {memory.node_id for memory in current if memory.expires_at is None}
    return [memory for memory in memories if memory.source != Source.NAME or memory.node_id not in with_lasting_text]


async def renew_memories(tx: Transaction, revision: Revision, memories: Iterable[IndexedText]) -> None:
    """Rebuild the passages of changed observations; an unchanged text keeps its vectors."""
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
    """Remove the passage of an entity's name where it has a lasting text: passages are matched by the name, too."""
    if node_ids:
        await store.remove_names(tx, revision, node_ids)


async def show_names(tx: Transaction, revision: Revision, names: Sequence[IndexedText]) -> None:
    """Index entities by their names where they have no other lasting passage by which search could find them."""
    unindexed = set(await store.find_unindexed_nodes(tx, [name.node_id for name in names]))
    await index_memories(tx, revision, [name for name in names if name.node_id in unindexed])


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
    """Claim up to `limit` waiting passages for `lease_seconds`; no other worker gets them until then.

    Most places go to the newest passages of small writes, divided evenly among graphs; the rest go to the oldest
    passages. `small_only`: all places go to small writes.
    The texts of passages are included where these have no vector or evidence of `model` yet, and were not set aside.
    Passages of graphs that the model `previous` serves are claimed for that model only, and no others for it.
    """
    limits = ClaimLimits(all=0, small=limit) if small_only else ClaimLimits.shared(limit)
    return await store.claim_pending(tx, model=model, limits=limits, lease_seconds=lease_seconds, previous=previous)


async def any_pending(tx: Transaction) -> bool:
    """Whether any passage of the tenant waits, claimed or not."""
    return await store.any_pending(tx)


async def lock_claimed_graphs(
    tx: Transaction, claimed: Sequence[PendingPassage], *, model: str, previous: str | None = None
) -> set[UUID]:
    """Lock the graphs of all claimed passages, before any of the passages is settled or released.

    Were they locked in two steps, two workers could deadlock: each settles neighbours of what the other releases.
    Returns the passages whose graphs got another model since they were claimed for `model`: these must be released.
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
    """Give claimed passages their vectors, shape (len(ids), dimensions), and their neighbours' words and vectors.

    Idempotent. `ids`: the claimed passages that lacked a vector of this model, or the evidence; `evidence` has one for
    each of them. Returns how many passages got a vector.
    """
    if not claimed or not await store.lock_indexes(tx, [passage.id for passage in claimed], model):
        return 0
    new = await store.insert_embeddings(tx, model=model, ids=ids, vectors=vectors, evidence=evidence) if ids else []
    await settle_windows(tx, [passage.id for passage in claimed], claimed[0].claimed_until, model=model)
    return len(new)


async def settle_windows(tx: Transaction, ids: Sequence[UUID], claimed_until: datetime | None, *, model: str) -> None:
    """Give passages, and neighbours that they reach, the words and vectors around them. Their graphs are locked."""
    await store.settle(tx, await store.find_windows(tx, ids), ids, claimed_until, model=model)


async def record_failures(
    tx: Transaction, failed: Sequence[FailedPassage], claimed: Sequence[PendingPassage]
) -> set[UUID]:
    """Record failures on claimed passages; return the ids of those that are set aside, to be settled without a vector.

    The others stay in the queue and are retried after a while.
    """
    if not failed:
        return set()
    return set(await store.record_failures(tx, failed, claimed[0].claimed_until, most=MAX_FAILURES))


async def release_claimed_passages(tx: Transaction, claimed: Sequence[PendingPassage]) -> None:
    """Release claimed passages, so that others may claim them at once."""
    if claimed:
        await store.release_claimed_passages(tx, [passage.id for passage in claimed], claimed[0].claimed_until)


async def list_refused(tx: Transaction, graph_id: UUID, *, after: UUID | None, limit: int) -> list[RefusedPassage]:
    """Live passages of a graph that the embedder refused, oldest first, after the id `after`."""
    return await store.list_refused(tx, graph_id, after=after, limit=limit)


async def count_refused(tx: Transaction, graph_id: UUID | None = None) -> int:
    """How many live passages were set aside, up to MAX_WAITING: of a graph, else of all that the caller may use."""
    allowed = None if tx.caller.graphs is None else list(tx.caller.graphs)
    return await store.count_refused(tx, allowed if graph_id is None else [graph_id], limit=MAX_WAITING)


async def retry_refused(tx: Transaction, graph_id: UUID) -> int:
    """Put the refused passages of a graph back into the worker's queue; return how many there were."""
    retried = await store.retry_refused(tx, graph_id)
    tx.wake(EMBED_PASSAGES)
    return retried


async def raise_index_epoch(tx: Transaction, graph_id: UUID) -> None:
    """Make every cached ranking of a graph invalid, because rows that are derived from the graph changed."""
    await store.raise_index_epoch(tx, graph_id)


async def count_live(tx: Transaction, graph_id: UUID) -> int:
    """How many live passages a graph has."""
    return await store.count_live(tx, graph_id)


async def count_waiting(tx: Transaction, graph_id: UUID) -> int:
    """How many live passages of a graph have no vector yet, up to MAX_WAITING."""
    return await store.count_waiting(tx, graph_id, limit=MAX_WAITING)


async def _unsettle_neighbours(tx: Transaction, removed: Sequence[UUID]) -> None:
    """Queue the neighbours of removed passages: the worker recomputes them without the words of the removed ones."""
    if removed:
        await store.unsettle_neighbours(tx, removed)
        tx.wake(EMBED_PASSAGES)
