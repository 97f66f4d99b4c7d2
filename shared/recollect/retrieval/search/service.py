"""Use cases of the classic searches. Each reads a view of a graph: as it is, or as it was."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import chain
from uuid import UUID

from recollect.errors import ErrorCode, TooLarge
from recollect.graph.entities import service as entities
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph
from recollect.graph.graphs.view import GraphView
from recollect.graph.relations import subgraphs
from recollect.graph.relations.model import Subgraph
from recollect.postgres.transactions import Transaction
from recollect.retrieval.search import boolean, store
from recollect.retrieval.search.fuzzy import NearForm, bounds, folded, min_similarity, nearest, nearness
from recollect.retrieval.search.model import (
    MAX_MENTIONED,
    BooleanQuery,
    DateQuery,
    FuzzyQuery,
    FuzzyTexts,
    LabelMatch,
    LabelQuery,
    RankedHits,
    RankedQuery,
    SearchFilter,
    SubstringQuery,
    phrases,
    ranked_hit,
)
from recollect.retrieval.search.words import expandable, other_forms, words_of
from recollect.text.unicode_forms import normal, written_forms
from recollect.words.analysis import all_of

TEXTS_PER_YIELD = 20
"""Texts that a fuzzy search compares before it lets other calls go on."""

MAX_EXAMINED = 1_000
"""Names of each kind that a completion examines, at most, and matches by words of a fuzzy search."""

MAX_FUZZY_CHARACTERS = 20_000_000
"""Characters of the texts that a fuzzy search compares, at most: seconds, for which its transaction waits."""


async def search_nodes(view: GraphView, query: SubstringQuery) -> Subgraph:
    """Entities that contain a substring, best first, with every relation that touches them."""
    return await _found(view, query, await store.search_substring(view, query))


async def search_ranked(view: GraphView, query: RankedQuery) -> RankedHits:
    """Entities that contain words of the query, by TF-IDF, best first. Raises InvalidInput for too many words.

    The enhanced memory server's formula: the sum of TF · IDF over the query's words, a repeated word each time. TF is
    the number of the word's occurrences in name, kind and observations, divided by their number of words;
    IDF = ln(N / n), where n of the N entities that pass the filters contain the word. A word in all of them adds
    nothing. Each form of a word that recall finds it by counts as the word.
    """
    words = words_of(normal(query.text))
    if not words:
        return RankedHits([])
    others = await _other_forms(view, words)
    entity_count = None if view.at or query.is_filtered else (await graphs.head_of(view)).entities
    found = await store.search_ranked(view, query, words, others, entities=entity_count)
    scores = dict(found[: query.limit])
    best = await entities.entities_by_id(view, list(scores), repeats=2)  # The matching ones are told again.
    forms = [*words, *chain.from_iterable(others.values())]
    hits = [ranked_hit(entity, scores[entity.id], forms) for entity in best]
    return RankedHits(hits, _next_offset(query, found))


async def _other_forms(view: GraphView, words: Sequence[str]) -> dict[str, list[str]]:
    """How the graph writes the words of a query otherwise, by the words in small letters."""
    asked = expandable(words)
    return other_forms(asked, await store.sample_words(view, asked)) if asked else {}


async def search_boolean(view: GraphView, query: BooleanQuery) -> Subgraph:
    """Entities that match a boolean query, oldest first, with every relation that touches them.

    Raises InvalidInput with the position of an error in the query.
    """
    plan = boolean.plan(boolean.parse(query.text))
    return await _found(view, query, await store.search_boolean(view, query, plan))


async def search_fuzzy(view: GraphView, query: FuzzyQuery) -> Subgraph:
    """Entities with a name, a kind or an observation similar to the query, nearest first, with their relations."""
    counted = await store.count_trigrams(view.tx, *written_forms(query.text)[:2], folded(query.text) or query.text)
    forms = [NearForm(text, bounds(len(text), trigrams, query.threshold)) for text, trigrams in counted]
    least = min_similarity(forms)
    if least is not None:
        await store.set_similarity(view.tx, least)
    near: dict[UUID, float] = {}
    async for candidate, similarity in _compared(view, query, forms):
        if similarity is not None:
            near[candidate.id] = max(similarity, near.get(candidate.id, 0.0))
    ranked = sorted(near, key=lambda node_id: (-near[node_id], node_id))
    return await _found(view, query, ranked[query.offset : query.offset + query.limit + 1])


async def search_dates(view: GraphView, query: DateQuery) -> Subgraph:
    """Entities that were created or last changed in a time, oldest first, with every relation that touches them."""
    return await _found(view, query, await store.search_dates(view, query))


async def match_labels(view: GraphView, query: LabelQuery) -> list[LabelMatch]:
    """Active nodes whose summary or tags contain enough of the words, those with most of them first."""
    return await store.match_labels(view, query) if query.words else []


async def complete_names(view: GraphView, prefix: str, *, limit: int) -> tuple[list[str], bool]:
    """Names of live entities with a prefix, in alphabetical order; and whether there are more.

    Case, accents, width and apostrophes do not count.
    """
    if not view.is_there:
        return [], False
    found = await store.complete_names(view, prefix, examined=MAX_EXAMINED, limit=limit + 1)
    return found[:limit], len(found) > limit


async def find_mentioned(tx: Transaction, graph: Graph, text: str) -> list[UUID]:
    """Entities whose name, or an alias, occurs in a text; oldest first."""
    return await store.find_mentioned(tx, graph, phrases(text), limit=MAX_MENTIONED)


async def _candidates(view: GraphView, query: FuzzyQuery, forms: Sequence[NearForm]) -> AsyncIterator[FuzzyTexts]:
    """Every text within the bounds; loose bounds include a whole graph. Raises TooLarge for too many characters."""
    number = characters = 0
    for read in (store.fuzzy_entities, store.fuzzy_statements):
        async for texts in read(view, query, forms):
            number += 1
            characters += sum(map(len, texts.texts))
            if characters > MAX_FUZZY_CHARACTERS:
                raise TooLarge(
                    f"More than {MAX_FUZZY_CHARACTERS} characters would have to be compared. Raise the threshold, or "
                    "narrow the search by tags or importance",
                    code=ErrorCode.TOO_COSTLY,
                )
            if number % TEXTS_PER_YIELD == 0:
                await asyncio.sleep(0)
            yield texts


async def _compared(
    view: GraphView, query: FuzzyQuery, forms: Sequence[NearForm]
) -> AsyncIterator[tuple[FuzzyTexts, float | None]]:
    """Texts with their similarity to the query: as both are, or as both are folded."""
    asked, asked_folded = forms[0].text, forms[-1].text
    async for candidate in _candidates(view, query, forms):
        yield candidate, nearest(asked, asked_folded, candidate.texts, query.threshold)
    for candidate in await _with_all_words(view, query):
        yield candidate, nearness(asked_folded, map(folded, candidate.texts), query.threshold)


async def _with_all_words(view: GraphView, query: FuzzyQuery) -> list[FuzzyTexts]:
    """Names and observations with all words of the query, up to MAX_EXAMINED; an entity may come several times."""
    words = all_of(query.text)
    return await store.fuzzy_words(view, query, words, examined=MAX_EXAMINED) if words else []


async def _found(view: GraphView, query: SearchFilter, found: Sequence[UUID]) -> Subgraph:
    """A page of these entities with every relation that touches them; an id beyond the limit shows that more follow."""
    page = await entities.entities_by_id(view, found[: query.limit])
    return await subgraphs.subgraph_of(view, page, next_offset=_next_offset(query, found))


def _next_offset(query: SearchFilter, found: Sequence[object]) -> int | None:
    return query.offset + query.limit if len(found) > query.limit else None
