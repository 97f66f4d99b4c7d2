"""Rankings that were searched for before, shared by the gateways through Redis.

What an answer depends on is its *state* (GraphState) and its question. Both are in the key, so that a write makes old
entries unreachable and nothing is invalidated. But the state is read in the database, Redis must not be asked inside a
transaction, and a transaction of its own to read the state would cost every recall three round trips. So the state is
guessed: a call asks Redis under the state that this process saw last, and then, in its one transaction, reads the state
that its snapshot has. Only if that is the guessed one is the entry used, its passages read again by their ids; else the
snapshot is searched. A wrong guess costs a search, never a wrong answer: what is answered is what a search of that
snapshot, which is not older than the call, finds. After the transaction the ranking is kept under the state that was
seen.

Kept are ids, scores and their terms: no text, no name.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from uuid import UUID

import msgspec

from recollect.caller import Caller
from recollect.platform.metrics import CacheTally
from recollect.platform.shared_cache import SharedCache
from recollect.recall.model import GraphState, Question, RecallFilter
from recollect.recall.ranking import RANKING_VERSION, RankedPassage

MAX_GRAPHS = 10_000
"""Graphs whose last seen state a process remembers."""

Ranking = list[RankedPassage]
Name = tuple[UUID, str]
"""A tenant's graph, by name."""


@dataclass(slots=True)
class Lookup:
    """One call's dealings with the cache: what it was told before its transaction, and what it learned inside."""

    name: Name
    questions: Sequence[Question]
    only: RecallFilter
    guess: GraphState | None = None
    found: dict[int, Ranking] = field(default_factory=dict)
    seen: GraphState | None = None
    hits: int = 0
    searched: dict[int, Ranking] = field(default_factory=dict)

    def rankings_at(self, state: GraphState) -> dict[int, Ranking]:
        """Rankings that hold in this state, by the place of their question; the state is kept as the one seen."""
        self.seen = state
        return self.found if state == self.guess else {}


class RecallCache:
    """The search cache as one gateway uses it."""

    def __init__(self, shared: SharedCache) -> None:
        self.shared = shared
        self.tally = CacheTally("search")
        self._states: OrderedDict[Name, GraphState] = OrderedDict()

    async def look_up(
        self, caller: Caller, graph_name: str, questions: Sequence[Question], only: RecallFilter
    ) -> Lookup | None:
        """Ask for rankings, before the call's transaction; None where the answer depends on the clock."""
        if only.depends_on_clock:
            return None
        name = (caller.tenant_id, graph_name)
        lookup = Lookup(name, questions, only, self._states.get(name))
        if lookup.guess is not None:
            materials = [key_material(lookup.guess, question, only) for question in questions]
            values = await self.shared.get(caller.tenant_id, materials)
            rankings = {place: decode(value) for place, value in enumerate(values) if value is not None}
            lookup.found = {place: ranking for place, ranking in rankings.items() if ranking is not None}
        return lookup

    def keep(self, lookup: Lookup | None) -> None:
        """Remember what the call learned, once its transaction is over. Returns at once."""
        if lookup is None or lookup.seen is None:
            return
        self._states[lookup.name] = lookup.seen
        self._states.move_to_end(lookup.name)
        if len(self._states) > MAX_GRAPHS:
            self._states.popitem(last=False)
        self.tally.count(hits=lookup.hits, misses=len(lookup.searched))
        for place, ranking in lookup.searched.items():
            material = key_material(lookup.seen, lookup.questions[place], lookup.only)
            self.shared.put(lookup.name[0], material, encode(ranking))


def key_material(state: GraphState, question: Question, only: RecallFilter) -> bytes:
    """All that a ranking depends on, as bytes that no other state, question and filter has.

    Of the question everything but its vector, which text and model make: whatever else comes to be asked is in the key.
    """
    asked = [getattr(question, field.name) for field in fields(question) if field.name not in ("vector", "older")]
    older = None if question.older is None else [question.older.model, question.older.vector is not None]
    return msgspec.msgpack.encode([RANKING_VERSION, state, question.vector is not None, asked, older, only])


class _Kept(msgspec.Struct, array_like=True):
    """A ranking in Redis: the names of the terms; then each passage, its score, its cosine, its terms in that order."""

    terms: list[str]
    passages: list[tuple[UUID, float, float, list[float]]]


_ENCODER = msgspec.msgpack.Encoder(uuid_format="bytes")
_DECODER = msgspec.msgpack.Decoder(_Kept)


def encode(ranking: Sequence[RankedPassage]) -> bytes:
    """A ranking as MessagePack; every passage has the same terms."""
    terms = list(ranking[0].terms) if ranking else []
    passages = [(one.passage_id, one.score, one.meaning, [one.terms[term] for term in terms]) for one in ranking]
    return _ENCODER.encode(_Kept(terms, passages))


def decode(value: bytes) -> Ranking | None:
    """The ranking; None where the value is none."""
    try:
        kept = _DECODER.decode(value)
        return [
            RankedPassage(passage_id, score, meaning, dict(zip(kept.terms, terms, strict=True)))
            for passage_id, score, meaning, terms in kept.passages
        ]
    except (msgspec.MsgspecError, ValueError):
        return None
