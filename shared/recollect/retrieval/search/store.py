"""One function per query of `queries.sql`. `at` None reads what is now, else what was."""

from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

from recollect.graph.graphs.model import Graph, Moment
from recollect.graph.nodes.model import any_case
from recollect.platform.db import Transaction
from recollect.platform.sql import Queries
from recollect.retrieval.search import boolean
from recollect.retrieval.search.fuzzy import Bounds
from recollect.retrieval.search.model import (
    FIRST,
    MIN_ANY_CASE,
    DateQuery,
    FuzzyQuery,
    FuzzyTexts,
    LabelMatch,
    LabelQuery,
    RankedQuery,
    SearchFilter,
    SubstringQuery,
    like_pattern,
)
from recollect.retrieval.search.words import WORD, word_pattern

queries = Queries(__package__)

ALL = 1_000_000_000
"""More rows than are read: whoever streams them stops by himself."""


async def search_substring(tx: Transaction, graph: Graph, query: SubstringQuery, at: Moment | None) -> list[UUID]:
    """Entities that match, best first; up to one more than the query's limit."""
    pattern = like_pattern(query.text)
    among = _among(tx, graph, at, query)
    rows = await tx.fetch(queries.search_substring, *among, pattern, pattern[1:-1], *_page(query))
    return [row["id"] for row in rows]


async def search_ranked(
    tx: Transaction,
    graph: Graph,
    query: RankedQuery,
    words: Sequence[str],
    at: Moment | None,
    *,
    entities: int | None,
) -> list[tuple[UUID, float]]:
    """Entities that hold one of these words, with their scores, best first; up to one more than the query's limit.

    `entities`: how many live ones there are, expired ones too, where that is known and nothing is filtered.
    """
    terms = ([like_pattern(word) for word in words], [word_pattern(word) for word in words], WORD)
    rows = await tx.fetch(queries.search_ranked, *_among(tx, graph, at, query), *terms, entities, *_page(query))
    return [(row["id"], row["score"]) for row in rows]


async def match_labels(tx: Transaction, graph: Graph, query: LabelQuery, at: Moment | None) -> list[LabelMatch]:
    """Nodes whose summary or tags hold enough of the words, those that hold most first."""
    rows = await tx.fetch(
        queries.match_labels,
        tx.tenant_id,
        graph.id,
        query.words,
        query.any_word,
        query.limit,
        query.share,
        query.kinds,
        any_case(query.tags),
        at.revision if at else None,
        at.at if at else None,
        query.fresh_only,
    )
    return [LabelMatch(**row) for row in rows]


async def search_boolean(
    tx: Transaction, graph: Graph, query: SearchFilter, plan: boolean.BooleanPlan, at: Moment | None
) -> list[UUID]:
    """Entities that a boolean query holds of, oldest first; up to one more than the query's limit."""
    rows = await tx.fetch(
        queries.search_boolean,
        *_among(tx, graph, at, query),
        [term.field for term in plan.terms],
        [like_pattern(term.text) for term in plan.terms],
        [required for required, _ in plan.ways],
        [forbidden for _, forbidden in plan.ways],
        plan.is_universal,
        *_page(query),
    )
    return [row["id"] for row in rows]


async def count_trigrams(tx: Transaction, text: str) -> tuple[str, int]:
    """A text in small letters as PostgreSQL makes them, and how many distinct trigrams it has."""
    row = await tx.fetchrow(queries.count_trigrams, text)
    assert row is not None
    return row["folded"], row["trigrams"]


async def set_similarity(tx: Transaction, similarity: float) -> None:
    """From which similarity trigrams find a text, for the rest of the transaction."""
    await tx.execute(queries.set_similarity, f"{similarity:.9f}")


async def fuzzy_entities(
    tx: Transaction, graph: Graph, query: FuzzyQuery, folded: str, within: Bounds, at: Moment | None
) -> AsyncIterator[FuzzyTexts]:
    """Names and kinds within these bounds."""
    near = (folded, within.least, within.most, within.similarity is not None)
    async for row in tx.stream(queries.fuzzy_entities, *_among(tx, graph, at, query), *near, FIRST, ALL):
        yield FuzzyTexts(**row)


async def fuzzy_statements(
    tx: Transaction, graph: Graph, query: FuzzyQuery, folded: str, within: Bounds, at: Moment | None
) -> AsyncIterator[FuzzyTexts]:
    """Observations within these bounds."""
    near = (folded, within.least, within.most, within.similarity is not None, FIRST, ALL, within.similarity or 0.0)
    async for row in tx.stream(queries.fuzzy_statements, *_among(tx, graph, at, query), *near):
        yield FuzzyTexts(**row)


async def search_dates(tx: Transaction, graph: Graph, query: DateQuery, at: Moment | None) -> list[UUID]:
    """Entities that were made or last changed in a time, oldest first; up to one more than the query's limit."""
    among = _among(tx, graph, at, query)
    rows = await tx.fetch(queries.search_dates, *among, query.since, query.until, *_page(query))
    return [row["id"] for row in rows]


async def find_mentioned(tx: Transaction, graph: Graph, names: Sequence[str], *, limit: int) -> list[UUID]:
    """Live entities that have, or had before a merge, one of these names, oldest first."""
    small = sorted({name.lower() for name in names})
    rows = await tx.fetch(queries.find_mentioned, tx.tenant_id, graph.id, names, small, MIN_ANY_CASE, limit)
    return [row["id"] for row in rows]


def _among(tx: Transaction, graph: Graph, at: Moment | None, query: SearchFilter) -> tuple[Any, ...]:
    """What every search begins with: where it looks, when, and its filters."""
    past = (None, None) if at is None else (at.revision, at.at)
    importance = [query.min_importance, query.max_importance]
    return tx.tenant_id, graph.id, *past, query.kind, any_case(query.tags), importance, query.archived


def _page(query: SearchFilter) -> tuple[int, int]:
    return query.offset, query.limit + 1
