"""Use cases of upkeep: a vector index for each graph that is large enough, and none else."""

import asyncio
from collections.abc import Mapping, Set
from uuid import UUID

from recollect.platform.operator_sessions import Operator
from recollect.retrieval.vector_indexes import store
from recollect.retrieval.vector_indexes.model import (
    MAX_INDEXES,
    SHRUNK,
    THOROUGHNESS,
    LargeGraph,
    Thoroughness,
    VectorIndex,
    first_of_each_partition,
)

LOCK_PAUSE = 0.5
"""How often whoever must see to the indexes asks whether nobody else does."""


async def maintain_indexes(
    operator: Operator,
    *,
    from_memories: int,
    memory_mb: int,
    stopping: asyncio.Event | None = None,
    thoroughness: Mapping[int, Thoroughness] = THOROUGHNESS,
) -> list[str]:
    """Build the vector indexes that graphs of `from_memories` or more lack, drop those that none needs; what was done.

    `thoroughness`: how that of so many passages or more is built. One that is to be replaced serves until then.

    One at a time and only by one worker at once: the others find the lock taken and do nothing. What a killed worker
    left half built is taken away first. Building goes on beside readers and writers, in `memory_mb` of PostgreSQL's.
    Once `stopping` is set none is begun any more.
    """
    if not await store.try_lock(operator):
        return []
    try:
        wanted = await _needed_indexes(operator, from_memories, thoroughness)
        dropped = await _drop(operator, wanted)
        built = await _build(operator, wanted, memory_mb, stopping or asyncio.Event())
        replaced = await _drop_replaced(operator, wanted)
        await _ease_additions(operator, wanted)
        return dropped + built + replaced
    finally:
        await store.unlock(operator)


async def build_noted(operator: Operator, tenant_id: UUID, *, memory_mb: int) -> list[str]:
    """Build the indexes by which a tenant's graphs search and that are not there; what was done.

    As where the tenant was copied here. Waits until nobody else sees to the indexes; what an interrupted build left is
    taken away first.
    """
    while not await store.try_lock(operator):  # noqa: ASYNC110 -- it is another process that holds it
        await asyncio.sleep(LOCK_PAUSE)
    try:
        noted = [
            _built_for(index, await store.count_passages(operator, index), THOROUGHNESS, there=frozenset())
            for index in await store.list_noted(operator)
            if index.tenant_id == tenant_id
        ]
        there = await store.list_indexes(operator)
        for index in noted:
            if not there.get(index.name, True):
                await store.drop_index(operator, index.name)
        return await _build(operator, noted, memory_mb, asyncio.Event())
    finally:
        await store.unlock(operator)


async def _needed_indexes(
    operator: Operator, from_memories: int, thoroughness: Mapping[int, Thoroughness]
) -> list[VectorIndex]:
    """The indexes that there should be, the largest graphs' first: those that have one keep it until they shrank.

    So do those that have a more thorough one. Of more than MAX_INDEXES graphs of a part the largest have one,
    whichever had it before.
    """
    large = await store.find_large(operator, memories=from_memories, limit=MAX_INDEXES)
    noted = {(index.tenant_id, index.graph_id) for index in await store.list_noted(operator)}
    shrinking = await store.find_large(operator, memories=round(from_memories * SHRUNK), limit=10 * MAX_INDEXES)
    there = set(large)
    kept = large + [g for g in shrinking if (g.tenant_id, g.graph_id) in noted and g not in there]
    names = await store.list_indexes(operator)

    async def needed(graph: LargeGraph) -> VectorIndex | None:
        index = await store.find_model(operator, graph.tenant_id, graph.graph_id)
        if index is None:
            return None
        return _built_for(index, await store.count_passages(operator, index), thoroughness, there=names.keys())

    found = [await needed(graph) for graph in first_of_each_partition(kept)]
    return [index for index in found if index is not None]


def _built_for(
    index: VectorIndex, passages: int, thoroughness: Mapping[int, Thoroughness], *, there: Set[str]
) -> VectorIndex:
    """The index as a graph of so many passages needs it; the more thorough one that is there until it has shrunk."""
    for least, built in sorted(thoroughness.items(), reverse=True):
        needed = index.built(built)
        if passages >= (least * SHRUNK if needed.name in there else least):
            return needed
    return index


async def _drop(operator: Operator, wanted: list[VectorIndex]) -> list[str]:
    """Searches first stop to use an index; then it goes. One that another of the same vectors replaces stays."""
    for index in await store.list_noted(operator):
        if index not in wanted:
            await store.note_index(operator, index.tenant_id, index.graph_id, None, None)
    names = {one.name for index in wanted for one in (index, *index.others)}
    there = await store.list_indexes(operator)
    gone = [name for name, valid in there.items() if not valid or name not in names]
    for name in gone:
        await store.drop_index(operator, name)
    return [f"dropped {name}" for name in gone]


async def _drop_replaced(operator: Operator, wanted: list[VectorIndex]) -> list[str]:
    """An index goes once the one that replaces it is there."""
    there = await store.list_indexes(operator)
    replaced = [other.name for index in wanted if there.get(index.name) for other in index.others]
    gone = [name for name in replaced if name in there]
    for name in gone:
        await store.drop_index(operator, name)
    return [f"dropped {name}" for name in gone]


async def _ease_additions(operator: Operator, wanted: list[VectorIndex]) -> None:
    """An index that was built among many candidates takes what comes later among fewer; next time where it is held."""
    candidates = await store.list_candidates(operator)
    for index in wanted:
        later = index.thoroughness.candidates_later
        if candidates.get(index.name, later) != later:
            await store.set_later_candidates(operator, index)


async def _build(operator: Operator, wanted: list[VectorIndex], memory_mb: int, stopping: asyncio.Event) -> list[str]:
    there = await store.list_indexes(operator)
    noted = await store.list_noted(operator)
    built = []
    for index in wanted:
        if stopping.is_set():
            break
        if index.name not in there:
            passages = await store.count_passages(operator, index)
            await store.create_index(operator, index, memory_mb=index.memory_mb(passages, memory_mb))
            built.append(f"built {index.name}")
        if index not in noted:
            await store.note_index(operator, index.tenant_id, index.graph_id, index.model, index.dimensions)
    return built
