"""The arguments and the results of a recall."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import chain
from uuid import UUID

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from recollect.embedding import UNMEASURED, SimilarityThresholds
from recollect.graph.graphs.view import GraphView
from recollect.graph.observations.model import Attributes
from recollect.retrieval.recall.pages import Holdings, ListPosition
from recollect.retrieval.recall.ranking import Hit, HitKey
from recollect.retrieval.recall.terms import CountedWord
from recollect.retrieval.search import fusion
from recollect.times import zone_of

COMPARED_WHEN_NARROWED = 3_000
"""Where a filter leaves fewer passages than this, each is compared. Where it leaves more, the passages of the graph are
read by distance until enough pass the filter: where 3,000 of 200,000 do, the nearest 3,000 or so."""

_STOPS = ".,;:!?\"'()[]{}…“”‘’«»¿¡。，、；：！？「」『』（）؟،؛।"
"""Punctuation that ends or encloses words, in many scripts."""

CHARACTERS_PER_TOKEN = 4
"""The number of characters of a token in English, roughly: a budget needs no more precision."""

MAX_WHOLE = 10_000
"""The maximum number of characters of a memory that is returned as a whole: as many as `remember` accepts."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its vector (None if the embedder is unavailable: then only words are searched).

    `part`: the part of a long question that is embedded, and in which names and times are looked for; None: all of it.
    `tokens`: a vector for each of its tokens, shape (n, dimensions), if the embedder makes them.
    `similarity_thresholds`: the cosines from which a memory is evidence. `older`: the same question with the vector of
    the previous embedder, if there is one.

    Four fields are set only if the question needs them, so that callers share cached answers to the others. `asker`:
    the caller, if the question is in the first person. `time_zone`: the zone of the caller, if it names times.
    `asked_at`: the time of the call, if these depend on the day. `asked_on`: that day in the caller's zone, or in the
    graph's, once this is known.
    """

    text: str
    vector: NDArray[np.float32] | None
    model: str
    asker: str | None = None
    similarity_thresholds: SimilarityThresholds = UNMEASURED
    older: "Question | None" = None
    tokens: NDArray[np.float32] | None = None
    asked_on: date | None = None
    asked_at: datetime | None = None
    time_zone: str | None = None
    part: str | None = None

    @property
    def asking_part(self) -> str:
        """The part of the question that asks: all of a short question (`prompts.py`)."""
        return self.text if self.part is None else self.part

    @property
    def part_of_others(self) -> NDArray[np.float32] | None:
        """The vector of a question that is not English, without the numbers that only English texts have; else None."""
        english = self.similarity_thresholds.english
        if self.vector is None or english == 0 or self.vector[:english].any():
            return None
        return self.vector[english:]

    def in_zone(self, default: str | None, moment: datetime | None = None) -> "Question":
        """The question with its own zone or the default, and the day on which it is asked there, or was at `moment`."""
        zone = self.time_zone or default
        at = self.asked_at if self.asked_at is None or moment is None else moment
        day = self.asked_on if at is None else at.astimezone(zone_of(zone)).date()
        older = None if self.older is None else self.older.in_zone(default, moment)
        return replace(self, asked_on=day, time_zone=zone, older=older)

    def for_model(self, model: str | None) -> "Question":
        """The question with the vector of this model, which serves a graph; without a vector if no embedder has it."""
        matching = (question for question in (self, self.older) if question is not None and question.model == model)
        return next(matching, replace(self, vector=None, tokens=None))


@dataclass(frozen=True, slots=True)
class RecallFilter:
    """The memories that a recall considers. Empty tuples and None filter nothing.

    Kinds and tags are compared in any case. `kinds`, `tags`: any of them, with `all_tags` all of these tags;
    `not_kinds`, `not_tags`: none of them. `status`: only memories whose node has it; `named`: only those of entities
    (True), or only facts (False). `under`: only memories about this entity or its descendants. `thread`: only memories
    of this thread. `author`: only those that this subject wrote.
    """

    kinds: tuple[str, ...] = ()
    not_kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    not_tags: tuple[str, ...] = ()
    all_tags: bool = False
    about: tuple[str, ...] = ()
    min_importance: float | None = None
    since: datetime | None = None
    until: datetime | None = None
    fresh_only: bool = False
    include_outdated: bool = False
    status: str | None = None
    named: bool | None = None
    under: str | None = None
    thread: str | None = None
    author: str | None = None

    @property
    def depends_on_clock(self) -> bool:
        """Whether answers change with time, even without a write or an expiry: fresh memories become stale."""
        return self.fresh_only

    @property
    def narrows(self) -> bool:
        """Whether the filter excludes any of a graph's memories."""
        choices = self.kinds or self.tags or self.about or self.status or self.under or self.fresh_only
        exclusions = self.not_kinds or self.not_tags
        bounds = (self.min_importance, self.since, self.until, self.named, self.thread, self.author)
        return bool(choices or exclusions) or any(bound is not None for bound in bounds)


@dataclass(frozen=True, slots=True)
class GraphState:
    """Everything that an answer depends on, except the question: the same state gives the same answer.

    Every write moves `revision`, and every row that a worker derives moves `index_epoch`. `at` is the revision's time:
    a database that is restored from a backup reaches the same revisions again, but not at the same times. Nor does it
    reach the same epochs, which are microseconds since 1970, also after a crash that lost some of them.
    `next_expiry` is when the next memory or node expires: until then the clock changes nothing. `passages_counted` is
    the number of passages in which the graph's words were counted; `passages` is the same, or about how many there are
    as long as they were not counted. `vector_model` and `vector_dimensions` describe its vector index, if it has one.
    `model` is the model whose vectors serve the graph. `time_zone`: the graph's zone or its tenant's, by which
    questions are asked that name none.
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
    time_zone: str | None = None
    passages: int = 0

    def dimensions(self, model: str) -> int | None:
        """The dimensions of the vector index, if it has vectors of this model."""
        return self.vector_dimensions if self.vector_model == model else None

    @property
    def indexed_model(self) -> str | None:
        """The model that serves the graph, if the vector index has its vectors, not still those of a former model."""
        return self.model if self.indexed_dimensions is not None else None

    @property
    def indexed_dimensions(self) -> int | None:
        """The dimensions of the vector index, if it has the vectors that serve the graph."""
        return None if self.model is None else self.dimensions(self.model)


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """A question's words, each with how many passages have it; its phrases; and the entities that it names."""

    counted: Sequence[CountedWord]
    phrases: Sequence[str]
    entity_ids: Sequence[UUID]


@dataclass(frozen=True, slots=True)
class Basis:
    """The facts that a recall reads before it searches: the graph's state, and the words of each question.

    `waiting`: the number of passages without a vector. `similar`: for each unknown word of the questions, similar words
    of the graph, the most frequent first.
    """

    state: GraphState
    waiting: int
    question_words: Sequence[QuestionWords]
    similar: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The part of a graph in which a recall searches: a view, and a filter.

    `under`: the nodes of the subtree that the filter names, if any. `state`: None where no vector index may be used.
    `audited`: hits of the index are compared with those of an exact search.
    """

    view: GraphView
    filters: RecallFilter
    under: list[UUID] | None
    state: GraphState | None
    audited: bool = False

    def dimensions(self, model: str) -> int | None:
        """The dimensions of the vector index that may be used for a question embedded by this model, if any."""
        return None if self.state is None else self.state.dimensions(model)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAttributes(Attributes):
    """A memory's attributes, the number of its newest version, and the reason of its last change, if one was given.

    `text`: its text, or the beginning of that. `said_offset`: the minutes by which the clock of who said it was ahead
    of UTC; None: not known.
    """

    version: int | None = None
    reason: str | None = None
    text: str | None = None
    said_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    """The result of a recall: hits, best first, whether there were more, and how many passages wait for a vector.

    `attributes`: those of each memory, by its id, in a described recall; `parts`: then also the keys of hits whose text
    is only a part of the memory. `corrected`: the questions without their typing errors, where they have any: they are
    to be asked instead, and nothing was searched. `positions`: the position of each hit in a list, by its key.
    `holdings`: what the graph holds instead, where nothing was found.
    """

    hits: list[Hit]
    more: bool
    waiting: int
    attributes: Mapping[UUID, MemoryAttributes] = field(default_factory=dict)
    parts: Set[HitKey] = frozenset()
    corrected: Sequence[str] = ()
    positions: Mapping[HitKey, ListPosition] = field(default_factory=dict)
    holdings: Holdings | None = None

    @property
    def next_cursor(self) -> str | None:
        """The cursor of the next page of a list; None for the last page, and for a search."""
        return self.positions[self.hits[-1].key].cursor if self.more and self.positions and self.hits else None


Listed = tuple[Hit, ListPosition]
"""A memory of a list, as a hit without a score, and its position in the list."""


def fuse(rankings: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Merge rankings by reciprocal-rank fusion; ties are in order of first appearance."""
    first: dict[tuple[UUID, UUID | None], Hit] = {}
    for hit in chain.from_iterable(rankings):
        first.setdefault(hit.key, hit)
    fused = fusion.fuse([[hit.key for hit in ranking] for ranking in rankings])
    return [structs.replace(first[entry.key], score=entry.score) for entry in fused]


def without_repeats(
    hits: Sequence[Hit], wholes: Mapping[UUID, str] | None = None, *, repeats: set[UUID] | None = None
) -> Iterator[Hit]:
    """Yield the hits, except those that repeat the text of a better hit about the same entity.

    Case and punctuation make no difference. Passages are compared and, if `wholes` has them, the whole texts of the
    memories, by id: long memories may share a passage and differ in others. The ids of memories with equal hits are
    added to `repeats`. An outdated hit that repeats a current one is left out, even if it ranks better. Sibling heads
    are never left out. Hits are yielded one by one, since callers take few of a ranking, and comparing texts takes
    longer than ranking them.
    """
    current: dict[_RepeatKey, list[UUID]] = {}
    if any(hit.outdated for hit in hits):
        for hit in hits:
            if not hit.outdated:
                current.setdefault(_repeat_key(hit, wholes), []).append(hit.memory_id)
    seen: dict[_RepeatKey, UUID] = {}
    for hit in hits:
        key = _repeat_key(hit, wholes)
        equal = [seen[key]] if key in seen else current.get(key, []) if hit.outdated else []
        if not equal:
            seen[key] = hit.memory_id
            yield hit
        elif repeats is not None:
            repeats.update(equal, [hit.memory_id])


_RepeatKey = tuple[str | None, str, str | None, UUID | None]


def _repeat_key(hit: Hit, wholes: Mapping[UUID, str] | None) -> _RepeatKey:
    whole = None if wholes is None else wholes.get(hit.memory_id)
    return hit.name, plain(hit.text), None if whole is None else plain(whole), hit.version_id


def plain(text: str) -> str:
    """A text's words in lower case, without the punctuation around them. A text of punctuation alone stays as it is.

    Other signs stay: C++ is not C, -5 is not 5, and combining marks above or below letters are no punctuation.
    """
    words = (word.strip(_STOPS) for word in text.casefold().split())
    return " ".join(word for word in words if word) or text


def overlap_at_k(hits: Sequence[Hit], exact: Sequence[Hit], k: int) -> float:
    """Compute recall@k: the share of the first `k` hits of `exact` that are among the first `k` of `hits`.

    `exact` must not be empty.
    """
    expected = {hit.memory_id for hit in exact[:k]}
    return len(expected & {hit.memory_id for hit in hits[:k]}) / len(expected)


def within_budget(hits: Sequence[Hit], *, limit: int, token_budget: int) -> list[Hit]:
    """The best hits that fit both limits; the first one is always included."""
    included: list[Hit] = []
    tokens = 0
    for hit in hits[:limit]:
        tokens += _tokens(hit.text)
        if included and tokens > token_budget:
            break
        included.append(hit)
    return included


def with_whole_texts(
    hits: Sequence[Hit], texts: Mapping[UUID, str | None], *, token_budget: int
) -> tuple[list[Hit], set[HitKey]]:
    """Replace passages by the whole texts of their memories, best hits first, as long as the budget allows.

    Also returns the keys of the hits that still have only a part of their memory. `texts`: those of the memories, by
    id; one of more than MAX_WHOLE characters is not used. A memory of one passage gets its own line breaks back.
    Sibling heads keep their passages: their texts are others.
    """
    room = token_budget - sum(_tokens(hit.text) for hit in hits)
    results: list[Hit] = []
    parts: set[HitKey] = set()
    for hit in hits:
        text = texts.get(hit.memory_id)
        if text is None or text == hit.text or hit.version_id is not None:
            results.append(hit)
            continue
        # Counted in bytes, of which most scripts take several a character, so that whole texts leave room for the rest.
        words, added_tokens = " ".join(text.split()), len(text.encode()) // CHARACTERS_PER_TOKEN - _tokens(hit.text) + 1
        if len(text) <= MAX_WHOLE and added_tokens <= room and hit.text in words:
            room -= added_tokens
            results.append(structs.replace(hit, text=text))
            continue
        results.append(hit)
        if words != hit.text and (len(text) > MAX_WHOLE or hit.text in words):
            parts.add(hit.key)
    return results, parts


def _tokens(text: str) -> int:
    return len(text) // CHARACTERS_PER_TOKEN + 1


def vector_type(dimensions: int | None) -> str:
    """The type of vectors of this length in SQL, as which a vector index holds them; None: of any length."""
    return "halfvec" if dimensions is None else f"halfvec({dimensions})"
