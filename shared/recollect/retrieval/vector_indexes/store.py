"""One function per query of `queries.sql`."""

from contextlib import suppress
from uuid import UUID

import asyncpg

from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session
from recollect.retrieval.vector_indexes.model import (
    PARTITIONS,
    LargeGraph,
    VectorIndex,
    VectorKind,
    analyze_statement,
    create_statement,
    drop_statement,
    later_candidates_statement,
    leave_out_of_statistics,
)

queries = Queries(__package__)

LOCK_MILLISECONDS = 200
"""How long a change of an index waits for transactions that use it, and keeps others waiting."""


async def try_lock(session: Session) -> bool:
    """Try to take the lock on the indexes for this connection; return whether it has it."""
    return await session.fetchval(queries.try_lock)


async def unlock(session: Session) -> None:
    """Release the lock on the indexes."""
    await session.execute(queries.unlock)


async def list_indexes(session: Session) -> dict[str, bool]:
    """The vector indexes that exist: by name, whether each is valid."""
    return {row["name"]: row["valid"] for row in await session.fetch(queries.list_indexes)}


async def list_noted(session: Session) -> list[VectorIndex]:
    """The indexes that graphs are recorded to use."""
    return [VectorIndex(**row) for row in await session.fetch(queries.list_noted)]


async def find_large(session: Session, *, memories: int, limit: int) -> list[LargeGraph]:
    """The largest graphs with `memories` or more memories, up to `limit` of each partition, the largest first."""
    return await session.fetch_objects(
        queries.find_large, LargeGraph, min_memories=memories, limit=limit, partitions=PARTITIONS
    )


async def find_partition(session: Session, tenant_id: UUID) -> int:
    """The number of the partition that holds the vectors of a tenant."""
    return await session.fetchval(queries.find_partition, tenant_id=tenant_id, partitions=PARTITIONS)


async def find_kinds(session: Session, tenant_id: UUID, graph_id: UUID, *, max_counted: int) -> list[VectorKind]:
    """The kinds of vectors that serve a graph; none while nothing is embedded by its model."""
    return await session.fetch_objects(
        queries.find_kinds, VectorKind, tenant_id=tenant_id, graph_id=graph_id, max_counted=max_counted
    )


async def note_index(
    session: Session, tenant_id: UUID, graph_id: UUID, model: str | None, dimensions: int | None
) -> None:
    """Record which index a graph's searches use; None: none."""
    await session.execute(
        queries.note_index, tenant_id=tenant_id, graph_id=graph_id, model=model, dimensions=dimensions
    )


async def count_passages(session: Session, index: VectorIndex) -> int:
    """How many passages an index would contain, roughly."""
    count: int | None = await session.fetchval(
        queries.count_passages, tenant_id=index.tenant_id, graph_id=index.graph_id
    )
    return count or 0


async def create_index(session: Session, index: VectorIndex, *, memory_mb: int) -> None:
    """Build an index in `memory_mb` of memory; takes minutes for a large graph, beside readers and writers.

    Several processes build it in shared memory (/dev/shm), of which a container may have little: then one process
    builds it, in its own memory.
    """
    await session.execute(queries.give_memory, memory=f"{memory_mb}MB")
    partition = await find_partition(session, index.tenant_id)
    create = create_statement(index, partition)
    try:
        await session.execute(create)
    except asyncpg.DiskFullError:
        await drop_index(session, index.name)
        await session.execute(queries.build_alone)
        await session.execute(create)
    await session.execute(leave_out_of_statistics(index.name))
    await session.execute(analyze_statement(partition))


async def list_candidates(session: Session) -> dict[str, int]:
    """From how many candidates each index chooses the links of a new vector, by the index's name."""
    return {row["name"]: row["candidates"] for row in await session.fetch(queries.list_candidates)}


async def set_later_candidates(operator: Operator, index: VectorIndex) -> None:
    """Set the candidates for later vectors of an index to those of its thoroughness, unless the index is in use.

    The change locks out readers and writers of the partition, and they queue behind it while it waits for its lock: so
    it waits for LOCK_MILLISECONDS only.
    """
    with suppress(asyncpg.LockNotAvailableError):
        async with operator.transaction():
            await operator.execute(queries.wait_for_locks, timeout=f"{LOCK_MILLISECONDS}ms")
            await operator.execute(later_candidates_statement(index))


async def drop_index(session: Session, name: str) -> None:
    """Drop an index."""
    await session.execute(drop_statement(name))
