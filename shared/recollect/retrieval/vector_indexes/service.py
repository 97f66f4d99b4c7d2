"""Use cases of maintenance: a vector index for each graph that is large enough, and for no other."""

import asyncio
from collections.abc import Mapping, Set
from itertools import chain, groupby
from uuid import UUID

from recollect.postgres.operator_sessions import Operator
from recollect.retrieval.vector_indexes import store
from recollect.retrieval.vector_indexes.model import (
    FEW_VECTORS,
    MAX_INDEXES,
    SHRUNK,
    THOROUGHNESS,
    LargeGraph,
    Thoroughness,
    VectorIndex,
    first_of_each_partition,
    indexed_kinds,
    within_partitions,
)

LOCK_PAUSE = 0.5
"""Seconds between two attempts to take the lock on the indexes."""


async def maintain_indexes(
    operator: Operator,
    *,
    from_memories: int,
    memory_mb: int,
    stopping: asyncio.Event | None = None,
    thoroughness: Mapping[int, Thoroughness] = THOROUGHNESS,
    few: int = FEW_VECTORS,
) -> list[str]:
    """Build the vector indexes that graphs of `from_memories` or more lack, drop superfluous ones; say what was done.

    `thoroughness`: how the index of so many passages or more is built. An index that is to be replaced serves until its
    successor is built. `few`: of how many vectors of one kind a large graph has an index.

    Indexes are built one at a time and by one worker only: other workers find the lock taken and do nothing. An index
    that a killed worker left half built is dropped first. Builds go on beside readers and writers, in `memory_mb` of
    PostgreSQL's memory. Once `stopping` is set, no build is started any more.
    """
    if not await store.try_lock(operator):
        return []
    try:
        needed = await _needed_indexes(operator, from_memories, thoroughness, few)
        dropped = await _drop_superfluous(operator, needed)
        built = await _build(operator, needed, memory_mb, stopping or asyncio.Event())
        replaced = await _drop_replaced(operator, needed)
        await _reduce_candidates(operator, needed)
        return dropped + built + replaced
    finally:
        await store.unlock(operator)


async def build_noted(operator: Operator, tenant_id: UUID, *, memory_mb: int) -> list[str]:
    """Build the indexes that a tenant's graphs are recorded to use but that do not exist; return what was done.

    Such as after a copy of the tenant to this server. Waits for the lock on the indexes; an index that an interrupted
    build left is dropped first.
    """
    while not await store.try_lock(operator):  # noqa: ASYNC110 -- it is another process that holds it
        await asyncio.sleep(LOCK_PAUSE)
    try:
        noted = [
            index
            for graph in await store.list_noted(operator)
            if graph.tenant_id == tenant_id
            for index in await _indexes_of(operator, graph, THOROUGHNESS, FEW_VECTORS, frozenset())
        ]
        existing = await store.list_indexes(operator)
        for index in noted:
            if not existing.get(index.name, True):
                await store.drop_index(operator, index.name)
        return await _build(operator, noted, memory_mb, asyncio.Event())
    finally:
        await store.unlock(operator)


async def _needed_indexes(
    operator: Operator, from_memories: int, thoroughness: Mapping[int, Thoroughness], few: int
) -> list[VectorIndex]:
    """The indexes that should exist, those of the largest graphs first. A graph keeps its index until it has shrunk.

    It likewise keeps a more thorough index until then. Where the graphs of a partition need more than MAX_INDEXES, the
    largest get theirs, whichever had one before.
    """
    large = await store.find_large(operator, memories=from_memories, limit=MAX_INDEXES)
    noted = {(index.tenant_id, index.graph_id) for index in await store.list_noted(operator)}
    large_enough_to_keep = await store.find_large(
        operator, memories=round(from_memories * SHRUNK), limit=10 * MAX_INDEXES
    )
    is_large = set(large)
    candidates = large + [g for g in large_enough_to_keep if (g.tenant_id, g.graph_id) in noted and g not in is_large]
    existing = await store.list_indexes(operator)
    needed = [
        (graph.partition, await _indexes_of(operator, graph, thoroughness, few, existing.keys()))
        for graph in first_of_each_partition(candidates)
    ]
    return list(chain.from_iterable(within_partitions(needed)))


async def _indexes_of(
    operator: Operator,
    graph: LargeGraph | VectorIndex,
    thoroughness: Mapping[int, Thoroughness],
    few: int,
    existing: Set[str],
) -> list[VectorIndex]:
    """The indexes that a large graph needs, if anything in it is embedded by the model that serves it."""
    kinds = await store.find_kinds(operator, graph.tenant_id, graph.graph_id, max_counted=few)
    return [
        _index_for_size(index, await store.count_passages(operator, index), thoroughness, existing=existing)
        for index in indexed_kinds(kinds, few, existing)
    ]


def _index_for_size(
    index: VectorIndex, passages: int, thoroughness: Mapping[int, Thoroughness], *, existing: Set[str]
) -> VectorIndex:
    """The index that a graph of so many passages needs; a more thorough one that exists until the graph has shrunk."""
    for min_passages, candidate in sorted(thoroughness.items(), reverse=True):
        thorough_index = index.with_thoroughness(candidate)
        if passages >= (min_passages * SHRUNK if thorough_index.name in existing else min_passages):
            return thorough_index
    return index


async def _drop_superfluous(operator: Operator, needed: list[VectorIndex]) -> list[str]:
    """Drop indexes that no graph needs, after searches have stopped using them; return what was done.

    An index that one of the same vectors is to replace stays.
    """
    for index in await store.list_noted(operator):
        if index not in needed:
            await store.note_index(operator, index.tenant_id, index.graph_id, None, None)
    needed_names = {variant.name for index in needed for variant in (index, *index.alternatives)}
    existing = await store.list_indexes(operator)
    superfluous = [name for name, is_valid in existing.items() if not is_valid or name not in needed_names]
    for name in superfluous:
        await store.drop_index(operator, name)
    return [f"dropped {name}" for name in superfluous]


async def _drop_replaced(operator: Operator, needed: list[VectorIndex]) -> list[str]:
    """Drop indexes whose replacements exist; return what was done."""
    existing = await store.list_indexes(operator)
    alternatives = [other.name for index in needed if existing.get(index.name) for other in index.alternatives]
    replaced = [name for name in alternatives if name in existing]
    for name in replaced:
        await store.drop_index(operator, name)
    return [f"dropped {name}" for name in replaced]


async def _reduce_candidates(operator: Operator, needed: list[VectorIndex]) -> None:
    """Set the candidates for later vectors of indexes that were built with more; an index in use waits for a retry."""
    candidates = await store.list_candidates(operator)
    for index in needed:
        later = index.thoroughness.candidates_later
        if candidates.get(index.name, later) != later:
            await store.set_later_candidates(operator, index)


async def _build(operator: Operator, needed: list[VectorIndex], memory_mb: int, stopping: asyncio.Event) -> list[str]:
    existing = await store.list_indexes(operator)
    noted = await store.list_noted(operator)
    built: list[str] = []
    for _, of_graph in groupby(needed, key=lambda index: index.graph_id):
        indexes = list(of_graph)
        for index in indexes:
            if stopping.is_set():
                return built
            if index.name not in existing:
                passages = await store.count_passages(operator, index)
                await store.create_index(operator, index, memory_mb=index.memory_mb(passages, memory_mb))
                built.append(f"built {index.name}")
        # Only now: a search of a graph that is recorded to have indexes compares each vector of a kind without one.
        if indexes[0] not in noted:
            await store.note_index(
                operator, indexes[0].tenant_id, indexes[0].graph_id, indexes[0].model, indexes[0].dimensions
            )
    return built
