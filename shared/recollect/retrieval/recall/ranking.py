"""How recall ranks: it scales the features of each candidate, weights them and adds them up.

Measured on two public sets of long conversations, one turn as the unit, with held-out questions: recall@10 is .80,
where BM25 alone finds .61, a small dense model alone .44, and reciprocal-rank fusion of both .56. Because features are
scaled within one query, the sum does not tell a good answer from a bad one: for that, unscaled features have minima.
"""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from operator import mul
from typing import Self
from uuid import UUID

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recollect.embedding import SimilarityThresholds
from recollect.retrieval.recall.question_analysis import ExpectedAnswer, statement_share
from recollect.retrieval.recall.ranking_weights import WEIGHTS, WEIGHTS_ACROSS_LANGUAGES, WEIGHTS_WITHOUT_TOKENS
from recollect.words.english_detection import is_english

RANKING_VERSION = 24
"""Part of every cache key: raise it with any change in how candidates are found or ranked."""

CANDIDATES = 50
"""Passages that each of the three lists (lexical, contextual, semantic) contributes to the ranking, at most."""

MAX_BY_ALIAS = 20
"""Passages of an entity that the question names by an alias, at most, whatever their words."""

ALL_WORDS = 0.999
"""The share of the question's words, weighted by rarity, of a passage that has all of them: it is an answer whatever
its cosine."""

AMOUNT_MATCH = 0.25
"""How well the word of an amount in a question ("many", "long") is matched by a memory that has that amount, at least:
"three servers" has a counterpart of "many", "runs on servers" has none (measured: docs/lab/floors.md)."""

LONG_PASSAGE_WORDS = 20
"""Words from which a passage counts as long. Without this cap the longest passage ranked first (measured)."""

MAX_MATCHED = 1_000
MAX_CONTEXT_MATCHED = 100
"""How many passages may contain the words by which candidates are searched. In large graphs, only the rare words of a
question and its vector find candidates, and its common words only help to rank them. Each passage is looked up and
ranked, and twice as many find no more (measured). The second is for the words of surrounding passages, which match
several times as many passages, each at a higher cost; it could be lower still without a loss (measured)."""


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a question: how rare it is in the graph, and how many passages contain it, roughly.

    `tsquery`: of all its forms, where it has others than its lexeme. `is_evident`: it names one thing, and few passages
    have it, which are evidence whatever else the question says.
    """

    lexeme: str
    idf: float
    passages: int
    tsquery: str | None = None
    is_evident: bool = False

    @property
    def query(self) -> str:
        """The word as a tsquery."""
        if self.tsquery is not None:
            return self.tsquery
        return "'" + self.lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


class Candidate(Struct, frozen=True):  # A hundred to a question: a dataclass takes five times as long to make.
    """A passage that may answer the question, with its unscaled features.

    `version_id`: the sibling head that the passage is from; None for the node's newest version. `conflicts`: the other
    heads of the node, if it has several. `is_alone`: it belongs to no thread, so nothing was said before or after it.
    `meaning`: the cosine of the question with the passage's contextual vector, to which its neighbours contribute;
    `own_similarity`: with the vector of its own text. `identified`: it has an evident term of the question.
    `is_other_language`: the question is English, and the passage is not, by what its vector has. `win` and `date`:
    scores of the second stage (`matching.py`), `win` unscaled and None where the passage has no tokens. `asked`: the
    weight of the question's words in the turn before, if that is a question: then this one answers it. `first_match`:
    as `first` of TokenMatch; None where the passage has no tokens.
    """

    id: UUID
    memory_id: UUID
    node_id: UUID
    version_id: UUID | None
    conflicts: Sequence[UUID]
    name: str | None
    text: str
    at: datetime | None
    outdated: bool
    own: float
    near: float
    far: float
    covered: float
    about: bool
    words: int
    dated: bool
    is_alone: bool
    meaning: float | None
    own_similarity: float | None
    identified: bool = False
    is_other_language: bool = False
    win: float | None = None
    date: float = 0.0
    asked: float = 0.0
    first_match: float | None = None

    @property
    def nearness(self) -> float | None:
        """The greater of both cosines with the question; None if the passage is not embedded yet."""
        if self.meaning is None or self.own_similarity is None:
            return self.meaning if self.own_similarity is None else self.own_similarity
        return max(self.meaning, self.own_similarity)


HitKey = tuple[UUID, UUID | None]
"""A memory's id and, for a sibling head, its version's."""


class RankedPassage(Struct, frozen=True):
    """A hit without its text, as the cache keeps it. `score`, `meaning`, `terms`, `is_near_best`: as in Hit."""

    passage_id: UUID
    score: float
    meaning: float
    terms: dict[str, float]
    is_near_best: bool = True


class Hit(Struct, frozen=True):
    """A memory that was found: its best passage, or its whole text, and the parts of its score.

    `version_id` and `conflicts`: as in Candidate.
    `score` lies between 0 and 1 and is comparable only within one answer; `terms` are its parts, each scaled, by the
    names of the weights. `meaning`: the greater cosine of its two vectors with the question, else 0. `is_near_best`:
    it is more than company of the best one (`floors.py`).
    """

    passage_id: UUID
    memory_id: UUID
    node_id: UUID
    name: str | None
    text: str
    at: datetime | None
    outdated: bool
    score: float
    meaning: float
    terms: dict[str, float]
    version_id: UUID | None = None
    conflicts: Sequence[UUID] = ()
    is_near_best: bool = True

    @property
    def key(self) -> HitKey:
        """A key that is unique within an answer. Sibling heads are one memory, but each is a hit."""
        return self.memory_id, self.version_id

    @property
    def version_ref(self) -> tuple[UUID, UUID | None]:
        """Which version of which node to show for it; None means the newest."""
        return self.node_id, self.version_id

    @property
    def ranked(self) -> RankedPassage:
        """The hit without its text."""
        return RankedPassage(self.passage_id, self.score, self.meaning, self.terms, self.is_near_best)


def rarest_terms(terms: Sequence[Term], max_passages: int) -> list[Term]:
    """The rarest terms, as long as no more than `max_passages` passages contain them in all."""
    chosen: list[Term] = []
    passages = 0
    for term in terms:
        passages += term.passages
        if passages > max_passages:
            break
        chosen.append(term)
    return chosen


def any_of(terms: Sequence[Term]) -> str:
    """A tsquery for passages that contain any of these words; without words it matches none."""
    return " | ".join(term.query for term in terms)


def rank(
    candidates: Sequence[Candidate],
    terms: Sequence[Term],
    *,
    expected: ExpectedAnswer,
    thresholds: SimilarityThresholds,
    always: Set[UUID] = frozenset(),
    across_languages: bool = False,
) -> list[Hit]:
    """Candidates with enough evidence, best first, one passage per memory or sibling head.

    Of equal scores, outdated memories come last. `thresholds`: the cosines of the question's embedder, and the share
    of the question's words, that make a candidate evidence, and one of these an answer; without an answer there are no
    hits. `always`: passages that are evidence, and an answer, whatever their words and vectors. `across_languages`: the
    question is compared with memories in every language.
    """
    weight = sum(term.idf for term in terms)
    minima = _Minima.of(candidates, weight, expected, thresholds)
    evident = [c for c in candidates if c.id in always or minima.is_evidence(c)]
    nearest = max((c.nearness or 0.0 for c in evident), default=0.0)
    if not any(c.id in always or minima.is_answer(c, nearest) for c in evident):
        return []
    weights = _weights_of(evident, across_languages=across_languages)
    columns = _scaled_terms(evident, weight, expected)
    names, factors = tuple(weights), tuple(weights.values())
    total = sum(factors)
    rows = np.column_stack([columns[name] for name in names]).tolist()
    scores = [sum(map(mul, factors, row)) / total for row in rows]
    hits = [
        _hit(candidate, score, dict(zip(names, row, strict=True)))
        for candidate, score, row in zip(evident, scores, rows, strict=True)
    ]
    best: dict[tuple[UUID, UUID | None], Hit] = {}
    for hit in sorted(hits, key=lambda hit: (-hit.score, hit.outdated, hit.passage_id)):
        best.setdefault(hit.key, hit)
    return list(best.values())


def in_other_languages(candidates: Sequence[Candidate]) -> Set[UUID]:
    """The candidates in another language than an English question."""
    return {candidate.id for candidate in candidates if candidate.is_other_language}


@dataclass(frozen=True, slots=True)
class _Minima:
    """What a candidate needs to be evidence, and to be an answer, for one question.

    `weight`: that of all of the question's words; `others`: the candidates in another language than the question, for
    which a share of each cosine is enough; `turn`: the least cosine of an answer that belongs to a thread; `near`: the
    share of the best cosine that an answer needs, unless it has all words.
    """

    weight: float
    expected: ExpectedAnswer
    thresholds: SimilarityThresholds
    others: Set[UUID]
    turn: float
    near: float

    @classmethod
    def of(
        cls,
        candidates: Sequence[Candidate],
        weight: float,
        expected: ExpectedAnswer,
        thresholds: SimilarityThresholds,
    ) -> Self:
        turn = thresholds.best if thresholds.best_turn is None else thresholds.best_turn
        # Without tokens a cosine says less.
        near = thresholds.near if any(c.win is not None for c in candidates) else 0.0
        return cls(weight, expected, thresholds, in_other_languages(candidates), turn, near)

    def is_evidence(self, candidate: Candidate) -> bool:
        """Whether it may be a hit, if there is an answer."""
        if candidate.identified or (candidate.nearness or 0.0) >= self.thresholds.meaning * self._share(candidate):
            return True
        return self._coverage(candidate) >= self.thresholds.coverage

    def is_answer(self, candidate: Candidate, nearest: float) -> bool:
        """Whether it answers the question; `nearest`: the greatest cosine of all that is evidence."""
        if candidate.identified or candidate.nearness is None:
            return True
        coverage, cosine = self._coverage(candidate), candidate.nearness
        if coverage >= ALL_WORDS:
            return True
        if max(cosine, 0.0) < self.near * self._share(candidate) * nearest:
            return False
        least = (self.thresholds.best if candidate.is_alone else self.turn) * self._share(candidate)
        has_words = coverage >= self.thresholds.words
        more = self._more_needed(candidate) if candidate.is_alone else 0.0
        return cosine >= least + more or (has_words and cosine >= self.thresholds.worded + more)

    def _share(self, candidate: Candidate) -> float:
        """The share of each cosine that is enough for it."""
        return self.thresholds.other_language if candidate.id in self.others else 1.0

    def _coverage(self, candidate: Candidate) -> float:
        """The share of the question's words that it has, by their weights; -1 of a question without words."""
        return candidate.covered / self.weight if self.weight > 0 else -1.0

    def _more_needed(self, fact: Candidate) -> float:
        """How much more cosine a fact needs to be an answer, if what the question asks for has no counterpart in it.

        Only in English.
        """
        match = fact.first_match
        if self.expected.amount_first and match is not None and match < AMOUNT_MATCH and is_english(fact.text):
            return self.thresholds.no_amount
        return self.thresholds.other_kind if self.expected.is_of_other_kind(fact.text) else 0.0


def _weights_of(candidates: Sequence[Candidate], *, across_languages: bool) -> Mapping[str, float]:
    """The weights with tokens where at least half of the candidates have some: a reembedding adds them step by step.

    Those across languages where at least half have a cosine. Where the question names one thing, that outweighs all
    else: those that have it come first.
    """
    with_tokens = sum(candidate.win is not None for candidate in candidates)
    with_meaning = sum(candidate.meaning is not None for candidate in candidates)
    weights = WEIGHTS_WITHOUT_TOKENS
    if 2 * with_tokens >= len(candidates):
        weights = WEIGHTS
    elif across_languages and 2 * with_meaning >= len(candidates):
        weights = WEIGHTS_ACROSS_LANGUAGES
    if any(candidate.identified for candidate in candidates):
        return {**weights, "identified": sum(weights.values())}
    return weights


def _scaled_terms(
    candidates: Sequence[Candidate], weight: float, expected: ExpectedAnswer
) -> dict[str, NDArray[np.float64]]:
    """The values of each term, by its name, in the order of the candidates."""
    own, near, far, win, meaning = _scaled(
        _columns([(c.own, c.near, c.far, _nan_if_none(c.win), _nan_if_none(c.meaning)) for c in candidates], 5)
    )
    covered, asked, about, words, dated, date, has_win, is_alone, identified = _columns(
        [
            (c.covered, c.asked, c.about, c.words, c.dated, c.date, c.win is not None, c.is_alone, c.identified)
            for c in candidates
        ],
        9,
    )
    # A passage without tokens is scored by its words, or by its meaning, which alone crosses languages.
    win = np.where(has_win, win, np.maximum(own, meaning))
    # Around a passage alone nothing was said, and it is as long as it has to be: what it says itself counts instead.
    alone_at_least = np.where(is_alone, np.maximum(win, meaning), 0.0)
    length = np.log1p(np.minimum(words, LONG_PASSAGE_WORDS)) / math.log1p(LONG_PASSAGE_WORDS)
    return {
        "win": win,
        "date": date,
        "own": own,
        "near": np.maximum(near, alone_at_least),
        "far": np.maximum(far, alone_at_least),
        "coverage": covered / (weight or 1.0),
        "asked": asked / (weight or 1.0),
        "about": about,
        "length": np.where(is_alone, 1.0, length),
        "time": dated * expected.time,
        "answer": np.array([expected.found_in(c.text) for c in candidates], np.float64),
        "statement": np.array([statement_share(c.text) for c in candidates], np.float64),
        "meaning": meaning,
        "identified": identified,
    }


def _columns(rows: Sequence[tuple[float, ...]], width: int) -> NDArray[np.float64]:
    return np.array(rows, np.float64).reshape(len(rows), width).T


def _nan_if_none(value: float | None) -> float:
    return math.nan if value is None else value


def _scaled(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column scaled to 0 … 1. An unknown value counts as the least; if all values are equal, all become 0."""
    if columns.size == 0:
        return columns
    least, most = (extreme.reduce(columns, axis=1, keepdims=True) for extreme in (np.fmin, np.fmax))
    span = most - least
    scaled = (columns - least) / np.where(span == 0, 1.0, span)
    return np.where(np.isnan(scaled), 0.0, scaled)


def _hit(candidate: Candidate, score: float, terms: dict[str, float]) -> Hit:
    return Hit(
        candidate.id,
        candidate.memory_id,
        candidate.node_id,
        candidate.name,
        candidate.text,
        candidate.at,
        candidate.outdated,
        score,
        candidate.nearness or 0.0,
        terms,
        candidate.version_id,
        candidate.conflicts,
    )
