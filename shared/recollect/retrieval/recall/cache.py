"""The search cache: rankings of earlier recalls, shared by all gateways through Redis.

A ranking depends on the *state* of its graph (GraphState) and on the question. Both are in the cache key, so a write
makes old entries unreachable and nothing is invalidated by hand. But the state is in PostgreSQL, and no call may ask
Redis inside a transaction; a second transaction for the state alone would cost each recall three round trips. So a
call guesses the state:

1. Before its transaction it asks Redis with the state that this process saw last.
2. In its transaction it reads the state of its snapshot.
3. If the guess was right, it uses the cached ranking and reads the passages again by their ids; else it searches.
4. After the transaction it stores the ranking under the state that it saw.

A wrong guess costs a search and never gives a wrong answer: the answer is always what a search of the call's snapshot
finds. An entry holds ids, scores and their terms, no text and no name.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from uuid import UUID

import msgspec
from cachetools import LRUCache

from recollect.caller import Caller
from recollect.retrieval.recall.model import GraphState, Question, RecallFilter
from recollect.retrieval.recall.ranking import RANKING_VERSION, RankedPassage
from recollect.telemetry.metrics import CacheTallies
from recollect.telemetry.tracing import step_span
from recollect.valkey.shared_cache import SharedCache

MAX_GRAPHS = 10_000
"""The maximum number of graphs whose last seen state a process remembers."""

Ranking = list[RankedPassage]
Name = tuple[UUID, str]
"""A graph: the id of its tenant, and its name."""


@dataclass(slots=True)
class Lookup:
    """One call's use of the cache: the rankings that it fetched before its transaction, and those that it found in it.

    `guess`: the state that the process saw last; `seen`: the state in the transaction. `found`: cached rankings under
    the guess; `searched`: new ones; both by the index of their question. `hits`: how many cached rankings were used.
    """

    name: Name
    questions: Sequence[Question]
    filters: RecallFilter
    guess: GraphState | None = None
    found: dict[int, Ranking] = field(default_factory=dict)
    seen: GraphState | None = None
    hits: int = 0
    searched: dict[int, Ranking] = field(default_factory=dict)

    def rankings_at(self, state: GraphState) -> dict[int, Ranking]:
        """The cached rankings that are valid in this state, by the index of their question. Records the state."""
        self.seen = state
        return self.found if state == self.guess else {}


class RecallCache:
    """The search cache as one gateway uses it."""

    def __init__(self, shared: SharedCache) -> None:
        self.shared = shared
        self.tallies = CacheTallies("search")
        self._states: LRUCache[Name, GraphState] = LRUCache(MAX_GRAPHS)

    async def look_up(
        self, caller: Caller, graph_name: str, questions: Sequence[Question], filters: RecallFilter
    ) -> Lookup | None:
        """Get cached rankings, before the call's transaction; None if the answer depends on the clock."""
        if filters.depends_on_clock:
            return None
        name = (caller.tenant_id, graph_name)
        lookup = Lookup(name, questions, filters, self._states.get(name))
        if lookup.guess is not None:
            materials = [key_material(lookup.guess, question, filters) for question in questions]
            with step_span("look up rankings", cache_name="search", cache_keys=len(materials)) as span:
                values = await self.shared.get(caller.tenant_id, materials)
                span.set_attribute("recollect.cache.found", sum(value is not None for value in values))
            rankings = {index: decode(value) for index, value in enumerate(values) if value is not None}
            lookup.found = {index: ranking for index, ranking in rankings.items() if ranking is not None}
        return lookup

    def store(self, lookup: Lookup | None) -> None:
        """Store what the call found, after its transaction. Returns at once."""
        if lookup is None or lookup.seen is None:
            return
        self._states[lookup.name] = lookup.seen
        self.tallies.count(lookup.name[0], hits=lookup.hits, misses=len(lookup.searched))
        for index, ranking in lookup.searched.items():
            material = key_material(lookup.seen, lookup.questions[index], lookup.filters)
            self.shared.put(lookup.name[0], material, encode(ranking))


@asynccontextmanager
async def cached_lookup(
    cache: RecallCache | None, caller: Caller, graph_name: str, questions: Sequence[Question], filters: RecallFilter
) -> AsyncIterator[Lookup | None]:
    """Look rankings up in the cache, and store new ones at the end of the block, which has the call's transaction.

    Yields None if there is no cache, or if the answer depends on the clock. Nothing is stored if the block raises.
    """
    lookup = None if cache is None else await cache.look_up(caller, graph_name, questions, filters)
    yield lookup
    if cache is not None:
        cache.store(lookup)


def key_material(state: GraphState, question: Question, filters: RecallFilter) -> bytes:
    """Encode everything that a ranking depends on. Two different inputs never have the same bytes.

    Two parts of the question are left out: its vectors, since its text and model determine them, and the time of
    asking, since only the day counts. All other fields are included, even those that are added later.
    """
    question = question.in_zone(state.time_zone)
    left_out = ("vector", "tokens", "older", "asked_at")
    question_fields = [getattr(question, field.name) for field in fields(question) if field.name not in left_out]
    older = None if question.older is None else [question.older.model, question.older.vector is not None]
    return msgspec.msgpack.encode(
        [RANKING_VERSION, state, question.vector is not None, question_fields, older, filters]
    )


class _CachedRanking(msgspec.Struct, array_like=True):
    """A ranking in Redis: the names of the terms; then each passage, its score, its cosine, its terms in that order,
    and whether it comes near the best."""

    terms: list[str]
    passages: list[tuple[UUID, float, float, list[float], bool]]


_ENCODER = msgspec.msgpack.Encoder(uuid_format="bytes")
_DECODER = msgspec.msgpack.Decoder(_CachedRanking)


def encode(ranking: Sequence[RankedPassage]) -> bytes:
    """A ranking as MessagePack; every passage has the same terms."""
    terms = list(ranking[0].terms) if ranking else []
    passages = [(p.passage_id, p.score, p.meaning, [p.terms[term] for term in terms], p.is_near_best) for p in ranking]
    return _ENCODER.encode(_CachedRanking(terms, passages))


def decode(value: bytes) -> Ranking | None:
    """The ranking; None if the value cannot be decoded."""
    try:
        ranking = _DECODER.decode(value)
        return [
            RankedPassage(passage_id, score, meaning, dict(zip(ranking.terms, terms, strict=True)), is_near_best)
            for passage_id, score, meaning, terms, is_near_best in ranking.passages
        ]
    except (msgspec.MsgspecError, ValueError):
        return None
