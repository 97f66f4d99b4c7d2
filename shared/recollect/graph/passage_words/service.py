"""Use cases of words: count in how many passages of a graph each is."""

import math
from collections.abc import Sequence
from uuid import UUID

from recollect.graph.passage_words import store
from recollect.graph.passage_words.model import COUNTED_AT_MOST
from recollect.graph.passages import service as passages
from recollect.postgres.transactions import Transaction
from recollect.words.analysis import AskedWord, lexemes_of


async def count_words(
    tx: Transaction, graph_id: UUID, words: Sequence[AskedWord], *, looked_at: int = 0
) -> dict[str, int]:
    """How many passages of a graph have each lexeme of these words, about; without lexemes that none has.

    Of lexemes that were not counted, or that one passage has, up to `looked_at` passages are looked at.
    """
    return await store.count_words(tx, graph_id, lexemes_of(words), looked_at=looked_at)


async def graphs_to_count(tx: Transaction, *, limit: int) -> list[UUID]:
    """Graphs that have changed much since their words were last counted, at most `limit`, in no fixed order."""
    return await store.graphs_to_count(tx, limit=limit)


async def recount_terms(tx: Transaction, graph_id: UUID) -> None:
    """Count the words of a graph that has changed much, unless another worker has done so or is doing so."""
    memories = await store.lock_changed_graph(tx, graph_id)
    if memories is not None:
        await _recount(tx, graph_id, memories)


async def lock_term_counts(tx: Transaction, graph_id: UUID) -> None:
    """Keep workers from counting the words of a graph until this transaction ends: a count reads what it deletes."""
    await store.lock_term_counts(tx, graph_id)


async def recount_graph(tx: Transaction, graph_id: UUID) -> None:
    """Count the words of one graph now, so that words that no memory contains any more are forgotten."""
    await _recount(tx, graph_id, await store.count_memories(tx, graph_id))


async def _recount(tx: Transaction, graph_id: UUID, memories: int) -> None:
    sampling_step = max(1, math.ceil(await passages.count_live(tx, graph_id) / COUNTED_AT_MOST))
    await store.recount_terms(tx, graph_id, every=sampling_step, memories=memories)
