"""Use cases of recall."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from uuid import UUID

from msgspec import structs

from recollect.fairness.computing import collect_yielding, interleave
from recollect.graph.graphs.model import Graph
from recollect.graph.graphs.view import GraphView
from recollect.graph.hierarchy import service as hierarchy
from recollect.postgres.transactions import Transaction
from recollect.retrieval.recall import store
from recollect.retrieval.recall.cache import Lookup
from recollect.retrieval.recall.dated_candidates import NamedDays, days_of, is_listing, listed
from recollect.retrieval.recall.english_words import english
from recollect.retrieval.recall.floors import marked_near_best
from recollect.retrieval.recall.listing import list_memories, listing_of, require_first_page
from recollect.retrieval.recall.matching import (
    NO_MATCH,
    PassageEvidence,
    day_of_saying,
    match_windows,
    named_times,
    score_dates,
)
from recollect.retrieval.recall.model import (
    MAX_WHOLE,
    Basis,
    GraphState,
    Listed,
    MemoryAttributes,
    Question,
    QuestionWords,
    Recalled,
    RecallFilter,
    SearchScope,
    fuse,
    overlap_at_k,
    with_whole_texts,
    within_budget,
    without_repeats,
)
from recollect.retrieval.recall.pages import MemoryPage
from recollect.retrieval.recall.question_analysis import ExpectedAnswer
from recollect.retrieval.recall.ranking import (
    Candidate,
    Hit,
    HitKey,
    Term,
    in_other_languages,
    rank,
)
from recollect.retrieval.recall.spelling_correction import correct, nearest_words
from recollect.retrieval.recall.terms import question_terms
from recollect.retrieval.recall.updates import in_order_of_time
from recollect.telemetry.metrics import record_audit, record_waiting
from recollect.times import zone_of

MAX_RECALLED = 100
"""The maximum number of hits of one recall."""

EXACT_WHEN_NARROWED = 200_000
"""The number of passages up to which a recall with a filter compares every vector that passes the filter, in less than
1 ms for 1,000 (measured). A vector index is searched to a certain depth only, and the filter may exclude every passage
that is found there."""

AUDITED_HITS = 10
"""The number of hits of an audited search that are compared with those of an exact one: the k of recall@k."""


async def recall(
    view: GraphView,
    questions: Sequence[Question],
    filters: RecallFilter,
    *,
    limit: int,
    token_budget: int,
    cached: Lookup | None = None,
    exact: bool = False,
    audited: bool = False,
    described: bool = False,
    only_near_best: bool = False,
    whole_days: bool = False,
    correcting: bool = False,
    page: MemoryPage | None = None,
) -> Recalled:
    """Memories that match the questions, best first, as many as fit `limit` and `token_budget` (tokens).

    `cached`: the entry of RecallCache for these very questions; a recall in the present adds the rankings that it
    lacks. `exact`: without the vector index, if the graph has one; `audited`: with it, and compared with the exact
    answer. `described`: with each memory's attributes, and with whole texts as far as the budget allows.
    `only_near_best`: without hits far below the best (`Hit.is_near_best`). `whole_days`: `limit` does not apply to a
    question that asks for everything of certain days. `correcting`: where a question is mistyped, nothing is searched,
    and the right questions are returned (Recalled.corrected). `page`: the page of a list of all that passes the filter.
    A list answers where there is no question, or one that asks for everything; with None, such questions are searched
    for. Raises NotFound for an unknown entity `filters.under`, and InvalidInput for a further page of what is
    searched for.
    """
    if not view.is_there:
        return Recalled([], more=False, waiting=0)
    basis = await store.find_basis(view.tx, view.graph, questions)
    if correcting and (corrected := await _corrected(view, questions, basis)):
        return Recalled([], more=False, waiting=basis.waiting, corrected=corrected)
    state = basis.state
    under = None if filters.under is None else await hierarchy.subtree_ids(view, filters.under)
    is_small = filters.narrows and state.passages_counted <= EXACT_WHEN_NARROWED
    without_index = exact or is_small or view.at is not None
    scope = SearchScope(view, filters, under, state=None if without_index else state, audited=audited)
    listing = None if page is None else listing_of(questions, basis.question_words, filters, page)
    if listing is not None:
        memories = await list_memories(scope, listing, limit=limit)
        if memories is not None:
            return await _recalled_list(view, memories, basis, limit=limit, token_budget=token_budget)
    require_first_page(page)
    known = {} if cached is None or view.at is not None else await _cached_hits(view.tx, view.graph, cached, state)
    moment = None if view.at is None else view.at.at
    questions = [question.in_zone(state.time_zone, moment).for_model(state.model) for question in questions]
    rankings = await _rankings(view.tx, scope, questions, known, basis)
    if cached is not None and view.at is None:
        cached.searched = {n: [hit.ranked for hit in hits] for n, hits in enumerate(rankings) if n not in known}
    if whole_days and len(rankings) == 1 and is_listing(rankings[0]):
        limit = MAX_RECALLED
    if only_near_best:
        rankings = [[hit for hit in ranking if hit.is_near_best] for ranking in rankings]
    # One more than can be returned shows whether there are more.
    hits = await _distinct_hits(view, rankings[0] if len(rankings) == 1 else fuse(rankings), limit + 1)
    returned = within_budget(hits, limit=limit, token_budget=token_budget)
    attributes: dict[UUID, MemoryAttributes] = {}
    parts: set[HitKey] = set()
    if described:
        returned, parts, attributes = await _described(view, returned, token_budget)
    record_waiting(basis.waiting)
    return Recalled(returned, more=len(hits) > len(returned), waiting=basis.waiting, attributes=attributes, parts=parts)


async def _corrected(view: GraphView, questions: Sequence[Question], basis: Basis) -> list[str]:
    """The questions without their typing errors; none if they have no such errors."""
    texts = [question.text for question in questions]
    right = nearest_words(basis.similar, texts)
    # The counts of words are renewed now and then. A word that only a deleted memory had must not be shown.
    of_graph = sorted({word for word in right.values() if not english().has(word)})
    living = await store.words_in_use(view.tx, view.graph, of_graph) if of_graph else set()
    right = {mistyped: word for mistyped, word in right.items() if word in living or english().has(word)}
    return [correct(text, right) for text in texts] if right else []


async def _described(
    view: GraphView, hits: Sequence[Hit], token_budget: int
) -> tuple[list[Hit], set[HitKey], dict[UUID, MemoryAttributes]]:
    """Hits with whole texts as far as the budget allows, the keys of those without, and each memory's attributes."""
    ids = [hit.memory_id for hit in hits]
    attributes = await store.attributes_of(view, ids, characters=MAX_WHOLE + 1) if ids else {}
    texts = {memory_id: memory.text for memory_id, memory in attributes.items()}
    returned, parts = with_whole_texts(hits, texts, token_budget=token_budget)
    return returned, parts, attributes


async def _recalled_list(
    view: GraphView, listed: Sequence[Listed], basis: Basis, *, limit: int, token_budget: int
) -> Recalled:
    """A page of a list as the result of a recall."""
    within = within_budget([hit for hit, _ in listed], limit=limit, token_budget=token_budget)
    returned, parts, attributes = await _described(view, within, token_budget)
    record_waiting(basis.waiting)
    return Recalled(
        returned,
        more=len(listed) > len(returned),
        waiting=basis.waiting,
        attributes=attributes,
        parts=parts,
        positions={hit.key: index for hit, index in listed},
    )


async def _distinct_hits(view: GraphView, ranking: Sequence[Hit], most: int) -> list[Hit]:
    """The first hits of a ranking without repeats. Memories with the same passage are compared by their whole texts."""
    repeats: set[UUID] = set()
    hits = list(islice(without_repeats(ranking, repeats=repeats), most))
    if not repeats:
        return hits
    memories = await store.attributes_of(view, sorted(repeats), characters=MAX_WHOLE + 1)
    wholes = {memory_id: memory.text for memory_id, memory in memories.items() if memory.text is not None}
    return list(islice(without_repeats(ranking, wholes), most))


async def _cached_hits(tx: Transaction, graph: Graph, cached: Lookup, state: GraphState) -> dict[int, list[Hit]]:
    """The hits of cached rankings that are valid in this snapshot, by the index of their question.

    Empty if a passage of any of them was removed.
    """
    rankings = cached.rankings_at(state)
    ranked = list(chain.from_iterable(rankings.values()))
    hits = await store.reload_hits(tx, graph, ranked, cached.filters) if ranked else []
    if len(hits) != len(ranked):
        return {}
    cached.hits = len(rankings)
    remaining = (structs.replace(hit, is_near_best=one.is_near_best) for hit, one in zip(hits, ranked, strict=True))
    return {index: list(islice(remaining, len(ranking))) for index, ranking in rankings.items()}


async def _rankings(
    tx: Transaction,
    scope: SearchScope,
    questions: Sequence[Question],
    known: dict[int, list[Hit]],
    basis: Basis,
) -> list[list[Hit]]:
    """The hits of each question: the cached ones, else those that a search finds."""
    is_now = scope.view.at is None  # Of the past, it is not known which words it had.
    searches = {
        index: _Search(
            question,
            words,
            question_terms(words.counted, basis.state.passages_counted, all_known=is_now),
            days_of(question),
        )
        for index, (question, words) in enumerate(zip(questions, basis.question_words, strict=True))
        if index not in known
    }
    found = {index: await _find_candidates(scope, search) for index, search in searches.items()}
    ranked = {index: await _ranked(tx, scope, search, *found[index]) for index, search in searches.items()}
    return [known[index] if index in known else ranked[index] for index in range(len(questions))]


@dataclass(frozen=True, slots=True)
class _Search:
    """A question with its words and their weights, and the days that it names."""

    question: Question
    words: QuestionWords
    terms: Sequence[Term]
    days: NamedDays


async def _find_candidates(scope: SearchScope, search: _Search) -> tuple[list[Candidate], list[Candidate] | None]:
    """The candidates of a question and, where the search is audited and uses an index, those of an exact search."""
    found = await store.find_candidates(scope, search.question, search.terms, search.words, search.days)
    if not scope.audited or scope.dimensions(search.question.model) is None:
        return found, None
    exact = replace(scope, state=None)
    return found, await store.find_candidates(exact, search.question, search.terms, search.words, search.days)


async def _ranked(
    tx: Transaction, scope: SearchScope, search: _Search, found: list[Candidate], exact: list[Candidate] | None
) -> list[Hit]:
    hits = await _rank(tx, scope, search, found)
    if exact is not None:
        exact_hits = await _rank(tx, scope, search, exact)
        if exact_hits:
            record_audit(overlap_at_k(hits, exact_hits, AUDITED_HITS), k=AUDITED_HITS)
    return hits


async def _rank(tx: Transaction, scope: SearchScope, search: _Search, found: list[Candidate]) -> list[Hit]:
    question, usual = search.question, search.question.similarity_thresholds
    # A caller who gives a filter presumes that there is something to find.
    thresholds = usual.under_filter() if scope.filters.narrows else usual
    evidence = await _load_evidence(tx, search, found)
    dated = search.days.members(found, evidence)
    matched = await _match(question, found, evidence)
    hits = rank(
        search.days.answering(matched, dated, usual.best) if search.days.alone else matched,
        search.terms,
        expected=ExpectedAnswer.of(question.asking_part),
        thresholds=thresholds,
        always=dated if search.days.alone or search.days.is_short else frozenset(),
        across_languages=question.part_of_others is not None,
    )[:MAX_RECALLED]
    if dated and search.days.alone:
        return listed(hits)
    facts = {candidate.id for candidate in found if candidate.is_alone}
    others = in_other_languages(matched)
    if not named_times(question.asking_part, question.asked_on):
        hits = in_order_of_time(hits, facts, question.asking_part)
    return marked_near_best(hits, facts, thresholds, others)


async def _load_evidence(tx: Transaction, search: _Search, candidates: list[Candidate]) -> dict[UUID, PassageEvidence]:
    """What the second stage needs of candidates; nothing where the question has neither tokens nor times."""
    question, tokens = search.question, search.question.tokens
    if not candidates or (tokens is None and not named_times(question.asking_part, question.asked_on)):
        return {}
    ids = [candidate.id for candidate in candidates]
    return await store.load_evidence(tx, ids, search.terms, model=question.model, with_neighbours=tokens is not None)


async def _match(
    question: Question, candidates: list[Candidate], evidence: dict[UUID, PassageEvidence]
) -> list[Candidate]:
    """The second stage: candidates scored by the question's tokens and by the days that it names, if it has any."""
    if not evidence:
        return candidates
    tokens, times = question.tokens, named_times(question.text, question.asked_on)
    zone, ids = zone_of(question.time_zone), [candidate.id for candidate in candidates]
    matches = {} if tokens is None else await interleave(match_windows(tokens, ids, evidence))

    def date_score(candidate: Candidate, known: PassageEvidence | None) -> float:
        dates, offset = ((), None) if known is None else (known.dates, known.said_offset)
        said_on = None if candidate.at is None else day_of_saying(candidate.at, offset, zone)
        return score_dates(times, said_on, dates)

    def matched(candidate: Candidate) -> Candidate:
        known = evidence.get(candidate.id)
        date = date_score(candidate, known) if times else 0.0
        asked = 0.0 if known is None else known.asked or 0.0
        win, first = matches.get(candidate.id, NO_MATCH)
        return structs.replace(candidate, win=win, first_match=first, date=date, asked=asked)

    return await collect_yielding(map(matched, candidates))


async def find_state(tx: Transaction, graph: Graph) -> GraphState:
    """The state of a graph that answers depend on."""
    return await store.find_state(tx, graph)


async def vectors_ready(tx: Transaction) -> bool:
    """Whether the database can compare vectors."""
    return await store.vectors_ready(tx)
