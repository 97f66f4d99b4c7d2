"""One function per query of `queries.sql`."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from pgvector import HalfVector

from recollect.graph.graphs.model import Graph
from recollect.graph.graphs.view import GraphView
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction
from recollect.retrieval.recall.model import GraphState, Question, vector_type
from recollect.retrieval.recall.ranking import Term, any_of, rarest_terms
from recollect.retrieval.similarity.model import (
    APPROXIMATE_CANDIDATES,
    MAX_COMPARED,
    MAX_COMPARED_WITH_NEW,
    MAX_LOOKED_AT,
    MAX_NEAR_DUPLICATES,
    MIN_NEAR_DUPLICATE_SIMILARITY,
    NearDuplicate,
)

queries = Queries(__package__)


async def find_near_duplicates(
    tx: Transaction,
    graph: Graph,
    questions: Sequence[Question],
    terms: Sequence[Sequence[Term]],
    node_ids: Sequence[UUID | None],
) -> list[list[NearDuplicate]]:
    """For each text, older memories that say nearly the same, nearest first; of its node, where one is given.

    `terms`: the words of each text. Where no node is given, memories are found by the rare words alone.
    """
    duplicates: list[list[NearDuplicate]] = [[] for _ in questions]
    vectors = {position: question.vector for position, question in enumerate(questions) if question.vector is not None}
    if not (positions := list(vectors)):
        return duplicates
    rows = await tx.fetch(
        queries.find_near_duplicates,
        graph_id=graph.id,
        positions=positions,
        texts=[questions[position].text for position in positions],
        vectors=[HalfVector(vector) for vector in vectors.values()],
        node_ids=[node_ids[position] for position in positions],
        model=questions[positions[0]].model,
        max_duplicates=MAX_NEAR_DUPLICATES,
        min_similarity=MIN_NEAR_DUPLICATE_SIMILARITY,
        candidates=APPROXIMATE_CANDIDATES,
        words=[any_of(rarest_terms(terms[position], MAX_COMPARED_WITH_NEW)) for position in positions],
        max_others=MAX_COMPARED_WITH_NEW,
    )
    for row in rows:
        duplicates[row["position"]].append(NearDuplicate(row["memory_id"], row["text"], row["score"]))
    return duplicates


async def find_similar(
    view: GraphView, state: GraphState, node_id: UUID, *, min_score: float, limit: int
) -> list[tuple[UUID, float]]:
    """Active facts that mean nearly the same as a node, with their cosines, nearest first."""
    rows = await view.fetch(
        queries.find_similar.with_types(vector=vector_type(state.indexed_dimensions)),
        indexed_model=state.indexed_model,
        node_id=node_id,
        min_score=min_score,
        limit=limit,
        candidates=APPROXIMATE_CANDIDATES + limit,
        max_compared=MAX_COMPARED,
        max_looked_at=MAX_LOOKED_AT,
    )
    return [(row["id"], row["score"]) for row in rows]


async def find_past_similar(
    view: GraphView, node_id: UUID, *, min_score: float, limit: int
) -> list[tuple[UUID, float]]:
    """`find_similar` in a view of the past."""
    rows = await view.fetch(
        queries.find_past_similar,
        node_id=node_id,
        min_score=min_score,
        limit=limit,
        max_compared=MAX_COMPARED,
        max_looked_at=MAX_LOOKED_AT,
    )
    return [(row["id"], row["score"]) for row in rows]


async def find_similar_entities(
    tx: Transaction, graph: Graph, state: GraphState, facts: Mapping[UUID, float], *, limit: int
) -> list[tuple[UUID, UUID]]:
    """Pairs of an active fact and an entity with a memory that means nearly the same, nearest first."""
    rows = await tx.fetch(
        queries.find_similar_entities.with_types(vector=vector_type(state.indexed_dimensions)),
        indexed_model=state.indexed_model,
        graph_id=graph.id,
        fact_ids=list(facts),
        min_scores=list(facts.values()),
        limit=limit,
        candidates=APPROXIMATE_CANDIDATES + limit,
        max_compared=MAX_COMPARED,
        max_looked_at=MAX_LOOKED_AT,
    )
    return [(row["fact_id"], row["entity_id"]) for row in rows]
