"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import date, timedelta
from itertools import chain
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from recollect.fairness.computing import interleave
from recollect.graph.graphs.model import Graph
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes.model import any_case
from recollect.graph.passages.evidence import EVIDENCE_GENERATION
from recollect.graph.passages.service import MAX_WAITING
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction
from recollect.retrieval.recall.dated_candidates import NO_DAYS, NamedDays
from recollect.retrieval.recall.matching import PassageEvidence
from recollect.retrieval.recall.model import (
    COMPARED_WHEN_NARROWED,
    Basis,
    GraphState,
    Listed,
    MemoryAttributes,
    Question,
    QuestionWords,
    RecallFilter,
    SearchScope,
    vector_type,
)
from recollect.retrieval.recall.pages import (
    BEFORE_ALL,
    MAX_COUNTED,
    MAX_SUBJECTS,
    Holdings,
    ListPosition,
    MemoryPage,
    Order,
)
from recollect.retrieval.recall.question_analysis import ASSISTANT_SPEAKERS, FIRST_PERSON_SPEAKERS, is_first_person
from recollect.retrieval.recall.ranking import (
    CANDIDATES,
    MAX_BY_ALIAS,
    MAX_CONTEXT_MATCHED,
    MAX_MATCHED,
    Candidate,
    Hit,
    RankedPassage,
    Term,
    any_of,
    rarest_terms,
)
from recollect.retrieval.recall.spelling_correction import MAX_SIMILAR, unusual_words
from recollect.retrieval.recall.terms import counted_words, depends_on_unknown
from recollect.retrieval.search.model import MAX_MENTIONED, MIN_ANY_CASE, in_small_letters, phrases
from recollect.retrieval.vector_indexes.model import SEARCH_WIDTHS, search_widths
from recollect.words.analysis import asked_words, lexemes_of, query_of_word
from recollect.words.dates.ranges import DateRange
from recollect.words.stemming import forms

queries = Queries(__package__)

MAX_COUNTED_NOW = 500
"""The maximum number of passages that are read to count those with the rare words of a question."""

_SEARCH_WIDTHS = {
    "search_sizes": list(SEARCH_WIDTHS),
    "search_widths": [widths.middle for widths in SEARCH_WIDTHS.values()],
}
"""The widths of searches that are not for the words of a question, or have a filter."""


async def find_candidates(
    scope: SearchScope,
    question: Question,
    terms: Sequence[Term],
    words: QuestionWords,
    days: NamedDays = NO_DAYS,
) -> list[Candidate]:
    """Passages that may answer a question of these words and days, with their features, in the order of their ids.

    In a view of the past, with the names, states and conflicts of that moment.
    """
    filters = scope.filters
    # A filter may leave few of the passages that a common word matches: then every word is searched.
    own_terms, context_terms = (
        (terms, terms)
        if filters.narrows or scope.view.at
        else (rarest_terms(terms, MAX_MATCHED), rarest_terms(terms, MAX_CONTEXT_MATCHED))
    )
    if question.vector is None:  # Then only words can find anything.
        own_terms = own_terms or terms[:1]
    parameters = {
        "terms": [term.query for term in terms],
        "idfs": [term.idf for term in terms],
        "evident": [term.is_evident for term in terms],
        "words": any_of(own_terms),
        "context_words": any_of(context_terms),
        "vector": _half(question.vector),
        "part": _half(question.part_of_others),
        "english": question.similarity_thresholds.english,
        "other_scale": question.similarity_thresholds.other_scale,
        "model": question.model,
        "candidates": CANDIDATES,
        "include_outdated": filters.include_outdated or filters.status == "outdated",
        "named_ids": words.entity_ids,
        "phrases": [phrase.lower() for phrase in words.phrases],
        "first_person": is_first_person(question.asking_part),
        "asker": question.asker or "",
        "asker_names": [*FIRST_PERSON_SPEAKERS, question.asker.lower()] if question.asker else FIRST_PERSON_SPEAKERS,
        "assistant_names": ASSISTANT_SPEAKERS,
        **days.parameters,
    }
    dimensions = scope.dimensions(question.model)
    if filters.narrows or scope.view.at is not None:
        narrowed = queries.find_narrowed_candidates
        if dimensions is not None and scope.view.at is None:
            narrowed = queries.find_indexed_narrowed_candidates.with_types(vector=vector_type(dimensions))
        few = _compared_below(scope, question.model)
        rows = await scope.view.fetch(narrowed, **parameters, few=few, **_filter(scope))
    elif dimensions is None or scope.state is None or question.vector is None:
        rows = await scope.view.fetch(queries.find_candidates, **parameters, max_by_alias=MAX_BY_ALIAS)
    else:
        rows = await scope.view.fetch(
            queries.find_indexed_candidates,
            **parameters,
            max_by_alias=MAX_BY_ALIAS,
            dimensions=dimensions,
            search_width=search_widths(scope.state.passages).for_words(len(terms)),
        )
    return [Candidate(*row) for row in rows]  # By name it takes ten times as long (measured).


async def list_memories(scope: SearchScope, page: MemoryPage, subjects: Sequence[str], *, limit: int) -> list[Listed]:
    """The memories of a page that pass the filter, of the entities that `subjects` name, if there are any."""
    after = page.after
    rows = await scope.view.fetch(
        queries.list_memories,
        **_filter(scope),
        include_outdated=scope.filters.include_outdated or scope.filters.status == "outdated",
        subjects=subjects,
        lowered_subjects=in_small_letters(subjects),
        min_length=MIN_ANY_CASE,
        max_named=MAX_MENTIONED,
        by_importance=page.order is Order.IMPORTANCE,
        after_importance=after and after.importance,
        after_at=after and after.at,
        after_id=after and after.passage_id,
        limit=limit,
    )
    return [_listed(row) for row in rows]


def _listed(row: asyncpg.Record) -> Listed:
    """A row as a hit without a score, and its position in the list."""
    known = {name: value for name, value in row.items() if name != "importance"}
    position = ListPosition(row["importance"], row["at"] or BEFORE_ALL, row["passage_id"])
    return Hit(**known, score=0.0, meaning=0.0, terms={}), position


async def find_holdings(tx: Transaction, graph: Graph) -> Holdings:
    """Count the memories of a graph that recall may return, up to MAX_COUNTED."""
    [row] = await tx.fetch(
        queries.find_holdings, graph_id=graph.id, max_counted=MAX_COUNTED + 1, max_subjects=MAX_SUBJECTS
    )
    count: int = row["memories"]
    return Holdings(True, min(count, MAX_COUNTED), tuple(row["subjects"]), more=count > MAX_COUNTED)


async def load_evidence(
    tx: Transaction, passage_ids: Sequence[UUID], terms: Sequence[Term], *, model: str, with_neighbours: bool
) -> dict[UUID, PassageEvidence]:
    """The stored evidence of candidates for the second stage; with `with_neighbours` also that of their neighbours.

    `terms`: the words of the question, which the turn before a candidate may ask about.
    """
    rows = await tx.fetch(
        queries.load_evidence,
        passage_ids=passage_ids,
        terms=[term.query for term in terms],
        idfs=[term.idf for term in terms],
        model=model,
        generation=EVIDENCE_GENERATION,
        with_neighbours=int(with_neighbours),
    )
    return {row["id"]: _evidence(row) for row in rows}


def _evidence(row: asyncpg.Record) -> PassageEvidence:
    # By name it takes several times as long (measured).
    passage_id, before, after, asked, tokens, ranges, said_offset, named_days = row
    dates = _days(ranges) if ranges else ()
    return PassageEvidence(passage_id, before, after, asked, tokens, dates, said_offset, named_days)


def _days(ranges: Sequence["asyncpg.Range[date]"]) -> list[DateRange]:
    """Ranges of days from PostgreSQL's, whose upper bounds are the days after the last."""
    bounds = [(days.lower, days.upper) for days in ranges]
    return [DateRange(lower, upper - timedelta(days=1)) for lower, upper in bounds if lower and upper]


async def attributes_of(
    view: GraphView, memory_ids: Sequence[UUID], *, characters: int
) -> dict[UUID, MemoryAttributes]:
    """The attributes of memories, and the first `characters` characters of their texts, by their ids."""
    rows = await view.fetch(queries.attributes_of, memory_ids=memory_ids, characters=characters)
    return {
        row["id"]: MemoryAttributes(
            kind=row["kind"],
            tags=tuple(row["tags"] or ()),
            importance=row["importance"],
            source=row["source"],
            metadata=row["metadata"] or {},
            version=row["version"],
            reason=row["reason"],
            text=row["text"],
            said_offset=row["said_offset"],
        )
        for row in rows
    }


async def vectors_ready(tx: Transaction) -> bool:
    """Whether the database can compare vectors."""
    return await tx.fetchval(queries.vectors_ready)


async def find_state(tx: Transaction, graph: Graph) -> GraphState:
    """The state of a graph that answers depend on."""
    [row] = await tx.fetch(queries.find_state, graph_id=graph.id, **_SEARCH_WIDTHS)
    return _state(row)


async def find_basis(tx: Transaction, graph: Graph, questions: Sequence[Question]) -> Basis:
    """Read the state of a graph and the words of these questions, before they are searched for."""
    asked = [await interleave(asked_words(question.text)) for question in questions]
    parts = [await interleave(asked_words(question.part)) for question in questions if question.part is not None]
    text_phrases = [phrases(question.asking_part) for question in questions]
    lowered = [in_small_letters(names) for names in text_phrases]
    unusual = unusual_words([question.text for question in questions if question.part is None])
    [row] = await tx.fetch(
        queries.find_basis,
        graph_id=graph.id,
        # Of rare ones, only the first hundreds are counted: those of the part that asks come first.
        lexemes=lexemes_of(list(chain.from_iterable([*parts, *asked]))),
        max_looked_at=MAX_COUNTED_NOW if any(map(depends_on_unknown, asked)) else 0,
        questions=len(questions),
        positions=_positions(text_phrases),
        names=list(chain.from_iterable(text_phrases)),
        lowered_positions=_positions(lowered),
        lowered_names=list(chain.from_iterable(lowered)),
        min_length=MIN_ANY_CASE,
        max_named=MAX_MENTIONED,
        max_waiting=MAX_WAITING,
        unusual=unusual,
        unusual_lexemes=[forms(word)[0] for word in unusual],
        unusual_queries=[query_of_word(word) for word in unusual],
        max_similar=MAX_SIMILAR,
        **_SEARCH_WIDTHS,
    )
    entity_ids = [[UUID(entity_id) for entity_id in found] for found in row["named"]]
    counted = [counted_words(words, row["counts"]) for words in asked]
    question_words = [QuestionWords(*columns) for columns in zip(counted, text_phrases, entity_ids, strict=True)]
    return Basis(_state(row), row["waiting"], question_words, row["similar"])


async def words_in_use(tx: Transaction, graph: Graph, words: Sequence[str]) -> set[str]:
    """The words that a live passage of the graph has."""
    rows = await tx.fetch(
        queries.words_in_use, graph_id=graph.id, words=words, queries=[query_of_word(word) for word in words]
    )
    return {row["word"] for row in rows}


def _state(row: asyncpg.Record) -> GraphState:
    return GraphState(**{field.name: row[field.name] for field in fields(GraphState)})


def _positions(groups: Sequence[Sequence[str]]) -> list[int]:
    return [position for position, group in enumerate(groups) for _ in group]


async def reload_hits(
    tx: Transaction, graph: Graph, ranking: Sequence[RankedPassage], filters: RecallFilter
) -> list[Hit]:
    """The hits of a cached ranking, in its order, without those that may no longer be returned."""
    return await tx.fetch_objects(
        queries.reload_hits,
        Hit,
        graph_id=graph.id,
        passage_ids=[passage.passage_id for passage in ranking],
        scores=[passage.score for passage in ranking],
        meanings=[passage.meaning for passage in ranking],
        terms=[passage.terms for passage in ranking],
        status=filters.status,
    )


def _filter(scope: SearchScope) -> dict[str, Any]:
    """The parameters of the filter."""
    filters = scope.filters
    return {
        "fresh_only": filters.fresh_only,
        "thread": filters.thread,
        "author": filters.author,
        "kinds": any_case(filters.kinds),
        "not_kinds": any_case(filters.not_kinds),
        **_tags(filters),
        "not_tags": any_case(filters.not_tags),
        "about": filters.about,
        "min_importance": filters.min_importance,
        "since": filters.since,
        "until": filters.until,
        "status": filters.status,
        "named": filters.named,
        "under": scope.under,
    }


def _tags(filters: RecallFilter) -> dict[str, Any]:
    """The parameters for tags: every form of each, the position of its tag, and how many tags a memory must have."""
    forms = [any_case([tag]) for tag in filters.tags]
    return {
        "tags": list(chain.from_iterable(forms)),
        "tag_positions": _positions(forms),
        "min_tags": len(forms) if filters.all_tags else 1,
    }


def _compared_below(scope: SearchScope, model: str) -> int | None:
    """The number of passages below which a recall with a filter compares each; None for a view of the past: always."""
    if scope.view.at is not None:
        return None
    return COMPARED_WHEN_NARROWED if scope.dimensions(model) is None else 0


def _half(vector: NDArray[np.float32] | None) -> HalfVector | None:
    return None if vector is None else HalfVector(vector)
