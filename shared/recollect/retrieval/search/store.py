"""One function per query of `queries.sql`. A view of the past is searched as it was."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from recollect.graph.graphs.model import Graph
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes.model import any_case, unique
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import STREAMED, Transaction
from recollect.retrieval.search import boolean
from recollect.retrieval.search.fuzzy import NearForm, min_similarity
from recollect.retrieval.search.model import (
    MIN_ANY_CASE,
    DateQuery,
    FuzzyQuery,
    FuzzyTexts,
    LabelMatch,
    LabelQuery,
    RankedQuery,
    SearchFilter,
    SubstringQuery,
    in_small_letters,
    like_pattern,
    plain_pattern,
)
from recollect.retrieval.search.words import LETTER_AS_APOSTROPHE, WORD, word_pattern
from recollect.words.analysis import AskedWord, has_any, query_of

queries = Queries(__package__)

MAX_SUBSTRING_ROWS = 2_000
"""Observations with a substring that are all read; a substring with more of them is common."""

MAX_SCANNED_ENTITIES = 5_000
"""The number of oldest entities that are searched for a page of a common substring."""

FETCHED_CHARACTERS = 500_000
"""Characters of texts that a fuzzy search fetches at a time: those of STREAMED of the longest texts."""

MAX_FETCHED = 2_000
"""Texts that it fetches at a time, however short: reading them takes the event loop a few milliseconds."""


EXAMINED = 1_000
"""Passages with a word that are looked through for other forms of it, at most."""

SAMPLED = 50
"""Of these, the passages from which the forms are taken."""


async def search_substring(
    view: GraphView,
    query: SubstringQuery,
    *,
    gathered: int = MAX_SUBSTRING_ROWS,
    max_scanned: int = MAX_SCANNED_ENTITIES,
) -> list[UUID]:
    """Entities that match, best first; up to one more than the query's limit.

    `gathered`, `max_scanned`: the bounds of a search of the present, as MAX_SUBSTRING_ROWS and MAX_SCANNED_ENTITIES.
    """
    parameters = {**_filter(query), **substring_patterns(query.text), **_page(query)}
    bound = {"gathered": gathered} if view.at is None else {}
    [found] = await view.fetch(queries.search_substring, **bound, **parameters)
    if not found["is_common"]:
        return list(found["ids"])
    return await view.fetch_column(queries.search_common_substring, "id", max_scanned=max_scanned, **parameters)


async def sample_words(view: GraphView, asked: Mapping[str, AskedWord]) -> list[str]:
    """Names and texts of passages that have words in any form; those come first that have them in other forms."""
    return await view.fetch_column(
        queries.sample_words,
        "text",
        words=[query_of(forms) for forms in asked.values()],
        regexes=[word_pattern(word) for word in asked],
        examined=EXAMINED,
        sampled=SAMPLED,
    )


async def search_ranked(
    view: GraphView,
    query: RankedQuery,
    words: Sequence[str],
    others: Mapping[str, Sequence[str]],
    *,
    entities: int | None,
) -> list[tuple[UUID, float]]:
    """Entities that contain one of these words, with their scores, best first; up to one more than the query's limit.

    `others`: other forms of words in small letters, which count as these. `entities`: the number of live ones, archived
    ones included and expired ones not, if it is known and nothing is filtered.
    """
    rows = await view.fetch(
        queries.search_ranked,
        **_filter(query),
        patterns=unique(like_pattern(form) for word in words for form in (word, *_others(word, others))),
        regexes=[word_pattern(word, *_others(word, others)) for word in words],
        word=WORD,
        apostrophe=LETTER_AS_APOSTROPHE,
        entities=entities,
        **_page(query),
    )
    return [(row["id"], row["score"]) for row in rows]


def _others(word: str, others: Mapping[str, Sequence[str]]) -> Sequence[str]:
    return others.get(word.lower(), ())


async def match_labels(view: GraphView, query: LabelQuery) -> list[LabelMatch]:
    """Nodes whose summary or tags contain enough of the words, those with most of them first."""
    return await view.fetch_as(
        queries.match_labels,
        lambda row: _label_match(row, query.words),
        words=[query_of(word) for word in query.words],
        optional=[word in query.optional for word in query.words],
        any_word=query.any_word,
        limit=query.limit,
        min_share=query.share,
        kinds=any_case(query.kinds),
        tags=any_case(query.tags),
        fresh_only=query.fresh_only,
    )


def _label_match(row: asyncpg.Record, words: Sequence[AskedWord]) -> LabelMatch:
    """A match with its summary, or with those of its tags that have words of the question."""
    tags = [tag for tag in row["tags"] if has_any(tag, words)] if row["is_tags"] else []
    return LabelMatch(row["node_id"], ", ".join(tags) if row["is_tags"] else row["summary"], row["share"])


async def search_boolean(view: GraphView, query: SearchFilter, plan: boolean.BooleanPlan) -> list[UUID]:
    """Entities that match a boolean query, oldest first; up to one more than the query's limit."""
    return await view.fetch_column(
        queries.search_boolean,
        "id",
        **_filter(query),
        **term_patterns(plan.terms),
        required=[required for required, _ in plan.conjunctions],
        forbidden=[forbidden for _, forbidden in plan.conjunctions],
        is_universal=plan.is_universal,
        **_page(query),
    )


async def count_trigrams(tx: Transaction, *texts: str) -> list[tuple[str, int]]:
    """Texts in lower case as PostgreSQL folds them, each with the number of its distinct trigrams."""
    rows = await tx.fetch(queries.count_trigrams, texts=texts)
    return [(row["folded"], row["trigrams"]) for row in rows]


async def set_similarity(tx: Transaction, similarity: float) -> None:
    """Set the least similarity of texts that trigrams find, for the rest of the transaction."""
    await tx.execute(queries.set_similarity, similarity=f"{similarity:.9f}")


async def fuzzy_entities(view: GraphView, query: FuzzyQuery, forms: Sequence[NearForm]) -> AsyncIterator[FuzzyTexts]:
    """Names and kinds within the bounds of the query's forms."""
    near = near_parameters(forms)
    async for row in view.stream(queries.fuzzy_entities, prefetch=_prefetch(forms), **_filter(query), **near):
        yield FuzzyTexts(**row)


async def fuzzy_statements(view: GraphView, query: FuzzyQuery, forms: Sequence[NearForm]) -> AsyncIterator[FuzzyTexts]:
    """Observations within the bounds of the query's forms."""
    near = {**near_parameters(forms), "min_similarity": min_similarity(forms) or 0.0}
    async for row in view.stream(queries.fuzzy_statements, prefetch=_prefetch(forms), **_filter(query), **near):
        yield FuzzyTexts(**row)


async def fuzzy_words(view: GraphView, query: FuzzyQuery, words: str, *, examined: int) -> list[FuzzyTexts]:
    """Names and observations of entities with all words of a fuzzy query (`words`, a tsquery): `examined` at most."""
    return await view.fetch_objects(queries.fuzzy_words, FuzzyTexts, **_filter(query), words=words, examined=examined)


async def search_dates(view: GraphView, query: DateQuery) -> list[UUID]:
    """Entities that were created or last changed in a time, oldest first; up to one more than the query's limit."""
    return await view.fetch_column(
        queries.search_dates, "id", **_filter(query), since=query.since, until=query.until, **_page(query)
    )


async def complete_names(view: GraphView, prefix: str, *, examined: int, limit: int) -> list[str]:
    """Names of live entities with a prefix, in alphabetical order, among the `examined` names that follow it."""
    return await view.tx.fetch_column(
        queries.complete_names, "name", graph_id=view.graph.id, prefix=prefix, examined=examined, limit=limit
    )


async def find_mentioned(tx: Transaction, graph: Graph, names: Sequence[str], *, limit: int) -> list[UUID]:
    """Live entities with one of these names, or with such an alias, oldest first."""
    return await tx.fetchval(
        queries.find_mentioned,
        graph_id=graph.id,
        names=names,
        lowered_names=in_small_letters(names),
        min_length=MIN_ANY_CASE,
        limit=limit,
    )


def _filter(query: SearchFilter) -> dict[str, Any]:
    """The filter parameters of every search."""
    return {
        "kind": query.kind,
        "tags": any_case(query.tags),
        "importance": [query.min_importance, query.max_importance],
        "archived": query.archived,
    }


def substring_patterns(text: str) -> dict[str, Any]:
    """The parameters of a search for a substring."""
    pattern = like_pattern(text)
    return {"patterns": [pattern], "name_pattern": pattern[1:-1], "plain_patterns": [plain_pattern(text)]}


def term_patterns(terms: Sequence[boolean.SubstringTerm]) -> dict[str, Any]:
    """The parameters of the terms of a boolean query."""
    return {
        "positions": list(range(len(terms))),
        "fields": [term.field for term in terms],
        "patterns": [like_pattern(term.text) for term in terms],
        "plain_patterns": [plain_pattern(term.text) for term in terms],
    }


def near_parameters(forms: Sequence[NearForm]) -> dict[str, Any]:
    """The parameters of both searches for similar texts, from the query's forms, of which the last has no accents."""
    return {
        "texts": [form.text for form in forms],
        "folded": forms[-1].text,
        "min_length": min(form.bounds.least for form in forms),
        "max_length": max(form.bounds.most for form in forms),
        "by_trigrams": min_similarity(forms) is not None,
    }


def _prefetch(forms: Sequence[NearForm]) -> int:
    """The number of texts within the bounds to fetch at a time: more if they are short, for fewer round trips."""
    return max(STREAMED, min(MAX_FETCHED, FETCHED_CHARACTERS // max(form.bounds.most for form in forms)))


def _page(query: SearchFilter) -> dict[str, int]:
    return {"offset": query.offset, "limit": query.limit + 1}
