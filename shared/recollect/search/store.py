"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from recollect.graphs.model import Graph, Moment
from recollect.platform.db import Transaction
from recollect.platform.sql import Queries
from recollect.search.model import (
    CANDIDATES,
    MAX_CLOSE,
    MEANING_WEIGHT,
    MIN_ANY_CASE,
    MIN_CLOSE,
    MIN_MEANING,
    WORDS_WEIGHT,
    Close,
    Hit,
    Question,
    RecallFilter,
    SubstringQuery,
    like_pattern,
)

queries = Queries("recollect.search")


async def search_substring(tx: Transaction, graph: Graph, query: SubstringQuery, at: Moment | None) -> list[UUID]:
    """Entities (`at`: as they were) that match, best first; up to one more than the query's limit."""
    pattern = like_pattern(query.text)
    statement = queries.search_substring if at is None else queries.search_substring_at
    past = () if at is None else (at.revision, at.at)
    rows = await tx.fetch(
        statement,
        tx.tenant_id,
        graph.id,
        pattern,
        pattern[1:-1],
        query.kind,
        query.tags,
        query.min_importance,
        query.max_importance,
        query.offset,
        query.limit + 1,
        *past,
    )
    return [row["id"] for row in rows]


async def recall(tx: Transaction, graph: Graph, question: Question, only: RecallFilter, *, limit: int) -> list[Hit]:
    """Memories that answer the question, best first."""
    rows = await tx.fetch(
        queries.recall,
        tx.tenant_id,
        graph.id,
        question.text,
        _half(question.vector),
        question.model,
        CANDIDATES,
        only.include_outdated or only.status == "outdated",
        only.fresh_only,
        only.kinds,
        only.tags,
        only.about,
        only.min_importance,
        only.since,
        only.until,
        MIN_MEANING,
        WORDS_WEIGHT,
        MEANING_WEIGHT,
        limit,
        only.status,
        only.named,
    )
    return [Hit(**row) for row in rows]


async def find_close(
    tx: Transaction, graph: Graph, questions: Sequence[Question], node_ids: Sequence[UUID | None]
) -> list[list[Close]]:
    """For each text, older memories that say nearly the same, nearest first; of its node, where one is given."""
    close: list[list[Close]] = [[] for _ in questions]
    asked = [place for place, question in enumerate(questions) if question.vector is not None]
    if not asked:
        return close
    rows = await tx.fetch(
        queries.find_close,
        tx.tenant_id,
        graph.id,
        asked,
        [questions[place].text for place in asked],
        [_half(questions[place].vector) for place in asked],
        [node_ids[place] for place in asked],
        questions[asked[0]].model,
        MAX_CLOSE,
        MIN_CLOSE,
    )
    for row in rows:
        close[row["place"]].append(Close(row["memory_id"], row["text"], row["score"]))
    return close


async def find_mentioned(tx: Transaction, graph: Graph, names: Sequence[str], *, limit: int) -> list[UUID]:
    """Live entities that have, or had before a merge, one of these names, oldest first."""
    small = sorted({name.lower() for name in names})
    rows = await tx.fetch(queries.find_mentioned, tx.tenant_id, graph.id, names, small, MIN_ANY_CASE, limit)
    return [row["id"] for row in rows]


async def find_similar(
    tx: Transaction, graph: Graph, node_id: UUID, *, min_score: float, limit: int
) -> list[tuple[UUID, float]]:
    """Active facts that mean nearly the same as a node, with their cosines, nearest first."""
    rows = await tx.fetch(queries.find_similar, tx.tenant_id, graph.id, node_id, min_score, limit)
    return [(row["id"], row["score"]) for row in rows]


async def vectors_ready(tx: Transaction) -> bool:
    """Whether the database can compare vectors."""
    ready: bool = await tx.fetchval(queries.vectors_ready)
    return ready


def _half(vector: NDArray[np.float32] | None) -> HalfVector | None:
    return None if vector is None else HalfVector(vector)
