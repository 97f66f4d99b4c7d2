"""What the classic searches ask and what they find."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.graph.entities.model import Entity

MIN_ANY_CASE = 4
"""Characters from which a name is recognised in a text whatever its case: shorter ones are words too often (IT, US)."""

MAX_MENTIONED = 100
"""Entities that are recognised in one text, at most."""

MAX_NAME_PIECES = 8
"""Words and marks of a name that is looked for in a text, at most."""

_PIECE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]")
"""A word or a mark; where words are written without spaces, a character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """Which entities a search is among, and which of its finds come back. None and no tags filter nothing.

    `tags`: any of them, whatever their case. `archived`: entities of that status are found, too.
    """

    kind: str | None = None
    tags: tuple[str, ...] = ()
    min_importance: float | None = None
    max_importance: float | None = None
    archived: bool = True
    offset: int = 0
    limit: int = 1000

    @property
    def is_filtered(self) -> bool:
        """Whether some entities are left out that are not archived."""
        return bool(self.tags) or any(one is not None for one in (self.kind, self.min_importance, self.max_importance))


@dataclass(frozen=True, slots=True)
class SubstringQuery(SearchFilter):
    """A case-insensitive substring of names, kinds and observations."""

    text: str


@dataclass(frozen=True, slots=True)
class RankedQuery(SearchFilter):
    """Words, of which entities should hold many and rare ones."""

    text: str


@dataclass(frozen=True, slots=True)
class BooleanQuery(SearchFilter):
    """Terms with AND, OR and NOT; `boolean` has the grammar."""

    text: str


@dataclass(frozen=True, slots=True)
class FuzzyQuery(SearchFilter):
    """A text that a name, a kind or an observation is nearly the same as. `threshold` 0..1: how nearly."""

    text: str
    threshold: float = 0.7


@dataclass(frozen=True, slots=True)
class DateQuery(SearchFilter):
    """The time in which entities were made or last changed, both ends included; None leaves an end open."""

    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class LabelQuery:
    """Words as full text knows them, of which a summary or tags should hold `share` (0..1) or more.

    Only of nodes of these kinds and with any of these tags; none filter nothing. `fresh_only`: whose freshness lasts.
    """

    words: tuple[str, ...]
    share: float
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    fresh_only: bool = False
    limit: int = 100

    @property
    def any_word(self) -> str:
        """The tsquery of what holds any of the words."""
        return " | ".join("'" + word.replace("\\", "\\\\").replace("'", "''") + "'" for word in self.words)


@dataclass(frozen=True, slots=True)
class LabelMatch:
    """A node whose summary or tags hold words that were looked for: that text, and the share of the words in it."""

    node_id: UUID
    text: str
    share: float


@dataclass(frozen=True, slots=True)
class RankedHit:
    """An entity with its TF-IDF score, and where words of the query stand in it."""

    entity: Entity
    score: float
    in_name: bool
    in_kind: bool
    in_observations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankedHits:
    """Hits, best first; `next_offset` is where to go on where the list was cut."""

    hits: list[RankedHit]
    next_offset: int | None = None


@dataclass(frozen=True, slots=True)
class FuzzyTexts:
    """What a fuzzy search compares, in small letters: texts of one entity."""

    id: UUID
    texts: Sequence[str]


def phrases(text: str) -> list[str]:
    """Every run of up to MAX_NAME_PIECES words and marks in a text, each once: what a name in it may be."""
    pieces = [match.span() for match in _PIECE.finditer(text)]
    runs = (
        text[start : pieces[last][1]]
        for first, (start, _) in enumerate(pieces)
        for last in range(first, min(first + MAX_NAME_PIECES, len(pieces)))
    )
    return list(dict.fromkeys(runs))


def in_small_letters(names: Sequence[str]) -> list[str]:
    """Names in small letters, each once."""
    return sorted({name.lower() for name in names})


def like_pattern(text: str) -> str:
    """A LIKE pattern that finds `text` anywhere, whatever characters it holds."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def ranked_hit(entity: Entity, score: float, words: Sequence[str]) -> RankedHit:
    """A hit with the fields in which these words stand, as parts of longer ones too; as the reference tells them."""
    small = [word.lower() for word in words]

    def holds(text: str) -> bool:
        return any(word in text.lower() for word in small)

    said = tuple(observation for observation in entity.observations if holds(observation))
    return RankedHit(entity, score, holds(entity.name), holds(entity.kind or ""), said)
