"""What a search asks and what it finds."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

CANDIDATES = 50
"""Passages taken from the words and from the meanings each, before they are scored together (measured)."""

WORDS_WEIGHT = 2.0
MEANING_WEIGHT = 3.0
"""Weights of the two scores, each scaled to 0..1 over the candidates of one query. A weighted sum was measured against
reciprocal-rank fusion and finds more (recall@10 .67 to .56)."""

MIN_MEANING = 0.25
"""Cosine below which a passage that shares no word with the question is no evidence at all."""

MIN_CLOSE = 0.75
"""Cosine from which a new memory is close enough to an older one to be worth a look."""

MAX_CLOSE = 3
"""Close memories told per remembered item."""

MIN_ANY_CASE = 4
"""Characters from which a name is recognised in a text whatever its case: shorter ones are words too often (IT, US)."""

MAX_NAME_PIECES = 8
"""Words and marks of a name that is looked for in a text, at most."""

_PIECE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]")
"""A word or a mark; where words are written without spaces, a character."""

FUSION_K = 60
"""The constant of reciprocal-rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""

CHARACTERS_PER_TOKEN = 4
"""A token of English, roughly; budgets need no more."""


@dataclass(frozen=True, slots=True)
class SubstringQuery:
    """A case-insensitive substring of names, kinds and observations, with filters. `limit` None: as many as allowed."""

    text: str
    kind: str | None = None
    tags: tuple[str, ...] = ()
    min_importance: float | None = None
    max_importance: float | None = None
    offset: int = 0
    limit: int = 1000


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its vector (None: the embedder is away, so that words alone must do)."""

    text: str
    vector: NDArray[np.float32] | None
    model: str


@dataclass(frozen=True, slots=True)
class RecallFilter:
    """What a memory must be to be considered. Empty tuples and None filter nothing.

    `status`: only memories whose node has it; `named`: only those of entities (True), or only facts (False).
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


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that was found: its best passage, and the terms that its score was made of."""

    memory_id: UUID
    node_id: UUID
    name: str | None
    text: str
    at: datetime | None
    score: float
    words: float
    meaning: float


@dataclass(frozen=True, slots=True)
class Recalled:
    """What recall answers: hits, best first, whether there were more, and how many passages wait for a vector."""

    hits: list[Hit]
    more: bool
    waiting: int


@dataclass(frozen=True, slots=True)
class Close:
    """An older memory that says nearly the same."""

    memory_id: UUID
    text: str
    score: float


def fuse(rankings: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Several rankings as one, by reciprocal-rank fusion; ties in order of first appearance."""
    scores: dict[UUID, float] = {}
    first: dict[UUID, Hit] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            scores[hit.memory_id] = scores.get(hit.memory_id, 0.0) + 1 / (FUSION_K + rank)
            first.setdefault(hit.memory_id, hit)
    return [replace(first[key], score=score) for key, score in sorted(scores.items(), key=lambda item: -item[1])]


def within_budget(hits: Sequence[Hit], *, limit: int, token_budget: int) -> list[Hit]:
    """The best hits that fit the budget; the best one always does."""
    kept: list[Hit] = []
    spent = 0
    for hit in hits[:limit]:
        spent += len(hit.text) // CHARACTERS_PER_TOKEN + 1
        if kept and spent > token_budget:
            break
        kept.append(hit)
    return kept


def phrases(text: str) -> list[str]:
    """Every run of up to MAX_NAME_PIECES words and marks in a text, each once: what a name in it may be."""
    pieces = [match.span() for match in _PIECE.finditer(text)]
    runs = (
        text[start : pieces[last][1]]
        for first, (start, _) in enumerate(pieces)
        for last in range(first, min(first + MAX_NAME_PIECES, len(pieces)))
    )
    return list(dict.fromkeys(runs))


def like_pattern(text: str) -> str:
    """A LIKE pattern that finds `text` anywhere, whatever characters it holds."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
