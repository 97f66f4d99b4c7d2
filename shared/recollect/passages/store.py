"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from recollect.graphs.model import Revision
from recollect.ids import new_id
from recollect.passages.model import Memory, PendingPassage, split
from recollect.platform.db import Session, Transaction
from recollect.platform.sql import Queries

queries = Queries("recollect.passages")


async def insert_passages(tx: Transaction, revision: Revision, memories: Sequence[Memory]) -> None:
    """Store the passages of these memories."""
    pieces = [(memory, place, text) for memory in memories for place, text in enumerate(split(memory.text))]
    await tx.execute(
        queries.insert_passages,
        tx.tenant_id,
        revision.graph.id,
        revision.number,
        [new_id() for _ in pieces],
        [memory.node_id for memory, _, _ in pieces],
        [memory.memory_id for memory, _, _ in pieces],
        [memory.source for memory, _, _ in pieces],
        [place for _, place, _ in pieces],
        [memory.thread for memory, _, _ in pieces],
        [memory.said_at for memory, _, _ in pieces],
        [memory.expires_at for memory, _, _ in pieces],
        [memory.about for memory, _, _ in pieces],
        [text for _, _, text in pieces],
    )


async def remove_of_memories(tx: Transaction, revision: Revision, memory_ids: Sequence[UUID]) -> None:
    """Take the passages of removed observations out of search."""
    await tx.execute(queries.remove_passages_of_memories, tx.tenant_id, revision.number, memory_ids)


async def remove_of_nodes(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Take every passage of removed nodes out of search."""
    await tx.execute(queries.remove_passages_of_nodes, tx.tenant_id, revision.number, node_ids)


async def remove_names(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Take the names of these nodes out of search where they have something lasting to say."""
    await tx.execute(queries.remove_names, tx.tenant_id, revision.number, node_ids)


async def find_silent(tx: Transaction, node_ids: Sequence[UUID]) -> list[UUID]:
    """Those of these nodes that have no passage that lasts."""
    return [row["id"] for row in await tx.fetch(queries.find_silent, tx.tenant_id, node_ids)]


async def tenants_with_pending(session: Session) -> list[UUID]:
    """Tenants whose passages wait for vectors."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_pending)]


async def claim_pending(tx: Transaction, *, limit: int, lease_seconds: float) -> list[PendingPassage]:
    """Take up to `limit` waiting passages for `lease_seconds`."""
    rows = await tx.fetch(queries.claim_pending, tx.tenant_id, limit, timedelta(seconds=lease_seconds))
    return [PendingPassage(**row) for row in rows]


async def store_vectors(
    tx: Transaction, *, model: str, ids: Sequence[UUID], vectors: NDArray[np.float32]
) -> list[UUID]:
    """Give passages their vectors; the graph of each passage that had none until now."""
    rows = await tx.fetch(queries.store_vectors, tx.tenant_id, model, ids, [HalfVector(vector) for vector in vectors])
    return [row["graph_id"] for row in rows]


async def count_waiting(tx: Transaction, graph_id: UUID, *, limit: int) -> int:
    """How many live passages of a graph have no vector yet, counted up to `limit`."""
    count: int = await tx.fetchval(queries.count_waiting, tx.tenant_id, graph_id, limit)
    return count
