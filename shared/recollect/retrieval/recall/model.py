"""What a recall asks for, and what it finds."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import chain
from uuid import UUID

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from recollect.graph.graphs.view import GraphView
from recollect.graph.observations.model import Attributes
from recollect.platform.embedding import UNMEASURED, SimilarityThresholds
from recollect.retrieval.recall.ranking import Hit, HitKey
from recollect.retrieval.search import fusion

MIN_NEAR_DUPLICATE_SIMILARITY = 0.75
"""Cosine from which a new memory is close enough to an older one to be worth a look."""

MAX_NEAR_DUPLICATES = 3
"""Near duplicates that `remember` reports for each item, at most."""

MAX_COMPARED_WITH_NEW = 2_000
"""Passages with a rare word of a new memory that are compared with it, at most; and as many others of its entity."""

COMPARED_WHEN_NARROWED = 3_000
"""Passages that a filter leaves, below which each is compared. Of more, the nearest of the graph are gone through until
enough pass the filter: where 3,000 of 200,000 do, the nearest 3,000 or so."""

APPROXIMATE_CANDIDATES = 50
"""Passages that a search by the contextual vector finds first; their own vectors are then compared exactly."""

MAX_COMPARED = 20
"""Vectors of one node that are compared with others to find what is similar: those of its newest passages."""

MAX_LOOKED_AT = 500
"""Passages of the node that are gone through for them: the newest may not be embedded yet."""

_STOPS = ".,;:!?\"'()[]{}…“”‘’«»¿¡。，、；：！？「」『』（）؟،؛।"
"""Punctuation that ends or encloses words, in many scripts."""

NEAR_BEST = 2 / 3
"""Share of the best one's score that a memory needs where nobody said how many are wanted. Measured: of what comes back
then, a third to a half more is evidence, and next to none is missed (docs/benchmarks.md)."""

FEW = 10
"""Memories that all come back, whatever their scores: of so few the least is 0 in most terms without being far off."""

CHARACTERS_PER_TOKEN = 4
"""Of English, roughly; a budget needs no more precision."""

MAX_WHOLE = 10_000
"""Characters of a memory that is told whole, at most: as many as `remember` takes."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its vector (None if the embedder is unavailable: then only words are searched).

    `tokens`: a vector of each of its tokens, shape (n, dimensions), if the embedder tells them; none without a vector.
    `asker`: who asks, where the question speaks of them; None else, so that all who ask the same share an answer.
    `asked_on`: the day (UTC) on which it is asked, where it tells a time from that; None else, for the same reason.
    `similarity_thresholds`: from which cosines on a memory is evidence. `older`: the same question with the previous
    embedder's vector, if there is one.
    """

    text: str
    vector: NDArray[np.float32] | None
    model: str
    asker: str | None = None
    similarity_thresholds: SimilarityThresholds = UNMEASURED
    older: "Question | None" = None
    tokens: NDArray[np.float32] | None = None
    asked_on: date | None = None

    def on(self, day: date) -> "Question":
        """The same question, asked on that day."""
        return replace(self, asked_on=day, older=None if self.older is None else self.older.on(day))

    def for_model(self, model: str | None) -> "Question":
        """This question with the vector of the model that serves a graph; without one if no embedder has that."""
        known = (asked for asked in (self, self.older) if asked is not None and asked.model == model)
        return next(known, replace(self, vector=None, tokens=None))


@dataclass(frozen=True, slots=True)
class RecallFilter:
    """Which memories are considered. Empty tuples and None filter nothing.

    `status`: only memories whose node has it; `named`: only those of entities (True), or only facts (False).
    `under`: only memories about this entity or what stands below it.
    """

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    min_importance: float | None = None
    since: datetime | None = None
    until: datetime | None = None
    fresh_only: bool = False
    include_outdated: bool = False
    status: str | None = None
    named: bool | None = None
    under: str | None = None

    @property
    def depends_on_clock(self) -> bool:
        """Whether the answer may change without a write, expiry aside: what is fresh now is stale later."""
        return self.fresh_only

    @property
    def narrows(self) -> bool:
        """Whether it leaves out any of a graph's memories."""
        chosen = self.kinds or self.tags or self.about or self.status or self.under or self.fresh_only
        bounds = (self.min_importance, self.since, self.until, self.named)
        return bool(chosen) or any(bound is not None for bound in bounds)


@dataclass(frozen=True, slots=True)
class GraphState:
    """All that an answer depends on beside its question: the same state gives the same answer.

    Every write moves `revision`, and everything that a worker derives moves `index_epoch`. `at` is the revision's time:
    a database that was set back to an earlier backup reaches the same revisions again, but not at the same times. Nor
    does it reach the same epochs, which are microseconds since 1970, also after a crash that took back some of them.
    `next_expiry` is when the next memory or node expires: until then the clock changes nothing. `passages_counted` is
    what the graph's term counts are of; `vector_model` and `vector_dimensions` are of its vector index, if it has one.
    `model` is whose vectors serve it.
    """

    graph_id: UUID
    revision: int
    at: datetime
    index_epoch: int
    passages_counted: int
    vector_model: str | None
    vector_dimensions: int | None
    next_expiry: datetime | None
    model: str | None = None

    def dimensions(self, model: str) -> int | None:
        """Of the vector index, where it is of this model's vectors."""
        return self.vector_dimensions if self.vector_model == model else None

    @property
    def indexed_model(self) -> str | None:
        """Whose vectors serve the graph, where its vector index is of these, and not still of a former model's."""
        return self.model if self.indexed_dimensions is not None else None

    @property
    def indexed_dimensions(self) -> int | None:
        """Of the vector index, where it is of the vectors that serve the graph."""
        return None if self.model is None else self.dimensions(self.model)


@dataclass(frozen=True, slots=True)
class AskedWords:
    """A question's words, each with how many passages hold it; its `phrases`; and the entities that it names."""

    counted: Mapping[str, int]
    spoken: Sequence[str]
    named: Sequence[UUID]


@dataclass(frozen=True, slots=True)
class Basis:
    """What a recall knows before it searches: a graph's state, how many passages wait, and each question's words."""

    state: GraphState
    waiting: int
    asked: Sequence[AskedWords]


@dataclass(frozen=True, slots=True)
class SearchScope:
    """Where a recall searches: a view of a graph, and a filter.

    `under`: the nodes that it leaves, where it asks for those below one. `state`: None where no vector index may serve.
    `audited`: what the index finds is measured by what there is.
    """

    view: GraphView
    only: RecallFilter
    under: list[UUID] | None
    state: GraphState | None
    audited: bool = False

    def dimensions(self, model: str) -> int | None:
        """Of the vector index that may serve a question embedded by this model, if there is one."""
        return None if self.state is None else self.state.dimensions(model)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAttributes(Attributes):
    """A memory's attributes, and the reason of its last change, if one was given.

    `text`: what it says, or the beginning of that.
    """

    reason: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    """What recall answers: hits, best first, whether there were more, and how many passages wait for a vector.

    `attributes`: what each memory says of itself, by its id, where that was asked for; `parts`: the keys of hits whose
    memories say more than is told, then.
    """

    hits: list[Hit]
    more: bool
    waiting: int
    attributes: Mapping[UUID, MemoryAttributes] = field(default_factory=dict)
    parts: Set[HitKey] = frozenset()


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """An older memory that says nearly the same."""

    memory_id: UUID
    text: str
    score: float


def fuse(rankings: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Several rankings as one, by reciprocal-rank fusion; ties in order of first appearance."""
    first: dict[tuple[UUID, UUID | None], Hit] = {}
    for hit in chain.from_iterable(rankings):
        first.setdefault(hit.key, hit)
    fused = fusion.fuse([[hit.key for hit in ranking] for ranking in rankings])
    return [structs.replace(first[found.key], score=found.score) for found in fused]


def without_repeats(hits: Sequence[Hit]) -> Iterator[Hit]:
    """Hits without those that say again, of the same entity, what a better one says: whatever their case and stops.

    Nor does one that is outdated say again what another says that is not, be it better or worse. Sibling heads stay.
    One after the other: of a ranking few are asked for, and to compare texts takes longer than to rank them.
    """
    old = any(hit.outdated for hit in hits)
    current = {_said(hit) for hit in hits if not hit.outdated} if old else set()
    told: set[tuple[str | None, str, UUID | None]] = set()
    for hit in hits:
        said = _said(hit)
        if said in told or (hit.outdated and said in current):
            continue
        told.add(said)
        yield hit


def _said(hit: Hit) -> tuple[str | None, str, UUID | None]:
    return hit.name, plain(hit.text), hit.version_id


def plain(text: str) -> str:
    """A text's words in small letters, without the stops and quotes around them. A text of nothing else stays as it is.

    Only those: C++ is not C, -5 is not 5, and what stands above or below letters of many scripts is no letter.
    """
    words = (word.strip(_STOPS) for word in text.casefold().split())
    return " ".join(word for word in words if word) or text


def overlap_at_k(hits: Sequence[Hit], exact: Sequence[Hit], k: int) -> float:
    """recall@k: the share of the first `k` of an exact answer, which is not empty, among the first `k` of another."""
    wanted = {hit.memory_id for hit in exact[:k]}
    return len(wanted & {hit.memory_id for hit in hits[:k]}) / len(wanted)


def near_best(hits: Sequence[Hit]) -> list[Hit]:
    """Of a ranking, best first, the hits that score at least NEAR_BEST of the best; of FEW all."""
    if len(hits) <= FEW:
        return list(hits)
    return [hit for hit in hits if hit.score >= NEAR_BEST * hits[0].score]


def within_budget(hits: Sequence[Hit], *, limit: int, token_budget: int) -> list[Hit]:
    """The best hits that fit the budget; the best one always does."""
    kept: list[Hit] = []
    spent = 0
    for hit in hits[:limit]:
        spent += _tokens(hit.text)
        if kept and spent > token_budget:
            break
        kept.append(hit)
    return kept


def told_whole(
    hits: Sequence[Hit], said: Mapping[UUID, str | None], *, token_budget: int
) -> tuple[list[Hit], set[HitKey]]:
    """The hits with the texts of their memories in place of passages, best first, as far as the budget allows.

    And the keys of those of which a part is told. `said`: by memory its text, of which more than MAX_WHOLE characters
    are too many. What is one passage comes as it was written, with its line breaks. Siblings of a head stay as they
    are: theirs are other texts.
    """
    room = token_budget - sum(_tokens(hit.text) for hit in hits)
    told: list[Hit] = []
    parts: set[HitKey] = set()
    for hit in hits:
        text = said.get(hit.memory_id)
        if text is None or text == hit.text or hit.version_id is not None:
            told.append(hit)
            continue
        # By bytes, of which most scripts take several a character: what is told whole leaves the others their place.
        words, more = " ".join(text.split()), len(text.encode()) // CHARACTERS_PER_TOKEN - _tokens(hit.text) + 1
        if len(text) <= MAX_WHOLE and more <= room and hit.text in words:
            room -= more
            told.append(structs.replace(hit, text=text))
            continue
        told.append(hit)
        if words != hit.text and (len(text) > MAX_WHOLE or hit.text in words):
            parts.add(hit.key)
    return told, parts


def _tokens(text: str) -> int:
    return len(text) // CHARACTERS_PER_TOKEN + 1
