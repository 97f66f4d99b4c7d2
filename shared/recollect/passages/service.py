"""Use cases of passages: index memories, take them out of search, give them vectors."""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.graphs import service as graphs
from recollect.graphs.model import Revision
from recollect.passages import store
from recollect.passages.model import EMBED_PASSAGES, Memory, PendingPassage
from recollect.platform.db import Database, Transaction

MAX_WAITING = 10_000
"""How far waiting passages are counted: beyond, the number no longer tells a caller anything."""


async def index_memories(tx: Transaction, revision: Revision, memories: Sequence[Memory]) -> None:
    """Make memories findable: by their words at once, by their meaning when the worker has embedded them."""
    if memories:
        await store.insert_passages(tx, revision, memories)
        tx.wake(EMBED_PASSAGES)


async def forget_memories(tx: Transaction, revision: Revision, memory_ids: Sequence[UUID]) -> None:
    """Take observations out of search from this revision on."""
    if memory_ids:
        await store.remove_of_memories(tx, revision, memory_ids)


async def forget_nodes(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Take nodes, their names and their observations out of search from this revision on."""
    if node_ids:
        await store.remove_of_nodes(tx, revision, node_ids)


async def hide_names(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Keep no passage of a name whose entity has something lasting to say: its passages are matched by it too."""
    await store.remove_names(tx, revision, node_ids)


async def show_names(tx: Transaction, revision: Revision, names: Sequence[Memory]) -> None:
    """Make entities findable by their names where nothing lasting else is left to find them by."""
    silent = set(await store.find_silent(tx, [name.node_id for name in names]))
    await index_memories(tx, revision, [name for name in names if name.node_id in silent])


async def tenants_with_pending(db: Database) -> list[UUID]:
    """Tenants whose passages wait for vectors."""
    async with db.system() as session:
        return await store.tenants_with_pending(session)


async def claim_pending(tx: Transaction, *, limit: int, lease_seconds: float) -> list[PendingPassage]:
    """Take up to `limit` waiting passages, oldest first, for `lease_seconds`; nobody else gets them meanwhile."""
    return await store.claim_pending(tx, limit=limit, lease_seconds=lease_seconds)


async def store_vectors(tx: Transaction, *, model: str, ids: Sequence[UUID], vectors: NDArray[np.float32]) -> int:
    """Give passages their vectors, shape (len(ids), dimensions); how many had none until now. May be repeated."""
    stored = await store.store_vectors(tx, model=model, ids=ids, vectors=vectors)
    if stored:
        await graphs.raise_index_epoch(tx, sorted(set(stored)))
    return len(stored)


async def count_waiting(tx: Transaction, graph_id: UUID) -> int:
    """How many live passages of a graph have no vector yet, up to MAX_WAITING."""
    return await store.count_waiting(tx, graph_id, limit=MAX_WAITING)
