"""Use cases of the classic searches. Each reads a graph as it is, or with `as_of` as it was."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from recollect.errors import ErrorCode, TooLarge
from recollect.graph.entities import service as entities
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, Moment
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import Subgraph
from recollect.platform.db import Transaction
from recollect.retrieval.search import boolean, store
from recollect.retrieval.search.fuzzy import Bounds, bounds, nearness
from recollect.retrieval.search.model import (
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
from recollect.retrieval.search.words import words_of

MAX_MENTIONED = 100
"""Entities that are recognised in one text, at most."""

BREATH = 20
"""Texts that a fuzzy search compares before it lets other calls go on."""

MAX_FUZZY_CHARACTERS = 20_000_000
"""Characters of the texts that a fuzzy search compares, at most: seconds, for which its transaction waits."""


async def search_nodes(
    tx: Transaction, graph_name: str | None, query: SubstringQuery, *, as_of: str | None = None
) -> Subgraph:
    """Entities that hold a substring, best first, with every relation that touches them."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return Subgraph([], [])
    at = await graphs.moment(tx, graph, as_of)
    return await _found(tx, graph, query, await store.search_substring(tx, graph, query, at), at)


async def search_ranked(
    tx: Transaction, graph_name: str | None, query: RankedQuery, *, as_of: str | None = None
) -> RankedHits:
    """Entities that hold words of the query, by TF-IDF, best first. Raises InvalidInput for too many words.

    The enhanced memory server's formula: the sum over the query's words, each as often as it stands there, of
    TF · IDF; TF is how often the word stands in name, kind and observations, by how many words those have;
    IDF = ln(N / n), of N entities that pass the filters n hold the word. A word that all of them hold adds nothing.
    """
    words = words_of(query.text)
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None or not words:
        return RankedHits([])
    at = await graphs.moment(tx, graph, as_of)
    counted = None if at or query.is_filtered else (await graphs.head_of(tx, graph)).entities
    found = await store.search_ranked(tx, graph, query, words, at, entities=counted)
    scores = dict(found[: query.limit])
    best = await entities.entities_by_id(tx, list(scores), graph=graph, at=at)
    hits = [ranked_hit(entity, scores[entity.id], words) for entity in best]
    return RankedHits(hits, _next_offset(query, found))


async def search_boolean(
    tx: Transaction, graph_name: str | None, query: BooleanQuery, *, as_of: str | None = None
) -> Subgraph:
    """Entities that a boolean query holds of, oldest first, with every relation that touches them.

    Raises InvalidInput with the place of a fault in the query.
    """
    plan = boolean.plan(boolean.parse(query.text))
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return Subgraph([], [])
    at = await graphs.moment(tx, graph, as_of)
    return await _found(tx, graph, query, await store.search_boolean(tx, graph, query, plan, at), at)


async def search_fuzzy(
    tx: Transaction, graph_name: str | None, query: FuzzyQuery, *, as_of: str | None = None
) -> Subgraph:
    """Entities of which a name, a kind or an observation is nearly the query, nearest first, with their relations."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return Subgraph([], [])
    at = await graphs.moment(tx, graph, as_of)
    folded, trigrams = await store.count_trigrams(tx, query.text)
    within = bounds(len(folded), trigrams, query.threshold)
    if within.similarity is not None:
        await store.set_similarity(tx, within.similarity)
    near: dict[UUID, float] = {}
    async for candidate in _candidates(tx, graph, query, folded, within, at):
        similarity = nearness(folded, candidate.texts, query.threshold)
        if similarity is not None:
            near[candidate.id] = max(similarity, near.get(candidate.id, 0.0))
    ranked = sorted(near, key=lambda node_id: (-near[node_id], node_id))
    return await _found(tx, graph, query, ranked[query.offset : query.offset + query.limit + 1], at)


async def search_dates(
    tx: Transaction, graph_name: str | None, query: DateQuery, *, as_of: str | None = None
) -> Subgraph:
    """Entities that were made or last changed in a time, oldest first, with every relation that touches them."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return Subgraph([], [])
    at = await graphs.moment(tx, graph, as_of)
    return await _found(tx, graph, query, await store.search_dates(tx, graph, query, at), at)


async def match_labels(
    tx: Transaction, graph: Graph, query: LabelQuery, *, at: Moment | None = None
) -> list[LabelMatch]:
    """Active nodes (`at`: as they were) whose summary or tags hold enough of the words, those that hold most first."""
    return await store.match_labels(tx, graph, query, at) if query.words else []


async def find_mentioned(tx: Transaction, graph: Graph, text: str) -> list[UUID]:
    """Entities whose name, or a name that they had before a merge, stands in a text; oldest first."""
    return await find_named(tx, graph, phrases(text))


async def find_named(tx: Transaction, graph: Graph, spoken: Sequence[str]) -> list[UUID]:
    """The same of a text's `phrases`, for whoever has them."""
    return await store.find_mentioned(tx, graph, spoken, limit=MAX_MENTIONED)


async def _candidates(
    tx: Transaction, graph: Graph, query: FuzzyQuery, folded: str, within: Bounds, at: Moment | None
) -> AsyncIterator[FuzzyTexts]:
    """Every text within the bounds: where those serve little, it is a whole graph's. Raises TooLarge for too many."""
    number = characters = 0
    for read in (store.fuzzy_entities, store.fuzzy_statements):
        async for texts in read(tx, graph, query, folded, within, at):
            number += 1
            characters += sum(map(len, texts.texts))
            if characters > MAX_FUZZY_CHARACTERS:
                raise TooLarge(
                    f"More than {MAX_FUZZY_CHARACTERS} characters would have to be compared. Raise the threshold, or "
                    "narrow the search by tags or importance",
                    code=ErrorCode.TOO_COSTLY,
                )
            if number % BREATH == 0:
                await asyncio.sleep(0)
            yield texts


async def _found(
    tx: Transaction, graph: Graph, query: SearchFilter, found: Sequence[UUID], at: Moment | None
) -> Subgraph:
    """The page of these entities with every relation that touches them; one more than fits tells that more follow."""
    page = await entities.entities_by_id(tx, found[: query.limit], graph=graph, at=at)
    return await relations.subgraph_of(tx, graph, page, next_offset=_next_offset(query, found), at=at)


def _next_offset(query: SearchFilter, found: Sequence[object]) -> int | None:
    return query.offset + query.limit if len(found) > query.limit else None
