"""Use cases of similarity."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from recollect.fairness.computing import interleave
from recollect.graph.graphs.model import Graph
from recollect.graph.graphs.view import GraphView
from recollect.graph.passage_words import service as passage_words
from recollect.postgres.transactions import Transaction
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import Question
from recollect.retrieval.recall.terms import counted_words, question_terms
from recollect.retrieval.recall.updates import probably_replaces
from recollect.retrieval.similarity import store
from recollect.retrieval.similarity.model import NearDuplicate
from recollect.words.analysis import asked_words


async def find_near_duplicates(
    tx: Transaction, graph: Graph, questions: Sequence[Question], node_ids: Sequence[UUID | None]
) -> list[list[NearDuplicate]]:
    """Find, for each new text, older memories that say nearly the same, nearest first."""
    if any(question.older is not None for question in questions):
        serving_model = (await recall.find_state(tx, graph)).model
        questions = [question.for_model(serving_model) for question in questions]
    asked = [await interleave(asked_words(question.text)) for question in questions]
    counts = await passage_words.count_words(tx, graph.id, [word for words in asked for word in words])
    # Only the order of words by rarity is needed here, not their weights.
    terms = [question_terms(counted_words(words, counts), 0, all_known=False) for words in asked]
    duplicates = await store.find_near_duplicates(tx, graph, questions, terms, node_ids)
    return [
        [replace(older, superseded=probably_replaces(question.text, older.text)) for older in found]
        for question, found in zip(questions, duplicates, strict=True)
    ]


async def find_similar(view: GraphView, node_id: UUID, *, min_score: float, limit: int) -> list[tuple[UUID, float]]:
    """Active facts that mean nearly the same as a node, with their cosines, nearest first.

    Facts that are not embedded yet are left out, in the past also those that were removed before they were embedded;
    where a vector index serves the graph, also those that are embedded by another model than that of the index.
    """
    if view.at is not None:
        return await store.find_past_similar(view, node_id, min_score=min_score, limit=limit)
    state = await recall.find_state(view.tx, view.graph)
    return await store.find_similar(view, state, node_id, min_score=min_score, limit=limit)


async def find_similar_entities(
    tx: Transaction, graph: Graph, facts: Mapping[UUID, float], *, limit: int
) -> list[tuple[UUID, UUID]]:
    """Pairs of an active fact and an entity with a memory that means nearly the same, nearest first.

    `facts`: the least cosine of each fact; at most `limit` entities a fact. Facts that are not embedded are left out.
    """
    return await store.find_similar_entities(tx, graph, await recall.find_state(tx, graph), facts, limit=limit)
